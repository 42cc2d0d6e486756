"""Both sides of a desk's account, the journal's and the broker's: activity, reconciliation, booking, equity check."""
