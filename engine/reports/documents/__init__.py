"""The JSON documents of the commands as values: both front doors read them here."""
