"""Which session a desk is to decide for, found without what a run needs: a finished one is seen at once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path

from engine import places
from tui.invocation import DEFAULT_DESK, Invocation


def desk_of(invocation: Invocation) -> tuple[str, Sequence[str]]:
    """The desk of a call and its symbols, as the wiring takes them, which is not loaded for that. Raises
    ConfigError."""
    if invocation.configured:
        services = invocation.services()
        return services.desk, services.symbols
    from connectors.demo import DEFAULT_WATCHLIST

    return DEFAULT_DESK, DEFAULT_WATCHLIST


def kept_sessions() -> Path | None:
    """The table of the exchange's sessions where a run has left it; looking makes none, which takes a second."""
    table = places.cache_dir() / "sessions-XNYS.json"
    return table if table.is_file() else None


def desk_now(invocation: Invocation) -> datetime | None:
    """The moment by the clock that the desk of a call goes by, this machine's or the broker's; None where the broker
    does not say. Raises ConfigError, CredentialsRefused."""
    if invocation.configured:
        services = invocation.services()
        if services.broker is not None and services.goes_by_broker:
            return services.broker.time()
    from engine.clock import LiveClock

    return LiveClock().now()


def due_session(symbols: Sequence[str], asked: date | None = None, now: datetime | None = None) -> date | None:
    """The session that is asked for, or the last completed one; None where that is not quickly known. Raises
    UsageError for a day that is no completed session."""
    table = kept_sessions()
    if not symbols or table is None:
        return None
    from engine.clock import LiveClock
    from engine.market.trading_hours import desk_calendar, session_to_decide

    return session_to_decide(desk_calendar(symbols, table), symbols, asked, now or LiveClock().now())
