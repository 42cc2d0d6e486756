"""What a daily run is given, and what it comes to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from engine.cycle.cycle import Cycle
from engine.domain.decision import Decision
from engine.domain.market import Symbol
from engine.domain.order import Fill, Order
from engine.domain.run import CashFlow, EquityPoint, ModelUse, RunKind, RunOutcome, TradingMode
from engine.execution.controls import Halted
from engine.execution.venue import Venue
from engine.journal.writer import JournalWriter
from engine.market.as_of import Market
from engine.messages.events import Event
from engine.ports import Calendar, Clock, Pause
from engine.session.cost_meter import CostMeter
from engine.session.schedule import DAILY


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionContext:
    """What a run of a desk needs, all of it given. `wall` tells when things are written; decisions are dated by the
    session. `market` reaches `session` and, of shares, not beyond. `mode` and `broker` are configured; `number` is the
    cycle's: the daily run is the first that rests on a session, those within the next count on."""

    run: str
    desk: str
    session: date
    symbols: tuple[Symbol, ...]
    market: Market
    calendar: Calendar
    cycle: Cycle
    name: str
    label: str
    meter: CostMeter
    journal: JournalWriter
    venue: Venue
    wall: Clock
    publish: Callable[[Event], None]
    pause: Pause
    mode: TradingMode = TradingMode.AUTO
    broker: str = "simulated"
    number: int = DAILY

    @property
    def kind(self) -> RunKind:
        """What kind of run it is."""
        return RunKind.DAILY if self.number == DAILY else RunKind.INTRADAY


@dataclass(frozen=True, slots=True, kw_only=True)
class DeskRunResult:
    """What a run came to: `books` are those at the last close. `outcome` is DONE, WAITING (orders in `waiting` need
    approval) or HALTED (by a person, see `halted`); `skipped` are sessions that passed without a run: they are never
    traded late."""

    run: str
    session: date
    books: EquityPoint
    decisions: tuple[Decision, ...]
    orders: tuple[Order, ...]
    fills: tuple[Fill, ...]
    cash_flows: tuple[CashFlow, ...]
    skipped: tuple[date, ...]
    model: ModelUse
    outcome: RunOutcome = RunOutcome.DONE
    waiting: tuple[Order, ...] = ()
    halted: Halted | None = None


def run_id(desk: str, session: date, number: int = DAILY) -> str:
    """The id of a desk's run: the same session and cycle, the same run."""
    if number == DAILY:
        return f"{RunKind.DAILY}-{desk}-{session:%Y%m%d}"
    return f"{RunKind.INTRADAY}-{desk}-{session:%Y%m%d}-{number}"
