"""What a daily run is given, and what it comes to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from engine.cycle import Cycle
from engine.desk.hand import Halted
from engine.desk.looking import Pause
from engine.desk.venue import Venue
from engine.domain.decision import Decision
from engine.domain.market import Symbol
from engine.domain.order import Fill, Order
from engine.domain.run import CashFlow, EquityPoint, ModelUse
from engine.journal.writer import JournalWriter
from engine.market.as_of import Market
from engine.messages.events import Event
from engine.ports import Calendar, Clock
from engine.reports.model_use import Meter

KIND = "daily"


@dataclass(frozen=True, slots=True)
class DailySetting:
    """What a daily run needs, all of it given. `wall` tells when things are written; decisions are dated by the
    session. `market` reaches `session` and not beyond. `mode` and `broker` are configured."""

    run: str
    desk: str
    session: date
    symbols: tuple[Symbol, ...]
    market: Market
    calendar: Calendar
    cycle: Cycle
    name: str
    label: str
    meter: Meter
    journal: JournalWriter
    venue: Venue
    wall: Clock
    publish: Callable[[Event], None]
    pause: Pause
    mode: str = "auto"
    broker: str = "simulated"


@dataclass(frozen=True, slots=True)
class DailyResult:
    """What a daily run came to. `outcome` is `done`, `waiting` (orders in `waiting` need approval) or `halted` (by a
    person, see `halted`); `skipped` are sessions that passed without a run: they are never traded late."""

    run: str
    session: date
    books: EquityPoint
    decisions: tuple[Decision, ...]
    orders: tuple[Order, ...]
    fills: tuple[Fill, ...]
    cash_flows: tuple[CashFlow, ...]
    skipped: tuple[date, ...]
    model: ModelUse
    outcome: str = "done"
    waiting: tuple[Order, ...] = ()
    halted: Halted | None = None


def run_id(desk: str, session: date) -> str:
    """The id of a desk's daily run: the same session, the same run."""
    return f"{KIND}-{desk}-{session:%Y%m%d}"
