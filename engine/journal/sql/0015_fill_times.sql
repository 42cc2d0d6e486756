-- When a trade happened, UTC; NULL in a backtest, and in rows of before.
ALTER TABLE fills ADD COLUMN time TEXT
