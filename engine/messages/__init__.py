"""Messages within the desk: events in the past tense, commands in the imperative, and the bus between."""
