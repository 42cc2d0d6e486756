"""Backtests and what is made of them."""
