"""What a desk's daily run and its cycles within a session have in common: begin, decide once, hand over, end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import date, datetime
from decimal import Decimal

from engine.desk.hand import halted
from engine.desk.handing_over import Handed, HandingOver, Terms
from engine.desk.setting import DailyResult, DailySetting
from engine.domain.market import Symbol
from engine.domain.order import Order
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.messages.events import RunFinished, RunStarted
from engine.simulation.desk_broker import Settled
from engine.turn import Verdict

Prices = Callable[[Symbol], Decimal]


def begin(setting: DailySetting) -> None:
    """Writes down, and tells, that a run has begun or goes on."""
    now, session, number = setting.wall.now(), setting.session, setting.number
    entry = RunEntry(
        setting.run, setting.kind, setting.name, now, setting.label, None, setting.symbols, session, number
    )
    setting.journal.run_started(entry)
    setting.publish(
        RunStarted(
            setting.run,
            now,
            setting.kind,
            setting.name,
            setting.label,
            setting.symbols,
            session,
            session,
            1,
            setting.cycle.preset.questions,
        )
    )


async def decide_and_trade(
    setting: DailySetting,
    decide: Callable[[], Awaitable[Verdict]],
    prices: Prices,
    until: datetime | None = None,
) -> tuple[Verdict, Handed]:
    """A verdict, and its orders handed over by `until` at the latest. One that stands from before a kill or a halt is
    not asked for again; a desk that a person has halted decides nothing. `prices` are those that are decided on."""
    with JournalReader(setting.journal.path) as reader:
        stopped = halted(reader)
        decided = reader.decisions(run=setting.run)
        intended = tuple(entry.order for entry in reader.orders(run=setting.run))
    if stopped is not None:
        return Verdict(decided, intended), Handed(intended, halted=stopped)
    verdict = Verdict(decided, intended) if decided else await decide()
    return verdict, await _hand_over(setting, verdict.orders, prices, until)


def end(
    setting: DailySetting,
    settled: Sequence[Settled],
    verdict: Verdict,
    handed: Handed,
    value: Decimal,
    skipped: tuple[date, ...] = (),
) -> DailyResult:
    """Writes down, and tells, that the run has ended, and what it came to; `value` is the portfolio's."""
    outcome = "halted" if handed.halted else "waiting" if handed.waiting else "done"
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
    return DailyResult(
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


def value_of(setting: DailySetting, prices: Prices) -> Decimal:
    """What the desk's portfolio is worth."""
    portfolio = setting.venue.portfolio
    return portfolio.value({symbol: prices(symbol) for symbol in portfolio.positions})


async def _hand_over(setting: DailySetting, orders: Sequence[Order], prices: Prices, until: datetime | None) -> Handed:
    sizing = setting.cycle.preset.sizing
    terms = Terms(
        run=setting.run,
        session=setting.session,
        symbols=setting.symbols,
        mode=setting.mode,
        floor=value_of(setting, prices) * sizing.cash_floor,
        allow_short=sizing.allow_short,
        prices=prices,
        until=until,
    )
    handing = HandingOver(
        terms, setting.venue, setting.journal, setting.calendar, setting.wall, setting.pause, setting.publish
    )
    return await handing.hand_over(orders)


def _halt_words(handed: Handed) -> str:
    if handed.halted is None:
        return ""
    return f"halted since {handed.halted.since:%Y-%m-%d %H:%M} UTC" + (
        f": {handed.halted.reason}" if handed.halted.reason else ""
    )
