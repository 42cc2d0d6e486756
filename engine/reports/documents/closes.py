"""Closes after a decision, counted in the symbol's own sessions, held or not: one way for trails and tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

from engine.domain.decision import DIRECTIONS, Action
from engine.domain.market import Symbol, from_nano
from engine.market.trading_hours import calendar_for
from engine.ports import Calendar
from engine.settings import places

if TYPE_CHECKING:
    from engine.market.as_of import MarketAsOf

HORIZONS = (1, 5, 20)
"""Sessions after the decision whose closes are shown."""
ALL_BARS = 100_000


@dataclass(frozen=True, slots=True)
class CloseAfter:
    """The close of a symbol some sessions after a decision; `change` is a fraction, splits in between undone."""

    sessions: int
    session: date
    close: Decimal
    change: float


@dataclass(frozen=True, slots=True)
class SymbolCloses:
    """Closes of one symbol by session, as traded; `split_by` is what each is divided by to compare it with others."""

    calendar: Calendar
    closes: Mapping[date, Decimal]
    split_by: Mapping[date, Decimal]

    @classmethod
    def of(
        cls, market: MarketAsOf | None, symbol: Symbol, in_books: Iterable[tuple[date, Decimal]] = ()
    ) -> SymbolCloses:
        """The closes that a market has of a symbol; those of the books where it has none."""
        if market is None or symbol not in market.symbols:
            return cls(calendar_for(symbol, places.session_table), dict(in_books), {})
        calendar = market.calendar(symbol)
        if not market.count(symbol):
            return cls(calendar, dict(in_books), {})
        bars = market.bars(symbol, ALL_BARS)
        days = [bars.session(row) for row in range(len(bars))]
        traded = {day: market.close_of(symbol, day) for day in days}
        return cls(calendar, traded, {day: traded[day] / from_nano(bars.close[row]) for row, day in enumerate(days)})

    def after(self, session: date) -> tuple[CloseAfter, ...]:
        """The closes 1, 5 and 20 sessions after one, as far as they and its own are known."""
        number = self.calendar.number(session)
        days = [self.calendar.session_at(number + sessions) for sessions in HORIZONS]
        return tuple(found for day in days if (found := self._since(session, day)) is not None)

    def latest(self, session: date) -> CloseAfter | None:
        """The last close that is known after a session; None without one."""
        day = max(self.closes, default=session)
        return self._since(session, day) if day > session else None

    def _since(self, session: date, day: date) -> CloseAfter | None:
        start, close = self._level(session), self._level(day)
        if not start or close is None:
            return None
        sessions = self.calendar.number(day) - self.calendar.number(session)
        return CloseAfter(sessions, day, self.closes[day], float(close / start - 1))

    def _level(self, session: date) -> Decimal | None:
        close = self.closes.get(session)
        return None if close is None else close / self.split_by.get(session, 1)


def result_of(action: Action, change: float | None) -> float | None:
    """A change of the price as the result of a decision: what a purchase gains by it, or a sale avoids. None for a
    decision that did not trade."""
    direction = DIRECTIONS.get(action)
    return None if direction is None or change is None else direction * change
