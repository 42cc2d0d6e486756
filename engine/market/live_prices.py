"""The latest price of every symbol from a live feed: the middle of its quote, or its last trade.

Bars of a minute that form from the prices of a live feed, and that go on where a service's own bars end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

from engine.domain.live import FeedMessage, LastTrade, MinuteBar, Quote
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


STORED = 1440
"""Bars of a symbol that are stored: a day."""


class FormingMinutes:
    """The minutes in which a feed had prices. Times are the feed's, UTC."""

    def __init__(self) -> None:
        self._bars: dict[Symbol, deque[MinuteBar]] = {}

    def add(self, symbol: Symbol, price: Decimal, at: datetime) -> None:
        """Take a price in; one of an earlier minute than the last is ignored."""
        begins = at.replace(second=0, microsecond=0)
        bars = self._bars.setdefault(symbol, deque(maxlen=STORED))
        bar = MinuteBar(begins=begins, open=price, high=price, low=price, close=price)
        if not bars or bars[-1].begins < begins:
            bars.append(bar)
        elif bars[-1].begins == begins:
            bars[-1] = _joined(bars[-1], bar)

    def bars(self, symbol: Symbol) -> Sequence[MinuteBar]:
        """The bars of a symbol, in order."""
        return tuple(self._bars.get(symbol, ()))


def continued(earlier: Sequence[MinuteBar], forming: Sequence[MinuteBar]) -> list[MinuteBar]:
    """The bars of a service, and after its last those of a feed; the minute that both have takes in the feed's prices,
    which are later."""
    if not earlier:
        return list(forming)
    last = earlier[-1].begins
    same = [bar for bar in forming if bar.begins == last]
    return [*earlier[:-1], _joined(earlier[-1], *same), *(bar for bar in forming if bar.begins > last)]


def _joined(first: MinuteBar, *more: MinuteBar) -> MinuteBar:
    high, low = (max(bar.high for bar in (first, *more)), min(bar.low for bar in (first, *more)))
    return replace(first, high=high, low=low, close=(first, *more)[-1].close)
