"""The latest price of every symbol out of what a live feed told: the middle of its quote, or its last trade."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal

from engine.domain.live import FeedMessage, LastTrade, Quote
from engine.domain.market import Symbol

FRESH = timedelta(minutes=15)
"""How old a quote or a trade may be and still count as the price of a moment."""
WIDEST = Decimal("0.02")
"""The widest spread, as a part of the middle, between whose ends a middle says anything: outside the hours of a feed
quotes stand far apart."""


class LivePrices:
    """What was heard last of each symbol. Times are the feed's, aware and UTC."""

    def __init__(self) -> None:
        self._quotes: dict[Symbol, Quote] = {}
        self._trades: dict[Symbol, LastTrade] = {}

    def hear(self, heard: FeedMessage) -> None:
        """Takes a quote or a trade in; what is older than what is known, and everything else, is left."""
        if isinstance(heard, Quote):
            known = self._quotes.get(heard.symbol)
            if known is None or known.time <= heard.time:
                self._quotes[heard.symbol] = heard
        elif isinstance(heard, LastTrade):
            traded = self._trades.get(heard.symbol)
            if traded is None or traded.time <= heard.time:
                self._trades[heard.symbol] = heard

    def price(self, symbol: Symbol, now: datetime) -> Decimal | None:
        """The price of a moment: the middle of a fresh and narrow quote, else a fresh trade, else None."""
        quote, trade = self._quotes.get(symbol), self._trades.get(symbol)
        if quote is not None and now - quote.time <= FRESH:
            middle = (quote.bid + quote.ask) / 2
            if abs(quote.ask - quote.bid) <= WIDEST * middle:
                return middle
        if trade is not None and now - trade.time <= FRESH:
            return trade.price
        return None

    def prices(self, symbols: Iterable[Symbol], now: datetime) -> Mapping[Symbol, Decimal]:
        """The prices of a moment, of those symbols that have one."""
        found = ((symbol, self.price(symbol, now)) for symbol in symbols)
        return {symbol: price for symbol, price in found if price is not None}
