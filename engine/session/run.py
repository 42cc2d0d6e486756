"""One run of a desk: after a close, for all symbols or for one alone, or a cycle within the session that follows it.

A run that was killed goes on where it stopped: closed sessions are closed, decisions that were made are not asked for
again, orders that were sent are not sent twice. Source: papers.md D2, D4; TradingGPT §3 [G7].

The state of a desk before a run, folded from its journal, and earlier runs that never ended or never took place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import TypeVar

from engine.cycle.turn import TradingHistory
from engine.domain.decision import Decision, Opinion
from engine.domain.json_text import from_json
from engine.domain.market import Symbol
from engine.domain.order import DAILY, ZERO, Order, OrderState, Side
from engine.domain.run import EquityPoint, RunKind, RunOutcome
from engine.errors import ConfigError, NetworkError, StaleData, TryAgainLater, UsageError
from engine.execution.controls import Approval, Halted, Paused, approvals
from engine.execution.limits import cost
from engine.execution.submission import Submission, SubmissionResult
from engine.execution.venue import SettledSession, Venue
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.market.trading_hours import decision_time, previous_session, session_after, session_to_decide
from engine.messages.events import Noticed, OrderFilled, OrderMoved, RunFinished
from engine.ports import Pause
from engine.session.beginning import begin_run
from engine.session.context import (
    DeskRun,
    DeskRunResult,
    Moment,
    Quotes,
    RunState,
    SessionContext,
    SessionResult,
    run_error,
    run_id,
)
from engine.session.cost_meter import NO_DECISION
from engine.session.loop import run_session
from engine.session.owner_books import BookOrders, OwnerBooks, has_books
from engine.session.recorder import BOOK_ORDERS, Inputs, RecordedVenue, moment_of, read_inputs

TAKEN = (OrderState.ACKNOWLEDGED, OrderState.PARTIALLY_FILLED, OrderState.FILLED)
FILLS_WITHIN = 1.0
"""Seconds in which an order fills while the market is open, as a rule."""


async def run_after_close(desk: DeskRun) -> DeskRunResult:
    """One run after a close. What other runs of the session have decided is left out, and the cash of their orders that
    wait for approval is not spent again. Raises UsageError for a session that the books, or the time, have passed,
    StaleData where a symbol's bars do not reach the session, and what the venue raises: BooksDisagree, TryAgainLater,
    NetworkError, CredentialsRefused, ConfigError."""
    alone = decided_elsewhere(desk)
    desk = replace(desk, decided=frozenset(alone))
    _check(desk)
    ended = close_abandoned(desk)
    skipped = skip_missed(desk)
    _begin(desk, ended)
    if alone and desk.only is None:
        text = f"decided already, each in a run of its own, and left out: {', '.join(alone)}"
        desk.publish(Noticed(desk.run, desk.clock.now(), "info", text))
    moment = Moment(
        session=desk.session,
        now=decision_time(desk.calendar, desk.session),
        news_after=decided_until(desk, previous_session(desk.calendar, desk.session)),
        symbols=desk.batch,
        waiting=cash_waiting(desk),
    )
    done = await run_session(_sending(desk), moment, desk_state(desk.reader))
    return _end(desk, done, skipped)


async def run_within(desk: DeskRun, quotes: Quotes) -> DeskRunResult:
    """One cycle within the session after `desk.session`, at the prices of the moment. Raises StaleData where that is
    not open at this moment, or the inputs of a killed cycle are too old to go on with, ConfigError where owners keep
    books of their own, and what the venue raises."""
    if has_books(desk.cycle.preset):
        raise ConfigError(
            f"the owners of {desk.name} keep books of their own, which are settled at the close: set watch.every to 0, "
            "or combine to vote or weighted"
        )
    until = _open_until(desk)
    _begin(desk, close_abandoned(desk))
    moment = Moment(
        session=desk.session,
        cycle=desk.number,
        now=None,
        news_after=decided_until(desk, desk.session),
        symbols=desk.batch,
        until=until,
        quotes=quotes,
    )
    context: SessionContext = _sending(desk)
    inputs = desk.reader.inputs(desk.run, desk.number)
    if inputs:
        # A killed cycle: the same questions have the same answers, which are paid already.
        context, moment = _on_recorded_inputs(context, moment, inputs)
    done = await run_session(context, moment, desk_state(desk.reader))
    await book_sent(desk.venue, desk.pause, desk.session, done.submitted.orders)
    fills = desk.reader.fills(run=desk.run)
    for fill in fills:
        desk.publish(OrderFilled(desk.run, desk.clock.now(), fill))
    return replace(_end(desk, done), fills=fills)


def _sending(desk: DeskRun) -> DeskRun:
    """The run with the route of its orders to its venue."""
    sizing = desk.cycle.preset.sizing
    submission = Submission(
        run=desk.run,
        session=desk.session,
        symbols=desk.symbols,
        mode=desk.mode,
        cash_floor=sizing.cash_floor,
        allow_short=sizing.allow_short,
        venue=desk.venue,
        journal=desk.journal,
        reader=desk.reader,
        calendar=desk.calendar,
        clock=desk.clock,
        wait=desk.pause,
        publish=desk.publish,
        frozen=frozenset(one.symbol for one in desk.frozen),
    )
    return replace(desk, orders=submission)


def _on_recorded_inputs(context: SessionContext, moment: Moment, recorded: Inputs) -> tuple[SessionContext, Moment]:
    """The context and the moment of a killed cycle as it saw them."""
    inputs = read_inputs(recorded, lambda symbol: context.market.calendars.get(symbol, context.calendar))
    now = inputs.now or decision_time(context.calendar, moment.session)
    return (
        replace(context, market=inputs.market, venue=RecordedVenue.of(inputs, context.venue)),
        replace(
            moment, now=now, news_after=inputs.news_after, symbols=inputs.symbols, prices=inputs.prices, quotes=None
        ),
    )


def _check(desk: DeskRun) -> None:
    session, books = desk.session, desk.venue.books
    if books is not None and books.session > session:
        raise UsageError(
            f"the books of {desk.desk} are closed through {books.session}: {session} can no longer be decided"
        )
    if desk.venue.real_time:
        latest = session_to_decide(desk.calendar, desk.symbols, None, desk.clock.now())
        if latest != session:
            raise UsageError(
                f"{session} has passed at the broker: {latest} is the last completed session, the only one that "
                "can be traded"
            )
    for symbol in desk.batch:
        history = desk.market.histories[symbol]
        if not len(history) or history.session(-1) < session:
            ends = f"end on {history.session(-1)}" if len(history) else "are none"
            raise StaleData(
                f"{symbol}: its bars {ends}, and {session} is to be decided: fetch newer ones and run again"
            )


def _open_until(desk: DeskRun) -> datetime:
    """The close of the session that is open now."""
    now, calendar, session = desk.clock.now(), desk.calendar, desk.session
    following = session_after(calendar, session)
    opens, closes = calendar.opens_at(following), calendar.closes_at(following)
    if not opens <= now < closes or session_to_decide(calendar, desk.symbols, None, now) != session:
        raise StaleData(f"the session after {session} is not open at {now:%Y-%m-%d %H:%M} UTC: no cycle within it")
    return closes


def _begin(desk: DeskRun, ended: Iterable[OrderMoved]) -> None:
    """Write down, and publish, that the run begins, then the orders of earlier runs that `ended` before it."""
    entry = RunEntry(
        id=desk.run,
        kind=desk.kind,
        name=desk.name,
        started=desk.clock.now(),
        label=desk.label,
        spec=None,
        symbols=desk.symbols if desk.only is None else (desk.only,),
        session=desk.session,
        cycle=desk.number,
        extra=desk.about,
    )
    window, steps = (desk.session, desk.session), desk.cycle.preset.questions
    begin_run(desk.journal, desk.publish, entry, window=window, sessions=1, steps=steps, symbols=desk.due)
    for event in ended:
        desk.publish(event)


async def book_sent(venue: Venue, wait: Pause, session: date, orders: Sequence[Order]) -> None:
    """Book what has filled by now, so that the journal has the desk's present positions; the rest is the next run's."""
    if any(order.state in TAKEN for order in orders):
        await wait(FILLS_WITHIN)
        with suppress(TryAgainLater, NetworkError):
            await venue.settle(session)


def _end(desk: DeskRun, done: SessionResult, skipped: Sequence[date] = ()) -> DeskRunResult:
    """Write down, and publish, that the run has ended, and its result."""
    submitted, books = done.submitted, desk.venue.books
    assert books is not None  # settling has opened them
    outcome = _outcome(submitted, done.paused)
    portfolio, detail = desk.venue.portfolio, _stop_detail(submitted.halted, done.paused)
    value = portfolio.value({symbol: done.turn.price(symbol) for symbol in portfolio.positions})
    if desk.number == DAILY:
        value = books.value
    undecided = _undecided(desk, done)
    if undecided:
        desk.warn(undecided)
    error = run_error(desk.frozen, submitted.orders)
    ended = {} if error is None else {"exit_code": error.exit_code}
    desk.journal.run_finished(
        desk.run,
        outcome,
        desk.clock.now(),
        value=value,
        detail=detail,
        model=desk.meter.use,
        extra={**desk.about, **ended},
    )
    desk.publish(RunFinished(run=desk.run, time=desk.clock.now(), outcome=outcome, value=value, detail=detail))
    return DeskRunResult(
        run=desk.run,
        session=desk.session,
        books=books,
        decisions=done.result.decisions,
        orders=submitted.orders,
        fills=tuple(fill for one in done.settled.sessions for fill in one.fills),
        cash_flows=tuple(flow for one in done.settled.sessions for flow in one.cash_flows),
        skipped=tuple(skipped),
        model=desk.meter.use,
        outcome=outcome,
        waiting=submitted.waiting,
        halted=submitted.halted,
        paused=done.paused,
        frozen=desk.frozen,
        undecided=undecided,
    )


def _undecided(desk: DeskRun, done: SessionResult) -> str:
    """The reason why a model was asked and nothing usable was decided; empty where something was, or nobody asked."""
    decisions = done.result.decisions
    if not decisions or not desk.meter.use.abstentions or any(not made.abstained for made in decisions):
        return ""
    first = decisions[0]
    return f"{NO_DECISION} after {desk.session}: {desk.meter.use.spec}, {first.key.symbol}: {first.reason}"


def _outcome(submitted: SubmissionResult, pause: Paused | None) -> RunOutcome:
    if submitted.halted or pause:
        return RunOutcome.HALTED if submitted.halted else RunOutcome.PAUSED
    return RunOutcome.WAITING if submitted.waiting else RunOutcome.DONE


def _stop_detail(halt: Halted | None, pause: Paused | None) -> str:
    """The halt, else the pause, that kept a run from its end, and why."""
    stop = halt or pause
    if stop is None:
        return ""
    what = "halted" if stop is halt else "paused"
    return f"{what} since {stop.since:%Y-%m-%d %H:%M} UTC" + (f": {stop.reason}" if stop.reason else "")


T = TypeVar("T", Decision, Opinion)


def desk_state(reader: JournalReader) -> RunState:
    """Opinions and outcomes of all runs so far; decisions and opinions that wait for their outcome; the sessions that
    an earlier run settled without learning from them, because it was killed in between; and the owners' books."""
    decisions = sorted(reader.decisions(), key=lambda made: made.key.cycle)
    decided = {made.key for made in decisions}
    opinions = sorted(reader.opinions(), key=lambda made: made.key.cycle)
    made = [*(decision.opinion for decision in decisions), *opinions]
    history = TradingHistory().with_outcomes(reader.outcomes()).with_opinions(made, decisions)
    known = {(row.decision_session, row.symbol, row.owner) for rows in history.outcomes.values() for row in rows}
    awaiting = _latest(decisions, known)
    combined = _latest([one for one in opinions if one.key not in decided], known)
    points = reader.equity(book=None)
    sessions = {(one.key.session, one.book) for one in awaiting} | {(one.key.session, "") for one in combined}
    return RunState(
        history,
        awaiting,
        combined,
        _holding_periods(reader, [pair for pair in _pairs(points) if (pair[0].session, pair[0].book) in sessions]),
        _books(reader, points),
    )


def _latest(made: Iterable[T], known: set[tuple[date, str, str]]) -> tuple[T, ...]:
    """The last of each session, symbol and owner whose outcome is not known yet: earlier cycles were overtaken."""
    last = {(one.key.session, one.key.symbol, one.key.owner): one for one in made}
    return tuple(one for key, one in last.items() if key not in known)


def _pairs(points: Sequence[EquityPoint]) -> list[tuple[EquityPoint, EquityPoint]]:
    """Each close of a book with the next one of the same book."""
    names = dict.fromkeys(point.book for point in points)
    return [pair for name in names for pair in pairwise([point for point in points if point.book == name])]


def _holding_periods(
    reader: JournalReader, pairs: Sequence[tuple[EquityPoint, EquityPoint]]
) -> tuple[SettledSession, ...]:
    if not pairs:
        return ()
    fills, flows, adoptions = reader.fills(book=None), reader.cash_flows(book=None), reader.adoptions()
    return tuple(
        SettledSession(
            before,
            after,
            tuple(f for f in fills if before.session < f.session <= after.session and f.book == after.book),
            tuple(f for f in flows if before.session < f.session <= after.session and f.book == after.book),
            tuple(a for a in adoptions if before.session < a.session <= after.session and not after.book),
        )
        for before, after in pairs
    )


def _books(reader: JournalReader, points: Sequence[EquityPoint]) -> OwnerBooks:
    """The owners' books at their last close, with the orders that wait, and the sessions that were not allocated."""
    last = {point.book: point for point in points if point.book}
    if not last:
        return OwnerBooks()
    closed = next(iter(last.values())).session
    account = [pair for pair in _pairs([point for point in points if not point.book]) if pair[0].session >= closed]
    return OwnerBooks(last, _waiting(reader, closed), _holding_periods(reader, account))


def _waiting(reader: JournalReader, closed: date) -> BookOrders | None:
    """The orders of the books that were decided on the last close, by one run or by several, each for other symbols."""
    texts = [reader.document(run.id, f"{BOOK_ORDERS} {closed}") for run in reader.runs() if run.session == closed]
    made = [from_json(BookOrders, text) for text in texts if text is not None]
    if not made:
        return None
    return BookOrders(
        session=closed,
        orders=tuple(order for one in made for order in one.orders),
        prices={symbol: price for one in made for symbol, price in one.prices.items()},
        sent=tuple(symbol for one in made for symbol in one.sent),
    )


def decided_elsewhere(desk: DeskRun) -> tuple[Symbol, ...]:
    """The symbols that other runs after the close of the session have decided, or whose order of one was recovered from
    the account."""
    keys = [one.key for one in desk.reader.decisions(first=desk.session, last=desk.session)]
    sent = desk.reader.orders(session=desk.session)
    made = [(one.run, one.cycle, one.symbol) for one in keys] + [(one.run, one.cycle, one.order.symbol) for one in sent]
    return tuple(dict.fromkeys(symbol for run, cycle, symbol in made if run != desk.run and cycle == desk.number))


def cash_waiting(desk: DeskRun) -> Decimal:
    """The cash that buys of other runs of the session may take which are intended and not sent, as one that waits for
    approval, at the close that they were decided on."""
    known = desk.market.at(decision_time(desk.calendar, desk.session))
    waiting = (entry for entry in desk.reader.orders(session=desk.session, open_only=True) if entry.run != desk.run)
    orders = [entry.order for entry in waiting if entry.order.state is OrderState.INTENDED]
    buys = (one for one in orders if one.side is Side.BUY and one.symbol in known.symbols and known.count(one.symbol))
    return sum((cost(order, known.close(order.symbol)) for order in buys), ZERO)


def close_abandoned(desk: DeskRun) -> Sequence[OrderMoved]:
    """End earlier runs that were killed and never gone on with. Orders that earlier runs intended for an earlier
    session are not traded late; those of earlier cycles of the same session stay until one decides again. What a killed
    run of one symbol has not decided, the daily run of its session decides. Returns the events of orders that ended,
    for after the start of the run."""
    earlier = [run for run in desk.reader.runs() if run.kind is not RunKind.BACKTEST and _before(run, desk)]
    open_orders = desk.reader.orders(open_only=True)
    passed = {run.id: run.outcome for run in earlier if run.session != desk.session}
    answered, moved = approvals(desk.reader, [entry.order.id for entry in open_orders]), []
    for entry in open_orders:
        if entry.run in passed and entry.order.state is OrderState.INTENDED:
            expired, now = entry.order.moved(OrderState.EXPIRED), desk.clock.now()
            detail = _unsent(passed[entry.run], answered.get(entry.order.id))
            desk.journal.order_moved(expired, now, detail=detail)
            moved.append(OrderMoved(desk.run, now, expired, detail))
    for run in earlier:
        if run.outcome is None:
            detail = "killed, and not gone on with while it could be"
            desk.journal.run_finished(run.id, RunOutcome.FAILED, desk.clock.now(), detail=detail)
    return moved


def _unsent(outcome: RunOutcome | None, answer: Approval | None) -> str:
    """The reason why an order of a run that ended so was not sent while its session was the last one."""
    if answer is not None:
        return f"it was {'approved, and not sent' if answer.approved else 'vetoed'} before its session had passed"
    if outcome is RunOutcome.WAITING:
        return "nobody approved it before its session had passed"
    if outcome is RunOutcome.HALTED:
        return "the desk was halted, and its session has passed"
    return "its run did not come to an end and its session has passed"


def _before(run: RunEntry, desk: DeskRun) -> bool:
    """True for a run that came before: within the same session only cycles of a lower number did, and runs of one
    symbol before those of all."""
    if run.session == desk.session:
        alone = run.kind is RunKind.SYMBOL and desk.only is None
        return alone or (run.kind is RunKind.INTRADAY and desk.number > run.cycle)
    return True


def decided_until(desk: DeskRun, session: date) -> datetime:
    """The moment up to which other cycles that rest on a session have read the news, UTC."""
    for run in reversed(desk.reader.runs(RunKind.INTRADAY)):
        decided = run.session == session and run.id != desk.run and desk.reader.decisions(run.id)
        if decided and (inputs := desk.reader.inputs(run.id, run.cycle)):
            return moment_of(inputs)
    return decision_time(desk.calendar, session)


def skip_missed(desk: DeskRun) -> tuple[date, ...]:
    """Write down the sessions that passed without a decision since the last one: no run took place, or what it needed,
    such as a model, could not be had."""
    runs = {run.session: run for run in desk.reader.runs(RunKind.DAILY) if run.session is not None}
    failed = [session for session, run in runs.items() if session < desk.session and _decided_nothing(desk, run)]
    taken = [session for session, run in runs.items() if run.outcome != RunOutcome.SKIPPED and session not in failed]
    alone = {run.session for run in desk.reader.runs(RunKind.SYMBOL) if run.session and run.session < desk.session}
    if not (taken or failed or alone) or max(taken, default=date.min) >= desk.session:
        return ()
    first = max(taken) + timedelta(days=1) if taken else min([*failed, *alone])
    missed = desk.calendar.sessions(first, desk.session - timedelta(days=1))
    for session in missed:
        if session not in runs:
            _skip(desk, session)
        elif session in failed:
            run = runs[session]
            detail = f"nothing was decided while it was the last session: {run.detail}"
            desk.journal.run_finished(run.id, RunOutcome.SKIPPED, desk.clock.now(), detail=detail, model=run.model)
    return tuple(missed)


def _decided_nothing(desk: DeskRun, run: RunEntry) -> bool:
    return run.outcome in (RunOutcome.FAILED, RunOutcome.PAUSED) and not desk.reader.decisions(run.id)


def _skip(desk: DeskRun, session: date) -> None:
    identity, now = run_id(desk.desk, session), desk.clock.now()
    detail = "no run took place while it was the last session"
    if alone := desk.reader.decided_alone(session):
        detail = f"no daily run took place while it was the last session; decided alone: {', '.join(alone)}"
    entry = RunEntry(
        id=identity,
        kind=RunKind.DAILY,
        name=desk.name,
        started=now,
        label=desk.label,
        spec=None,
        symbols=desk.symbols,
        session=session,
        cycle=1,
    )
    with desk.journal.together():
        desk.journal.run_started(entry)
        desk.journal.run_finished(identity, RunOutcome.SKIPPED, now, detail=detail)
