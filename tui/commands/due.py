"""The session that a desk is due to decide, derived without what a run needs: a finished one is seen at once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import date, datetime
from typing import TYPE_CHECKING

from engine.app.desk.demo_history import is_demo
from engine.errors import PaperdeskError
from engine.settings import places

if TYPE_CHECKING:
    from engine.ports import Calendar
    from engine.services import Services
    from tui.settings.invocation import Invocation


def clock_time(services: Services | None) -> datetime | None:
    """The time (UTC) of the clock that a desk goes by, this machine's, the broker's, or of a demo desk the end of its
    session; None where that is not quickly known. Without services it is the desk of a program without a configuration.
    Raises ConfigError, CredentialsRefused, and what JournalReader raises."""
    if services is not None and not is_demo(services):
        from engine.clock import LiveClock

        broker = services.broker if services.goes_by_broker else None
        return LiveClock().now() if broker is None else broker.time()
    if (calendar := quick_calendar(services)) is None:
        return None
    from engine.app.desk.demo_history import session_reached
    from engine.app.records.desk_journal import DeskJournal
    from engine.market.trading_hours import completed_at
    from tui.settings.invocation import DEFAULT_DESK

    with DeskJournal(DEFAULT_DESK if services is None else services.desk) as journal:
        return completed_at(calendar, desk_symbols(services), session_reached(journal.reader))


def operator_time(invocation: Invocation) -> datetime:
    """The time (UTC) that a command of the operator's is dated to: a demo desk's own, as the app shows it, else this
    machine's, also where the desk's cannot be read: a kill switch waits for nothing."""
    from engine.app.desk.demo_history import by_desk_time
    from engine.clock import LiveClock

    with suppress(PaperdeskError):
        return by_desk_time(invocation.services()).clock.now()
    return LiveClock().now()


def due_session(services: Services | None, requested: date | None = None, now: datetime | None = None) -> date | None:
    """The requested session, or the last completed one at `now`, by default the time of `clock_time`. None where that
    is not quickly known: the broker does not answer, or no run has left the table of the exchange's sessions, which
    takes a second to make. Raises UsageError for a day that is no completed session, and as `clock_time` does."""
    now = now or clock_time(services)
    calendar = None if now is None else quick_calendar(services)
    if now is None or calendar is None:
        return None
    from engine.market.trading_hours import session_to_decide

    return session_to_decide(calendar, desk_symbols(services), requested, now)


def quick_calendar(services: Services | None) -> Calendar | None:
    """The calendar of a desk's decisions; None where no run has left the table of the exchange's sessions."""
    symbols = desk_symbols(services)
    if not symbols:
        return None
    from engine.domain.market import AROUND_THE_CLOCK, Exchanges
    from engine.market.trading_hours import desk_calendar

    exchanges = Exchanges() if services is None else services.config.exchanges
    name = exchanges.of_portfolio(symbols).calendar
    if name != AROUND_THE_CLOCK and places.stored_session_table(name) is None:
        return None
    return desk_calendar(symbols, places.stored_session_table, exchanges)


def desk_symbols(services: Services | None) -> Sequence[str]:
    """The symbols of a desk; without services those of a program without a configuration."""
    if services is not None:
        return services.symbols
    from connectors.demo.market import DEFAULT_WATCHLIST

    return DEFAULT_WATCHLIST
