"""One run of a desk: after a close, for all symbols or for one alone, or a cycle within the session that follows it.

A run that was killed goes on where it stopped: closed sessions are closed, decisions that were made are not asked for
again, orders that were sent are not sent twice. Source: papers.md D2, D4; TradingGPT §3 [G7].
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime

from engine.domain.order import Order, OrderState
from engine.domain.order_id import DAILY
from engine.domain.run import RunOutcome
from engine.errors import ConfigError, NetworkError, StaleData, TryAgainLater, UsageError
from engine.execution.controls import Halted, Paused
from engine.execution.submission import Submission, SubmissionResult
from engine.execution.venue import Venue
from engine.journal.entries import RunEntry
from engine.market.trading_hours import decision_time, previous_session, session_after, session_to_decide
from engine.messages.events import Noticed, OrderFilled, OrderMoved, RunFinished
from engine.ports import Pause
from engine.session.abstentions import NO_DECISION
from engine.session.context import DeskRun, DeskRunResult, Moment, Quotes, SessionContext, SessionResult, run_error
from engine.session.desk_state import (
    cash_waiting,
    close_abandoned,
    decided_elsewhere,
    decided_until,
    desk_state,
    skip_missed,
)
from engine.session.loop import run_session
from engine.session.owner_books import has_books
from engine.session.recorded_inputs import Inputs, RecordedVenue, read_inputs
from engine.session.recorder import begin_run

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
    await book_fills(desk.venue, desk.pause, desk.session, done.submitted.orders)
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
            f"the books of {desk.desk} are closed up to {books.session}: {session} can no longer be decided"
        )
    if desk.venue.real_time:
        latest = session_to_decide(desk.calendar, desk.symbols, None, desk.clock.now())
        if latest != session:
            raise UsageError(
                f"{session} has passed at the broker: {latest} is the last completed session, and the only one that "
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


async def book_fills(venue: Venue, wait: Pause, session: date, orders: Sequence[Order]) -> None:
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
