"""Alpaca's market data over HTTP: daily bars, corporate actions and news, in the form of the data folder."""

from __future__ import annotations

from connectors.alpaca.data.source import AlpacaData

__all__ = ["AlpacaData"]
