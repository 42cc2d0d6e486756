"""The latest price of every symbol from a live feed: the middle of its quote, or its last trade."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal

from engine.domain.live import FeedMessage, LastTrade, Quote
from engine.domain.market import Symbol

FRESH = timedelta(minutes=15)
"""Greatest age of a quote or a trade that counts as a present price."""
WIDEST = Decimal("0.02")
"""Widest spread, as a fraction of the middle, of a quote that counts: outside a feed's hours quotes are far apart."""


class LivePrices:
    """The last quote and trade of each symbol. Times are the feed's, aware and UTC."""

    def __init__(self) -> None:
        self._quotes: dict[Symbol, Quote] = {}
        self._trades: dict[Symbol, LastTrade] = {}

    def update(self, message: FeedMessage) -> None:
        """Store a quote or a trade; older ones and other messages are ignored."""
        if isinstance(message, Quote):
            known = self._quotes.get(message.symbol)
            if known is None or known.time <= message.time:
                self._quotes[message.symbol] = message
        elif isinstance(message, LastTrade):
            traded = self._trades.get(message.symbol)
            if traded is None or traded.time <= message.time:
                self._trades[message.symbol] = message

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
        """Prices at a moment, of the symbols that have one."""
        prices = ((symbol, self.price(symbol, now)) for symbol in symbols)
        return {symbol: price for symbol, price in prices if price is not None}
