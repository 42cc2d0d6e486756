"""The session that a desk is due to decide, derived without what a run needs: a finished one is seen at once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from engine import places

if TYPE_CHECKING:
    from engine.services import Services


def kept_sessions() -> Path | None:
    """The table of the exchange's sessions where a run has left it; looking makes none, which takes a second."""
    table = places.session_table()
    return table if table.is_file() else None


def symbols_of(services: Services | None) -> Sequence[str]:
    """The desk's symbols; without services those of a program without a configuration."""
    if services is not None:
        return services.symbols
    from connectors.demo import DEFAULT_WATCHLIST

    return DEFAULT_WATCHLIST


def desk_time(services: Services | None) -> datetime | None:
    """The moment by the clock that a desk goes by, this machine's or the broker's; None where the broker does not
    answer. Without services it is the desk of a program without a configuration. Raises ConfigError,
    CredentialsRefused."""
    if services is not None and services.broker is not None and services.goes_by_broker:
        return services.broker.time()
    from engine.clock import LiveClock

    return LiveClock().now()


def due_session(symbols: Sequence[str], requested: date | None = None, now: datetime | None = None) -> date | None:
    """The requested session, or the last completed one; None where that is not quickly known. Raises UsageError for a
    day that is no completed session."""
    table = kept_sessions()
    if not symbols or table is None:
        return None
    from engine.clock import LiveClock
    from engine.market.trading_hours import desk_calendar, session_to_decide

    return session_to_decide(desk_calendar(symbols, table), symbols, requested, now or LiveClock().now())
