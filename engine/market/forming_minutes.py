"""Bars of a minute that form from the prices of a live feed, and that go on where a service's own bars end."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

from engine.domain.live import MinuteBar
from engine.domain.market import Symbol

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
