"""Alpaca behind the ports: paper account, market data and live feed."""
