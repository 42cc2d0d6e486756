"""Many sessions in a row: backtests of agents and of rules, tuning, audits, redecisions and published tables."""
