"""The JSON documents of the commands as values: both user interfaces read them here."""
