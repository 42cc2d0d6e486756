"""The session that a desk is due to decide, derived without what a run needs: a finished one is seen at once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING

from engine import places

if TYPE_CHECKING:
    from engine.services import Services


def due_session(services: Services | None, requested: date | None = None) -> date | None:
    """The requested session, or the last completed one by the clock that a desk goes by, this machine's or the
    broker's. None where that is not quickly known: the broker does not answer, or no run has left the table of the
    exchange's sessions, which takes a second to make. Without services it is the desk of a program without a
    configuration. Raises UsageError for a day that is no completed session, ConfigError, CredentialsRefused."""
    from engine.clock import LiveClock

    symbols: Sequence[str]
    if services is None:
        from connectors.demo.market import DEFAULT_WATCHLIST

        symbols, broker = DEFAULT_WATCHLIST, None
    else:
        symbols, broker = services.symbols, services.broker if services.goes_by_broker else None
    now = LiveClock().now() if broker is None else broker.time()
    table = places.session_table()
    if now is None or not symbols or not table.is_file():
        return None
    from engine.market.trading_hours import desk_calendar, session_to_decide

    return session_to_decide(desk_calendar(symbols, table), symbols, requested, now)
