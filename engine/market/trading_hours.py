"""Trading sessions: exchange calendars for shares, the UTC day around the clock for crypto.

exchange_calendars imports pandas, so its result is stored as a plain table and read from there by later processes.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from importlib.metadata import version
from pathlib import Path

from engine.domain.market import AROUND_THE_CLOCK, LISTED, Exchanges, Symbol, is_crypto
from engine.domain.order import Order, is_own
from engine.errors import ConfigError, DataError, MissingData, UsageError
from engine.ports import Calendar
from engine.settings.places import write_whole

# Explicit bounds: the library's own default ends a year after today, which would make a run depend on its day.
FIRST_SESSION = date(2000, 1, 1)
LAST_SESSION = date(2035, 12, 31)
_NEWER = "; bring exchange_calendars up to date"
LONGEST_REST = timedelta(days=14)
"""Longest time for which a market stays closed."""
AFTER_CLOSE = timedelta(seconds=1)
"""Time from the close to the decision."""

AT_MIDNIGHT = timedelta(hours=1)
"""Time after midnight UTC in which a decision on crypto still fills at the open of that UTC day: it is a decision on
the day before, which has only just ended."""

Tables = Callable[[str], Path | None]
"""The file that stores the sessions of a calendar between processes, by its name; None: they are not stored."""


def no_tables(name: str) -> None:
    """No calendar's sessions are stored."""


@dataclass(frozen=True, slots=True)
class ExchangeCalendar:
    """Sessions of an exchange with their UTC open and close, as sorted columns.

    Days are ordinals, times seconds since the epoch; `begins` and `ends` are the days between which the sessions are
    known.
    """

    name: str
    days: tuple[int, ...]
    opens: tuple[int, ...]
    closes: tuple[int, ...]
    begins: date = FIRST_SESSION
    ends: date = LAST_SESSION

    def sessions(self, first: date, last: date) -> Sequence[date]:
        """All sessions from first to last, both included. Raises MissingData outside the table; `last` may be as far
        after it as a market rests."""
        for day, latest in ((first, self.ends), (last, self.ends + LONGEST_REST)):
            if not self.begins <= day <= latest:
                advice = _NEWER if day > self.ends else ""
                known = f"{self.begins} to {self.ends}"
                raise MissingData(f"{day} lies outside the calendar {self.name} ({known}){advice}")
        start, stop = bisect_left(self.days, first.toordinal()), bisect_right(self.days, last.toordinal())
        return [date.fromordinal(day) for day in self.days[start:stop]]

    def opens_at(self, session: date) -> datetime:
        """Open of a session, UTC."""
        return datetime.fromtimestamp(self.opens[self.number(session)], UTC)

    def closes_at(self, session: date) -> datetime:
        """Close of a session, UTC."""
        return datetime.fromtimestamp(self.closes[self.number(session)], UTC)

    def last_closed(self, now: datetime) -> date:
        """The last session that had closed at a moment."""
        row = bisect_right(self.closes, int(now.timestamp())) - 1
        if row < 0:
            raise MissingData(f"{self.name}: no session had closed by {now:%Y-%m-%d}; the calendar begins later")
        return date.fromordinal(self.days[row])

    def number(self, session: date) -> int:
        """Row of a session in the table. Raises MissingData for a day that is no session."""
        row = bisect_left(self.days, session.toordinal())
        if row == len(self.days) or self.days[row] != session.toordinal():
            raise MissingData(f"{session} is not a session of {self.name}")
        return row

    def session_at(self, number: int) -> date:
        """The session of a row in the table."""
        return date.fromordinal(self.days[number])


@dataclass(frozen=True, slots=True)
class AroundTheClock:
    """A market that never closes: every UTC day is a session that ends at the next midnight."""

    name: str = AROUND_THE_CLOCK

    def sessions(self, first: date, last: date) -> Sequence[date]:
        """All days from first to last, both included."""
        return [first + timedelta(days=n) for n in range((last - first).days + 1)]

    def opens_at(self, session: date) -> datetime:
        """Midnight, UTC."""
        return datetime(session.year, session.month, session.day, tzinfo=UTC)

    def closes_at(self, session: date) -> datetime:
        """The next midnight, UTC."""
        return self.opens_at(session) + timedelta(days=1)

    def last_closed(self, now: datetime) -> date:
        """The last UTC day that is over."""
        return now.astimezone(UTC).date() - timedelta(days=1)

    def number(self, session: date) -> int:
        """Days since FIRST_SESSION."""
        return (session - FIRST_SESSION).days

    def session_at(self, number: int) -> date:
        """The day of a number."""
        return FIRST_SESSION + timedelta(days=number)


@cache
def exchange_calendar(name: str = "XNYS", table: Path | None = None) -> ExchangeCalendar:
    """Sessions of an exchange from FIRST_SESSION to LAST_SESSION.

    `table` stores them between processes; a table of another version of the library is replaced.
    """
    made_by = f"exchange_calendars {version('exchange_calendars')}"
    calendar = None if table is None else _stored_calendar(table, made_by, name)
    if calendar is None:
        calendar = _computed(name)
        if table is not None:
            _store_calendar(table, made_by, calendar)
    return calendar


def calendar_for(symbol: Symbol, tables: Tables = no_tables, exchanges: Exchanges = LISTED) -> Calendar:
    """The trading calendar of a symbol. Raises UsageError for one of no known exchange."""
    return desk_calendar((symbol,), tables, exchanges)


def desk_calendar(symbols: Iterable[Symbol], tables: Tables = no_tables, exchanges: Exchanges = LISTED) -> Calendar:
    """The calendar of a desk's decisions: the exchange's if one symbol is a share, else every UTC day. Raises
    UsageError for symbols that cannot be in one portfolio."""
    name = exchanges.of_portfolio(symbols).calendar
    return AroundTheClock() if name == AROUND_THE_CLOCK else exchange_calendar(name, tables(name))


def decision_time(calendar: Calendar, session: date) -> datetime:
    """Time of the decision that reads a session: one second after its close, UTC."""
    return calendar.closes_at(session) + AFTER_CLOSE


def previous_session(calendar: Calendar, session: date) -> date:
    """The session before another."""
    return calendar.sessions(session - LONGEST_REST, session - timedelta(days=1))[-1]


def session_after(calendar: Calendar, session: date) -> date:
    """The session after another, over any holidays. Raises MissingData where it is not known yet."""
    following = calendar.sessions(session + timedelta(days=1), session + LONGEST_REST)
    if not following:
        raise MissingData(f"{calendar.name}: no session after {session} is known{_NEWER}")
    return following[0]


def is_open(calendar: Calendar, now: datetime) -> bool:
    """True while a session goes on."""
    following = session_after(calendar, calendar.last_closed(now))
    return calendar.opens_at(following) <= now


def fill_session(calendar: Calendar, order: Order, sent: datetime) -> tuple[date, datetime]:
    """The session at whose open an order that was sent at a moment fills on a market with a price a day, and when
    that is, UTC: the first open after it was sent. Crypto has its open at midnight; where a cycle decided, one that is
    sent just after it fills there at once (docs/decisions/0005)."""
    own = AroundTheClock() if is_crypto(order.symbol) else calendar
    grace = AT_MIDNIGHT if is_crypto(order.symbol) and not is_own(order.id) else timedelta()
    session = session_after(calendar, max(order.session, sent.date() - timedelta(days=2)))
    while own.opens_at(session) + grace <= sent:
        session = session_after(calendar, session)
    return session, max(own.opens_at(session), sent)


def step_at(calendar: Calendar, session: date, now: datetime) -> float:
    """A moment as a step: the number of the last completed session plus the elapsed part of the next, less than one."""
    following = session_after(calendar, session)
    opens, closes = calendar.opens_at(following), calendar.closes_at(following)
    return calendar.number(session) + min(max((now - opens) / (closes - opens), 0.0), 1 - 2**-8)


def session_to_decide(calendar: Calendar, symbols: Iterable[Symbol], requested: date | None, now: datetime) -> date:
    """The session that a desk decides for: the requested one, or the last completed one.

    With crypto among the symbols a session is complete once its UTC day is over too. Raises UsageError for a day that
    is no completed session.
    """
    last = calendar.last_closed(now - AFTER_CLOSE)
    if any(is_crypto(symbol) for symbol in symbols) and AroundTheClock().closes_at(last) > now - AFTER_CLOSE:
        last = calendar.last_closed(calendar.closes_at(last) - timedelta(seconds=1))
    if requested is None:
        return last
    if requested > last:
        raise UsageError(f"--session {requested} is not completed; the last completed session is {last}")
    if not calendar.sessions(requested, requested):
        raise UsageError(f"--session {requested}: {calendar.name} was closed that day")
    return requested


def completed_at(calendar: Calendar, symbols: Iterable[Symbol], session: date) -> datetime:
    """The moment from which `session_to_decide` gives a session, UTC."""
    return books_close(calendar, symbols, session) + AFTER_CLOSE


def books_close(calendar: Calendar, symbols: Iterable[Symbol], session: date) -> datetime:
    """The moment that the books of a session are of, UTC: its close, with crypto among the symbols the end of its UTC
    day where that is later."""
    closes = calendar.closes_at(session)
    if any(is_crypto(symbol) for symbol in symbols):
        closes = max(closes, AroundTheClock().closes_at(session))
    return closes


@cache
def _computed(name: str) -> ExchangeCalendar:
    import exchange_calendars
    from exchange_calendars.errors import CalendarError

    try:
        made = exchange_calendars.get_calendar(name)
        # Some exchanges publish their holidays a year ahead, and some records begin late.
        known = made.bound_min(), made.bound_max()
        begins = FIRST_SESSION if known[0] is None else max(FIRST_SESSION, known[0].date())
        ends = LAST_SESSION if known[1] is None else min(LAST_SESSION, known[1].date())
        schedule = exchange_calendars.get_calendar(name, start=str(begins), end=str(ends)).schedule
    except (CalendarError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise ConfigError(f"unknown calendar {name}: {reason[:200]} (see exchange_calendars)") from None
    return ExchangeCalendar(
        name,
        tuple(stamp.date().toordinal() for stamp in schedule.index),
        tuple(int(stamp.timestamp()) for stamp in schedule["open"]),
        tuple(int(stamp.timestamp()) for stamp in schedule["close"]),
        begins,
        ends,
    )


def _stored_calendar(table: Path, made_by: str, name: str) -> ExchangeCalendar | None:
    """The calendar of a table; None where it is of another version, unreadable or damaged: the table is only a
    shortcut."""
    try:
        plain = json.loads(table.read_text(encoding="utf-8"))
        if (plain["made_by"], plain["name"]) != (made_by, name):
            return None
        days, opens, closes = (tuple(plain[column]) for column in ("days", "opens", "closes"))
        begins, ends = (date.fromisoformat(plain[bound]) for bound in ("begins", "ends"))
    except (ValueError, KeyError, TypeError, OSError):
        return None
    whole = len(days) == len(opens) == len(closes) and all(type(n) is int for n in (*days, *opens, *closes))
    return ExchangeCalendar(name, days, opens, closes, begins, ends) if whole else None


def _store_calendar(table: Path, made_by: str, calendar: ExchangeCalendar) -> None:
    plain = {"made_by": made_by, "name": calendar.name, "begins": str(calendar.begins), "ends": str(calendar.ends)}
    text = json.dumps({**plain, "days": calendar.days, "opens": calendar.opens, "closes": calendar.closes})
    with suppress(ConfigError, DataError):  # without the table the next process computes it again
        write_whole(table, text)
