"""The append-only record of what happened: SQLite with one writer and any number of readers, in as many processes."""
