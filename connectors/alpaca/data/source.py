"""The door to Alpaca's market data: one connection, three questions."""

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
    """Daily bars, corporate actions and news. Every question raises CredentialsRefused where the keys are refused,
    ConfigError where the address or the feed is not the account's, MissingData for what cannot be a symbol,
    NetworkError where the service cannot be reached or answers nonsense, TryAgainLater where it asks for patience.
    One instance belongs to one event loop."""

    vendor = "Alpaca"

    def __init__(
        self,
        settings: AlpacaSettings,
        *,
        first_pause: float = 0.5,
        longest_wait: float = 90.0,
    ) -> None:
        """The pauses are a PoliteClient's."""
        self.feed = settings.feed
        self._pages = AlpacaPages(settings, first_pause=first_pause, longest_wait=longest_wait)

    async def aclose(self) -> None:
        """Closes connections."""
        await self._pages.aclose()

    def bars(self, symbols: Sequence[Symbol], first: date, last: date) -> AsyncIterator[Bars]:
        """Raw daily bars from one session to another, both included; shares and coins are asked for apart. A bar of a
        session that is not over may be among them."""
        if is_crypto(symbols[0]):
            return crypto_bars(self._pages, symbols, first, last)
        return stock_bars(self._pages, symbols, first, last, self.feed)

    async def actions(self, symbols: Sequence[Symbol], first: date, last: date) -> dict[Symbol, SymbolActions]:
        """Splits and dividends by ex-date, both days included."""
        return await corporate_actions(self._pages, symbols, first, last)

    def news(self, symbols: Sequence[Symbol], first: datetime, last: datetime) -> AsyncIterator[list[NewsItem]]:
        """News by the moment of its last change, a page at a time."""
        return news(self._pages, symbols, first, last)
