"""Alpaca's websockets, with polling in their place: quotes, trades, headlines and order updates in real time."""

from __future__ import annotations

from connectors.alpaca.live.feed import AlpacaLive

__all__ = ["AlpacaLive"]
