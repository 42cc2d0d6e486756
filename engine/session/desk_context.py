"""The context of one run of a desk, and its result."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from engine.domain.decision import Decision
from engine.domain.order import Fill, Order
from engine.domain.run import CashFlow, EquityPoint, ModelUse, RunKind, RunOutcome, TradingMode
from engine.execution.controls import Halted
from engine.execution.venue import Venue
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.ports import Pause
from engine.session.context import SessionContext
from engine.session.cost_meter import CostMeter
from engine.session.schedule import DAILY


def run_id(desk: str, session: date, number: int = DAILY) -> str:
    """The id of a desk's run: the same session and cycle, the same run."""
    if number == DAILY:
        return f"{RunKind.DAILY}-{desk}-{session:%Y%m%d}"
    return f"{RunKind.INTRADAY}-{desk}-{session:%Y%m%d}-{number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeskRun(SessionContext):
    """The context of one run of a desk: its one session, and what its journal and its reports need.

    session: the last completed session, which is decided on
    number: the cycle's number; DAILY for the run after the close
    name: name of the preset
    label: how the model that decides is introduced
    meter: counts what the models cost
    journal: the desk's journal, to write
    reader: the same journal, to read
    pause: waits so many seconds
    mode: auto, ask or observe
    broker: the kind of broker, as configured
    """

    venue: Venue
    session: date
    number: int = DAILY
    name: str
    label: str
    meter: CostMeter
    journal: JournalWriter
    reader: JournalReader
    pause: Pause
    mode: TradingMode = TradingMode.AUTO
    broker: str = "simulated"

    @property
    def kind(self) -> RunKind:
        """The kind of run."""
        return RunKind.DAILY if self.number == DAILY else RunKind.INTRADAY


@dataclass(frozen=True, slots=True, kw_only=True)
class DeskRunResult:
    """The result of a desk's run.

    run: id of the run
    session: the session that was decided on
    books: the books at its close
    decisions: in the order of the symbols
    orders: in their present states
    fills: what was filled in the sessions that were settled, or, within a session, by this run
    cash_flows: what was paid in the sessions that were settled
    skipped: sessions that passed without a run: they are never traded late
    model: what the models were asked, and its cost
    outcome: done, waiting (orders need approval) or halted (by a person)
    waiting: orders that need approval
    halted: the halt that a person has set
    """

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
