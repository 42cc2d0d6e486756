"""The demo market: fictional companies with bars, news and filings, determined by a seed on any machine."""

from __future__ import annotations

from connectors.demo.market import DEFAULT_WATCHLIST, DemoMarket

__all__ = ["DEFAULT_WATCHLIST", "DemoMarket"]
