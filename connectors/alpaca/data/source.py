"""Alpaca's MarketDataService: one connection, three kinds of request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import date, datetime

from connectors.alpaca.data.actions import corporate_actions
from connectors.alpaca.data.bars import Bars, crypto_bars, stock_bars
from connectors.alpaca.data.news import news
from connectors.alpaca.data.pages import AlpacaPages
from connectors.alpaca.settings import AlpacaSettings
from engine.domain.market import NewsItem, Symbol, SymbolActions, is_crypto


class AlpacaData:
    """The MarketDataService port over AlpacaPages. One instance belongs to one event loop.

    All requests raise CredentialsRefused where the keys are refused, ConfigError where the address or the feed is not
    the account's, MissingData for an invalid symbol, NetworkError where the service cannot be reached or answers
    nonsense, TryAgainLater where it limits requests.
    """

    vendor = "Alpaca"

    def __init__(
        self,
        settings: AlpacaSettings,
        *,
        first_pause: float = 0.5,
        longest_wait: float = 90.0,
    ) -> None:
        """Set the pauses, which are those of a RateLimitedClient."""
        self.feed = settings.feed
        self._pages = AlpacaPages(settings, first_pause=first_pause, longest_wait=longest_wait)

    async def aclose(self) -> None:
        """Close connections."""
        await self._pages.aclose()

    def bars(self, symbols: Sequence[Symbol], first: date, last: date) -> AsyncIterator[Bars]:
        """Raw daily bars within a period, both sessions included; shares and crypto in separate requests.

        A bar of a session that is not over may be among them.
        """
        if is_crypto(symbols[0]):
            return crypto_bars(self._pages, symbols, first, last)
        return stock_bars(self._pages, symbols, first, last, self.feed)

    async def actions(self, symbols: Sequence[Symbol], first: date, last: date) -> dict[Symbol, SymbolActions]:
        """Split and dividends by ex-date, both days included."""
        return await corporate_actions(self._pages, symbols, first, last)

    def news(self, symbols: Sequence[Symbol], first: datetime, last: datetime) -> AsyncIterator[list[NewsItem]]:
        """News by the moment of its last change, a page at a time."""
        return news(self._pages, symbols, first, last)
