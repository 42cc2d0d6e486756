"""One session of a run, live or replayed: settle, learn, decide, submit.

The venue settles: the simulated market plays the sessions since the last run, a broker's account is reconciled with the
journal. Either gives the books at each close with the fills and cash flows in between. `learn` measures each decision
over the holding period that followed it. Then the cycle decides on the last completed session, and its orders are
submitted: they fill at the next open, within a session at once, and the next run settles them.

A backtest, the daily run, a cycle within a session, a redecision and a parity check differ in the venue, the clock and
the recorder that they give to it, in nothing else.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta
from functools import partial

from engine.cycle.turn import CycleResult, Turn
from engine.errors import StaleData
from engine.execution.submission import SubmissionResult
from engine.market.trading_hours import step_at
from engine.session import owner_books
from engine.session.context import Moment, RunState, SessionContext, SessionResult, Settled, quoted, run_unless_paused
from engine.session.outcomes import learn, marked_at, publish_settled
from engine.session.owner_books import OwnerBooks, has_books

RESUMED_WITHIN = timedelta(minutes=15)
"""Largest age of the data with which a killed cycle within a session goes on."""


async def run_session(context: SessionContext, moment: Moment, state: RunState) -> SessionResult:
    """Settle, learn, decide and submit at one moment. What a killed run had decided is not asked for again, and a desk
    that an operator has halted or paused decides nothing. Raises what the venue and the models raise."""
    settled, state = await settle(context, moment.session, state, moment.now or context.clock.now())
    turn = await build_turn(context, moment, state)
    context.recorder.saw(turn)
    halt, result, pause = context.orders.halt(), context.recorder.recorded(), None
    if result is None:
        context.cycle.feedback(turn.history, turn.market, turn.step)
    if result is None and halt is None:
        result, state, pause = await run_unless_paused(context.orders, partial(_decide, context, turn), state)
    result = result or CycleResult((), ())
    if halt is not None:
        submitted = SubmissionResult(result.orders, halted=halt)
    else:
        submitted = await context.orders.submit(result.orders, turn.price, moment.until)
    return SessionResult(settled, turn, result, submitted, state, pause)


async def settle(context: SessionContext, session: date, state: RunState, now: datetime) -> tuple[Settled, RunState]:
    """Close the books up to a session, publish them, and learn from what is known of them at `now` (UTC). Where owners
    keep books of their own, what the account did is allocated to them, and each learns from its own."""
    settlement = await context.venue.settle(session)
    for text in settlement.warnings:
        context.warn(text)
    publish_settled(context.run, context.recorder, context.clock, context.publish, settlement.sessions)
    if not has_books(context.cycle.preset):
        return Settled(settlement.sessions), learn(context, state, settlement.holding_periods, now)
    if not state.books.points:
        state = replace(state, books=_opened(context, session))
    books, allocated = owner_books.settled(state.books, settlement.sessions, context.market)
    for one in allocated:
        context.recorder.allocated(one)
    holding_periods = [period for one in allocated for period in one.holding_periods]
    return Settled(settlement.sessions, allocated), learn(context, replace(state, books=books), holding_periods, now)


async def build_turn(context: SessionContext, moment: Moment, state: RunState) -> Turn:
    """The turn of a moment: the market as of then, the books after settling, and the past of the run. The price of a
    symbol is that of the moment within a session, else the last close."""
    symbols, prices = context.symbols if moment.symbols is None else moment.symbols, moment.prices
    if moment.quotes is not None:
        symbols, prices = await quoted(context, symbols, moment.quotes)
    now = moment.now or context.clock.now()
    market, portfolio, power = context.market.at(now), context.venue.portfolio, context.venue.buying_power
    held = {symbol: prices[symbol] if symbol in prices else market.close(symbol) for symbol in portfolio.positions}
    step: float = context.calendar.number(moment.session)
    if moment.cycle > 1:
        step = step_at(context.calendar, moment.session, now)
    return Turn(
        run=context.run,
        desk=context.desk,
        session=moment.session,
        number=moment.cycle,
        symbols=symbols,
        universe=context.symbols,
        market=market,
        news_after=moment.news_after,
        portfolio=portfolio,
        value=portfolio.value(held),
        history=state.history,
        reserved=power.reserved + moment.waiting,
        queued=power.queued,
        books=state.books.portfolios,
        open_orders=state.books.open_orders,
        step=step,
        hindsight_until=moment.hindsight_until,
        taken=moment.taken,
        whole_shares=await context.venue.whole_shares(context.symbols),
        terms=await context.venue.terms(context.symbols),
        power=power,
        prices=prices,
    )


async def _decide(context: SessionContext, turn: Turn, state: RunState) -> tuple[CycleResult, RunState]:
    """Run the cycle and record its result, before anything is sent. Where owners keep books, one net order per symbol
    goes to the venue in the place of theirs. A decision waits in the state until its outcome is known."""
    if turn.within_session and context.clock.now() - turn.market.now > RESUMED_WITHIN:
        raise StaleData(
            f"cycle {turn.number} after {turn.session} was cut short at {turn.market.now:%H:%M} UTC: nothing "
            "is decided on what was so then"
        )
    result, books = await context.cycle.run(turn), state.books
    if books.points:
        result, waiting = owner_books.netted(turn, result)
        books = replace(books, waiting=waiting)
    context.recorder.decided(turn, result, books.waiting)
    return result, replace(
        state,
        history=state.history.with_opinions(result.opinions, result.decisions),
        awaiting=(*state.awaiting, *result.decisions),
        opinions=(*state.opinions, *result.combined),
        books=books,
    )


def _opened(context: SessionContext, session: date) -> OwnerBooks:
    """The owners' first books: their shares of the account by weight."""
    portfolio, known = context.venue.portfolio, context.market.at(marked_at(context, session))
    prices = {symbol: known.close(symbol) for symbol in portfolio.positions}
    books = owner_books.opened(context.cycle.preset, session, portfolio, prices)
    for point in books.points.values():
        context.recorder.opened(point)
    return books
