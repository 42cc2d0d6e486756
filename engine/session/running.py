"""What a desk's daily run and its cycles within a session have in common: begin, decide once, hand over, end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import date, datetime
from decimal import Decimal

from engine.cycle.turn import CycleResult
from engine.domain.market import Symbol
from engine.domain.order import Order
from engine.domain.run import RunOutcome
from engine.execution.controls import halted
from engine.execution.submission import Submission, SubmissionResult, SubmissionTerms
from engine.execution.venue import SettledSession
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.messages.events import RunFinished, RunStarted
from engine.session.context import DeskRunResult, SessionContext

Prices = Callable[[Symbol], Decimal]


def begin(setting: SessionContext) -> None:
    """Writes down, and tells, that a run has begun or goes on."""
    now, session, number = setting.wall.now(), setting.session, setting.number
    entry = RunEntry(
        id=setting.run,
        kind=setting.kind,
        name=setting.name,
        started=now,
        label=setting.label,
        spec=None,
        symbols=setting.symbols,
        session=session,
        cycle=number,
    )
    setting.journal.run_started(entry)
    setting.publish(
        RunStarted(
            run=setting.run,
            time=now,
            kind=setting.kind,
            name=setting.name,
            label=setting.label,
            symbols=setting.symbols,
            first=session,
            last=session,
            sessions=1,
            steps=setting.cycle.preset.questions,
        )
    )


async def decide_and_trade(
    setting: SessionContext,
    decide: Callable[[], Awaitable[CycleResult]],
    prices: Prices,
    until: datetime | None = None,
) -> tuple[CycleResult, SubmissionResult]:
    """A verdict, and its orders handed over by `until` at the latest. One that stands from before a kill or a halt is
    not asked for again; a desk that a person has halted decides nothing. `prices` are those that are decided on."""
    with JournalReader(setting.journal.path) as reader:
        stopped = halted(reader)
        decided = reader.decisions(run=setting.run)
        intended = tuple(entry.order for entry in reader.orders(run=setting.run))
    if stopped is not None:
        return CycleResult(decided, intended), SubmissionResult(intended, halted=stopped)
    verdict = CycleResult(decided, intended) if decided else await decide()
    return verdict, await _hand_over(setting, verdict.orders, prices, until)


def end(
    setting: SessionContext,
    settled: Sequence[SettledSession],
    verdict: CycleResult,
    handed: SubmissionResult,
    value: Decimal,
    skipped: tuple[date, ...] = (),
) -> DeskRunResult:
    """Writes down, and tells, that the run has ended, and what it came to; `value` is the portfolio's."""
    outcome = RunOutcome.WAITING if handed.waiting else RunOutcome.DONE
    outcome = RunOutcome.HALTED if handed.halted else outcome
    books, detail = setting.venue.books, _halt_words(handed)
    assert books is not None  # settle() opens them
    setting.journal.run_finished(
        setting.run,
        outcome,
        setting.wall.now(),
        value=value,
        detail=detail,
        model=setting.meter.use,
        extra={"broker": setting.broker, "mode": setting.mode},
    )
    setting.publish(RunFinished(setting.run, setting.wall.now(), outcome, value, detail))
    return DeskRunResult(
        run=setting.run,
        session=setting.session,
        books=books,
        decisions=verdict.decisions,
        orders=handed.orders,
        fills=tuple(fill for one in settled for fill in one.fills),
        cash_flows=tuple(flow for one in settled for flow in one.cash_flows),
        skipped=skipped,
        model=setting.meter.use,
        outcome=outcome,
        waiting=handed.waiting,
        halted=handed.halted,
    )


def value_of(setting: SessionContext, prices: Prices) -> Decimal:
    """What the desk's portfolio is worth."""
    portfolio = setting.venue.portfolio
    return portfolio.value({symbol: prices(symbol) for symbol in portfolio.positions})


async def _hand_over(
    setting: SessionContext, orders: Sequence[Order], prices: Prices, until: datetime | None
) -> SubmissionResult:
    sizing = setting.cycle.preset.sizing
    terms = SubmissionTerms(
        run=setting.run,
        session=setting.session,
        symbols=setting.symbols,
        mode=setting.mode,
        floor=value_of(setting, prices) * sizing.cash_floor,
        allow_short=sizing.allow_short,
        prices=prices,
        until=until,
    )
    handing = Submission(
        terms, setting.venue, setting.journal, setting.calendar, setting.wall, setting.pause, setting.publish
    )
    return await handing.hand_over(orders)


def _halt_words(handed: SubmissionResult) -> str:
    if handed.halted is None:
        return ""
    return f"halted since {handed.halted.since:%Y-%m-%d %H:%M} UTC" + (
        f": {handed.halted.reason}" if handed.halted.reason else ""
    )
