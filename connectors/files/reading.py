"""Days and prices of a foreign file's rows, by the calendar, the time zone and the currency of their symbol."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, tzinfo
from zoneinfo import ZoneInfo

from connectors.files.foreign_rows import Row
from connectors.files.rows import number
from connectors.files.stamps import read_stamp, session_of
from engine.domain.market import Exchanges, Symbol
from engine.errors import UsageError
from engine.market.trading_hours import FIRST_SESSION
from engine.ports import Calendar

_MINOR = 100
"""Pence in a pound, cents in a rand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The reading of stamps and prices.

    calendar_for, exchanges: the calendar of a symbol, its currency and time zone.
    now: the moment of the import.
    zone: that of times that have none.
    currency: that the file's prices are in, where a person has said so.
    """

    calendar_for: Callable[[Symbol], Calendar]
    exchanges: Exchanges
    now: datetime
    zone: tzinfo | None
    currency: str | None
    _sessions: dict[tuple[str, int], set[date]] = field(default_factory=dict)

    def check_session(self, day: date, symbol: Symbol) -> None:
        """Raise ValueError for a day on which a symbol's market was closed, or that is not over."""
        calendar = self.calendar_for(symbol)
        if day > calendar.last_closed(self.now):
            problem = f"the {day} session of {calendar.name} has not closed yet"
            raise ValueError(f"{problem}; remove the row, and import it after the close")
        if not self.was_open(day, symbol):
            raise ValueError(f"{day} is not a session of {calendar.name}; remove the row, or correct --tz or --symbol")

    def was_open(self, day: date, symbol: Symbol) -> bool:
        """False for a day on which a symbol's market was closed."""
        if day < FIRST_SESSION:
            return True  # before the calendar begins
        calendar = self.calendar_for(symbol)
        year = self._sessions.setdefault((calendar.name, day.year), set())
        if not year:
            year.update(calendar.sessions(date(day.year, 1, 1), date(day.year, 12, 31)))
        return day in year

    def day(self, text: str, symbol: Symbol) -> date:
        """The day of a bar's or an action's stamp. Raises ValueError."""
        return session_of(read_stamp(text, self.zone), self.zone or ZoneInfo(self.exchanges.of(symbol).zone))

    def price(self, name: str, row: Row, symbol: Symbol) -> str:
        """A price in the symbol's currency. Raises as `units` does."""
        text, units = row.values.get(name) or "", self.units(row, symbol)
        return text if units == 1 or not text else str(number(name, text) / units)

    def units(self, row: Row, symbol: Symbol) -> int:
        """Divisor that brings a row's prices into the symbol's currency: 100 for pence. Raises UsageError where a
        market writes both and nobody says which, ValueError for another currency."""
        exchange = self.exchanges.of(symbol)
        said = self.currency or row.values.get("currency") or ""
        if not said and exchange.minor:
            raise UsageError(
                f"{symbol}: prices of {exchange.calendar} are quoted in {exchange.currency} or in {exchange.minor}, a "
                f"hundredth of it; specify with --currency {exchange.minor}"
            )
        # Vendors write pence as GBX or GBp.
        if exchange.minor and (said.upper() == exchange.minor or said == f"{exchange.currency[:2]}p"):
            return _MINOR
        if said and said.upper() != exchange.currency:
            raise ValueError(f"prices in {said[:12]}, and {symbol} trades {exchange.described}; correct --currency")
        return 1
