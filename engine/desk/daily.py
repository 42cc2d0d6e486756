"""The daily run: settle what has passed, decide for the last completed session, hand the orders over; once.

A run that was killed goes on where it stopped: closed sessions are closed, decisions that stand are not asked for
again, orders that were handed over are not handed over twice. Source: papers.md D2, D4.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from engine.desk.earlier_runs import close_abandoned, skip_missed
from engine.desk.hand import halted
from engine.desk.handing_over import Handed, HandingOver, Terms
from engine.desk.learning import learn
from engine.desk.setting import KIND, DailyResult, DailySetting
from engine.domain.market import Symbol
from engine.domain.order import Order
from engine.errors import StaleData, UsageError
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.market.trading_hours import decision_time, session_to_decide
from engine.messages.events import RunFinished, RunStarted
from engine.simulation.recorder import JournalRecorder
from engine.simulation.seen_inputs import parts_of
from engine.simulation.window import previous_session
from engine.turn import Notebook, Turn, Verdict


async def run_daily(setting: DailySetting) -> DailyResult:
    """One daily run. Raises UsageError for a session that the books, or the time, have passed, StaleData where a
    symbol's bars do not reach the session, and what the venue raises: BooksDisagree, TryAgainLater, NetworkError,
    CredentialsRefused, ConfigError."""
    _check(setting)
    journal, session = setting.journal, setting.session
    close_abandoned(setting)
    skipped = skip_missed(setting)
    journal.run_started(
        RunEntry(setting.run, KIND, setting.name, setting.wall.now(), setting.label, None, setting.symbols, session, 1)
    )
    now = setting.wall.now()
    started = RunStarted(setting.run, now, KIND, setting.name, setting.label, setting.symbols, session, session, 1)
    setting.publish(started)
    settled = await setting.venue.settle(session)
    notebook = learn(setting, settled)
    verdict, handed = await _decide_and_trade(setting, notebook)
    outcome = "halted" if handed.halted else "waiting" if handed.waiting else "done"
    books = setting.venue.books
    assert books is not None  # settle() opens them
    detail = _halt_words(handed)
    journal.run_finished(
        setting.run,
        outcome,
        setting.wall.now(),
        value=books.value,
        detail=detail,
        model=setting.meter.use,
        extra={"broker": setting.broker, "mode": setting.mode},
    )
    setting.publish(RunFinished(setting.run, setting.wall.now(), outcome, books.value, detail))
    return DailyResult(
        run=setting.run,
        session=session,
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


def _check(setting: DailySetting) -> None:
    session, books = setting.session, setting.venue.books
    if books is not None and books.session > session:
        raise UsageError(
            f"the books of {setting.desk} are closed up to {books.session}: {session} can no longer be decided"
        )
    if setting.venue.real_time:
        latest = session_to_decide(setting.calendar, setting.symbols, None, setting.wall.now())
        if latest != session:
            raise UsageError(
                f"--session {session} has passed at the broker: {latest} is the last completed session, and the only "
                "one that can be traded"
            )
    for symbol in setting.symbols:
        history = setting.market.histories[symbol]
        if not len(history) or history.session(-1) < session:
            ends = f"end on {history.session(-1)}" if len(history) else "are none"
            raise StaleData(
                f"{symbol}: its bars {ends}, and {session} is to be decided: fetch newer ones and run again"
            )


async def _decide_and_trade(setting: DailySetting, notebook: Notebook) -> tuple[Verdict, Handed]:
    with JournalReader(setting.journal.path) as reader:
        stopped = halted(reader)
        decided = reader.decisions(run=setting.run)
        intended = tuple(entry.order for entry in reader.orders(run=setting.run))
    if stopped is not None:
        return Verdict(decided, intended), Handed(intended, halted=stopped)
    # A verdict that stands from before a kill or a halt is not asked for again.
    verdict = Verdict(decided, intended) if decided else await _decide(setting, notebook)
    return verdict, await _hand_over(setting, verdict.orders)


async def _decide(setting: DailySetting, notebook: Notebook) -> Verdict:
    session, market, venue = setting.session, setting.market, setting.venue
    now = decision_time(setting.calendar, session)
    known = market.at(now)
    turn = Turn(
        run=setting.run,
        desk=setting.desk,
        session=session,
        number=1,
        symbols=setting.symbols,
        market=known,
        news_after=decision_time(setting.calendar, previous_session(setting.calendar, session)),
        portfolio=venue.portfolio,
        value=_value(setting),
        notebook=notebook,
        reserved=venue.means.reserved,
        queued=venue.means.queued,
        step=setting.calendar.number(session),
        whole_shares=await venue.whole_shares(setting.symbols),
    )
    verdict = await setting.cycle.run(turn)
    with setting.journal.together():
        setting.journal.inputs(setting.run, turn.number, parts_of(turn, market, setting.cycle.bars))
        JournalRecorder(setting.journal, setting.run, setting.desk, setting.wall).decided(verdict)
    return verdict


async def _hand_over(setting: DailySetting, orders: Sequence[Order]) -> Handed:
    sizing = setting.cycle.preset.sizing
    terms = Terms(
        run=setting.run,
        session=setting.session,
        symbols=setting.symbols,
        mode=setting.mode,
        floor=_value(setting) * sizing.cash_floor,
        allow_short=sizing.allow_short,
        prices=lambda symbol: _close(setting, symbol),
    )
    handing = HandingOver(
        terms, setting.venue, setting.journal, setting.calendar, setting.wall, setting.pause, setting.publish
    )
    return await handing.hand_over(orders)


def _value(setting: DailySetting) -> Decimal:
    """What the portfolio is worth at the closes that are decided on."""
    portfolio = setting.venue.portfolio
    return portfolio.value({symbol: _close(setting, symbol) for symbol in portfolio.positions})


def _close(setting: DailySetting, symbol: Symbol) -> Decimal:
    return setting.market.at(decision_time(setting.calendar, setting.session)).close(symbol)


def _halt_words(handed: Handed) -> str:
    if handed.halted is None:
        return ""
    return f"halted since {handed.halted.since:%Y-%m-%d %H:%M} UTC" + (
        f": {handed.halted.reason}" if handed.halted.reason else ""
    )
