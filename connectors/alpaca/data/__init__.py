"""Alpaca's market data, asked over HTTP: daily bars, corporate actions and news, as the data folder keeps them."""

from __future__ import annotations

from connectors.alpaca.data.source import AlpacaData

__all__ = ["AlpacaData"]
