"""Alpaca's websockets and what stands in for them: quotes, trades, headlines and order updates as they happen."""

from __future__ import annotations

from connectors.alpaca.live.feed import AlpacaLive

__all__ = ["AlpacaLive"]
