"""The append-only record of a desk or a backtest: SQLite, one writer and any number of readers in other processes."""
