"""The daily run: settle what has passed, decide for the last completed session, hand the orders over; once.

A run that was killed goes on where it stopped: closed sessions are closed, decisions that stand are not asked for
again, orders that were handed over are not handed over twice. Source: papers.md D2, D4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import pairwise

from engine.cycle import Cycle
from engine.domain.decision import Decision
from engine.domain.market import Symbol
from engine.domain.order import Fill, Order, OrderState
from engine.domain.run import CashFlow, EquityPoint, ModelUse
from engine.errors import StaleData, UsageError
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.market.as_of import Market
from engine.market.trading_hours import decision_time
from engine.messages.events import Event, OrderFilled, OrderMoved, RunFinished, RunStarted, SessionSettled
from engine.ports import Calendar, Clock
from engine.reports.model_use import Meter
from engine.simulation.desk_broker import DeskBroker, Settled
from engine.simulation.recorder import JournalRecorder
from engine.simulation.window import previous_session
from engine.trading.reward import known_books, outcomes
from engine.turn import Notebook, Turn, Verdict

KIND = "daily"


@dataclass(frozen=True, slots=True)
class DailySetting:
    """What a daily run needs, all of it given. `wall` tells when things are written; decisions are dated by the
    session. `market` reaches `session` and not beyond."""

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
    broker: DeskBroker
    wall: Clock
    publish: Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class DailyResult:
    """What a daily run came to. `skipped` are sessions that passed without a run: they are never traded late."""

    run: str
    session: date
    books: EquityPoint
    decisions: tuple[Decision, ...]
    orders: tuple[Order, ...]
    fills: tuple[Fill, ...]
    cash_flows: tuple[CashFlow, ...]
    skipped: tuple[date, ...]
    model: ModelUse


def run_id(desk: str, session: date) -> str:
    """The id of a desk's daily run: the same session, the same run."""
    return f"{KIND}-{desk}-{session:%Y%m%d}"


async def run_daily(setting: DailySetting) -> DailyResult:
    """One daily run. Raises UsageError for a session that the books have passed, StaleData where a symbol's bars do
    not reach the session."""
    _check(setting)
    journal, session = setting.journal, setting.session
    _close_abandoned(setting)
    skipped = _skip_missed(setting)
    journal.run_started(
        RunEntry(setting.run, KIND, setting.name, setting.wall.now(), setting.label, None, setting.symbols, session, 1)
    )
    now = setting.wall.now()
    started = RunStarted(setting.run, now, KIND, setting.name, setting.label, setting.symbols, session, session, 1)
    setting.publish(started)
    settled = setting.broker.settle(session)
    notebook = _learn(setting, settled)
    verdict = await _decide(setting, notebook)
    orders = _hand_over(setting, verdict.orders)
    books = setting.broker.books
    assert books is not None  # settle() opens them
    journal.run_finished(setting.run, "done", setting.wall.now(), value=books.value, model=setting.meter.use)
    setting.publish(RunFinished(setting.run, setting.wall.now(), "done", books.value, ""))
    fills = tuple(fill for one in settled for fill in one.fills)
    flows = tuple(flow for one in settled for flow in one.cash_flows)
    return DailyResult(setting.run, session, books, verdict.decisions, orders, fills, flows, skipped, setting.meter.use)


def _check(setting: DailySetting) -> None:
    books = setting.broker.books
    if books is not None and books.session > setting.session:
        raise UsageError(
            f"the books of {setting.desk} are closed up to {books.session}: {setting.session} can no longer be decided"
        )
    for symbol in setting.symbols:
        history = setting.market.histories[symbol]
        if not len(history) or history.session(-1) < setting.session:
            ends = f"end on {history.session(-1)}" if len(history) else "are none"
            raise StaleData(
                f"{symbol}: its bars {ends}, and {setting.session} is to be decided: fetch newer ones and run again"
            )


def _close_abandoned(setting: DailySetting) -> None:
    """Ends earlier runs that were killed and never gone on with: what they, or runs that failed, meant to trade is
    not traded late."""
    with JournalReader(setting.journal.path) as reader:
        earlier = [run for run in reader.runs(KIND) if run.id != setting.run]
        open_orders = reader.orders(open_only=True)
    abandoned = {run.id for run in earlier}
    for entry in open_orders:
        if entry.run in abandoned and entry.order.state is OrderState.INTENDED:
            expired = entry.order.moved(OrderState.EXPIRED)
            detail = "its run did not come to an end and its session has passed"
            setting.journal.order_moved(expired, setting.wall.now(), detail=detail)
    for run in earlier:
        if run.outcome is None:
            detail = "killed, and not gone on with while it could be"
            setting.journal.run_finished(run.id, "failed", setting.wall.now(), detail=detail)


def _skip_missed(setting: DailySetting) -> tuple[date, ...]:
    """Writes down the sessions that passed without a run since the last one."""
    with JournalReader(setting.journal.path) as reader:
        runs = [run for run in reader.runs(KIND) if run.session is not None]
    taken = [run.session for run in runs if run.session is not None and run.outcome != "skipped"]
    if not taken or max(taken) >= setting.session:
        return ()
    missed = setting.calendar.sessions(max(taken) + timedelta(days=1), setting.session - timedelta(days=1))
    written = {run.session for run in runs}
    for session in missed:
        if session in written:
            continue
        identity, now = run_id(setting.desk, session), setting.wall.now()
        entry = RunEntry(identity, KIND, setting.name, now, setting.label, None, setting.symbols, session, 1)
        with setting.journal.together():
            setting.journal.run_started(entry)
            setting.journal.run_finished(
                identity, "skipped", now, detail="no run took place while it was the last session"
            )
    return tuple(missed)


def _learn(setting: DailySetting, settled: Sequence[Settled]) -> Notebook:
    """What earlier decisions earned, the sessions that were just settled included."""
    notebook = Notebook()
    with JournalReader(setting.journal.path) as reader:
        notebook.remember(reader.outcomes())
        decided = reader.decisions()
    notebook.decided(decided)
    for one in settled:
        for fill in one.fills:
            setting.publish(_filled(setting, fill))
        _publish_books(setting, one.after)
    known = {(row.decision_session, row.symbol, row.owner) for rows in notebook.outcomes.values() for row in rows}
    waiting = [d for d in decided if (d.key.session, d.key.symbol, d.key.owner) not in known]
    # All closes, not only those that were just settled: a run may have been killed between settling and this.
    with JournalReader(setting.journal.path) as reader:
        points, fills, flows = reader.equity(), reader.fills(), reader.cash_flows()
    for before, after in pairwise(points):
        due = [d for d in waiting if d.key.session == before.session]
        if not due:
            continue
        rows = outcomes(
            due,
            _as_seen(setting, before),
            _as_seen(setting, after),
            [f for f in fills if before.session < f.session <= after.session],
            [f for f in flows if before.session < f.session <= after.session],
            notebook.outcomes,
        )
        setting.cycle.learn(notebook, rows)
        for row in rows:
            setting.journal.outcome(setting.run, row)
    return notebook


def _as_seen(setting: DailySetting, books: EquityPoint) -> EquityPoint:
    return known_books(setting.market, setting.calendar, setting.symbols, books.session, books.portfolio, books.prices)


async def _decide(setting: DailySetting, notebook: Notebook) -> Verdict:
    """The cycle's verdict, or the one that stands from before a kill."""
    with JournalReader(setting.journal.path) as reader:
        decided = reader.decisions(run=setting.run)
        intended = tuple(entry.order for entry in reader.orders(run=setting.run))
    if decided:
        return Verdict(decided, intended)
    session, market = setting.session, setting.market
    now = decision_time(setting.calendar, session)
    known = market.at(now)
    portfolio = setting.broker.portfolio
    turn = Turn(
        run=setting.run,
        desk=setting.desk,
        session=session,
        number=1,
        symbols=setting.symbols,
        market=known,
        news_after=decision_time(setting.calendar, previous_session(setting.calendar, session)),
        portfolio=portfolio,
        value=portfolio.value({symbol: known.close(symbol) for symbol in portfolio.positions}),
        notebook=notebook,
        step=setting.calendar.number(session),
    )
    verdict = await setting.cycle.run(turn)
    with setting.journal.together():
        JournalRecorder(setting.journal, setting.run, setting.desk, setting.wall).decided(verdict)
    return verdict


def _hand_over(setting: DailySetting, orders: Sequence[Order]) -> tuple[Order, ...]:
    """Hands over what was not handed over yet."""
    handed = []
    for order in orders:
        if order.state in (OrderState.INTENDED, OrderState.SUBMITTING):
            update = setting.broker.place(order)
            order = replace(order, state=update.state)
        handed.append(order)
        moved = OrderMoved(
            setting.run, setting.wall.now(), order.id, order.session, order.symbol, order.side, order.state, ""
        )
        setting.publish(moved)
    return tuple(handed)


def _filled(setting: DailySetting, fill: Fill) -> OrderFilled:
    now, side = setting.wall.now(), fill.side.value
    return OrderFilled(
        setting.run, now, fill.order_id, fill.session, fill.symbol, side, fill.quantity, fill.price, fill.fee
    )


def _publish_books(setting: DailySetting, books: EquityPoint) -> None:
    held = tuple((s, p.quantity, books.prices[s]) for s, p in books.portfolio.positions.items())
    now = setting.wall.now()
    setting.publish(SessionSettled(setting.run, now, books.session, books.value, books.portfolio.cash, held))
