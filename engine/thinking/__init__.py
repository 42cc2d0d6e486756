"""One owner's thinking about one symbol in one cycle: a shared record, and the steps that fill it."""
