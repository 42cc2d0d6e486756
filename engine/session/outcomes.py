"""Outcomes of decisions and of opinions, worked out as soon as the holding period that follows them is settled.

A decision's reward is what its symbol earned in the books. An opinion that was combined moved no money of its own, so
its reward is its direction times the size that it asked for times the move of the close: a purchase of 8 % earns 8 % of
a rise, a sale of 8 % earns 8 % of a fall, HOLD and ABSTAIN earn nothing. Costs, dividends and limits are left out. The
rule is the same for owners who were overruled and owners who won, so that they can be compared.
Source: FinVision §3.4, the reward agent [V7].

Events of sessions that were settled: the trades that nobody has heard of yet, and the books at each close.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal

from engine.account.time_weighted import EXTERNAL, is_external, net_deposits
from engine.domain.decision import DIRECTIONS, Decision, Opinion, Outcome
from engine.domain.market import Symbol
from engine.domain.order import ZERO, Side
from engine.domain.run import CashFlow
from engine.execution.venue import SettledSession
from engine.market.as_of import MarketAsOf
from engine.market.trading_hours import completed_at, decision_time
from engine.messages.events import OrderFilled, Publish, SessionSettled
from engine.ports import Clock
from engine.session.context import RunState, SessionContext
from engine.session.recorder import Recorder

STEP = Decimal("0.00000001")
HUNDRED = Decimal(100)
LOOKBACK = 60
"""Bars in which the last close before the opinion is looked for; a desk that rested longer than that learns nothing."""

Earlier = Mapping[tuple[Symbol, str], Sequence[Outcome]]
"""The outcomes so far by symbol and owner, oldest first: what the cumulative return goes on from."""


def learn(context: SessionContext, state: RunState, settled: Iterable[SettledSession], now: datetime) -> RunState:
    """The state after the outcomes of settled holding periods became known: journalled, and kept for later reflections.
    Where a symbol's close at the end of one is not known at `now` (UTC), as that of crypto is not when an exchange
    closes, it waits. A session's reward is that of its last decision: earlier cycles were overtaken."""
    history, awaiting, opinions = state.history, state.awaiting, state.opinions
    waiting = []
    for one in (*state.unlearned, *settled):
        begun, ended, book = one.before.session, one.after.session, one.before.book
        due = [made for made in awaiting if (made.key.session, made.book) == (begun, book)]
        combined = [made for made in opinions if (made.key.session, "") == (begun, book)]
        keys = [*(made.key for made in due), *(made.key for made in combined)]
        known = {key for key in keys if _is_known(context, key.symbol, ended, now)}
        if len(known) < len(set(keys)):
            waiting.append(one)
        if not known:
            continue
        awaiting = tuple(made for made in awaiting if made.key not in known)
        opinions = tuple(made for made in opinions if made.key not in known)
        before, after = (context.market.at(min(marked_at(context, session), now)) for session in (begun, ended))
        earlier = history.earlier(begun)
        rows = [
            *outcomes([made for made in due if made.key in known], _with_closes(context, one, after), earlier),
            *opinion_outcomes([made for made in combined if made.key in known], before, after, ended, earlier),
        ]
        rows = [replace(row, horizon=_own_sessions(context, row.symbol, begun, ended)) for row in rows]
        history = history.with_outcomes(rows)
        context.recorder.learned(rows)
    return replace(state, history=history, awaiting=awaiting, opinions=opinions, unlearned=tuple(waiting))


def _is_known(context: SessionContext, symbol: Symbol, session: date, now: datetime) -> bool:
    """True where the price of a symbol that the books of a session of the desk are marked at is known at a moment
    (UTC)."""
    return (
        context.marks_at_decisions or context.market.calendars.get(symbol, context.calendar).last_closed(now) >= session
    )


def marked_at(context: SessionContext, session: date) -> datetime:
    """The moment, UTC, whose last closes the books of a session are marked at."""
    if context.marks_at_decisions:
        return decision_time(context.calendar, session)
    return completed_at(context.calendar, context.symbols, session)


def _own_sessions(context: SessionContext, symbol: Symbol, begun: date, ended: date) -> int:
    """The number of a symbol's own sessions from one session of the desk to another."""
    calendar = context.market.calendars.get(symbol, context.calendar)
    return calendar.number(ended) - calendar.number(begun)


def deposits_in(settled: SettledSession) -> Decimal:
    """The money and shares that were deposited (negative: withdrawn) in a holding period, at its last prices."""
    moved = net_deposits((settled.before, settled.after), settled.cash_flows, settled.adoptions)
    return sum((one.amount for one in moved), ZERO)


def outcomes(decisions: Iterable[Decision], settled: SettledSession, earlier: Earlier) -> list[Outcome]:
    """One row per decision: profit of the symbol from one close of the books to the next, trades, fees and dividends
    included, over the portfolio's value before."""
    before, after, profit = settled.before, settled.after, _profits(settled)
    rows = []
    for made in decisions:
        symbol = made.key.symbol
        reward = profit.get(symbol, ZERO) / before.value if before.value > 0 else ZERO
        close = after.prices.get(symbol, before.prices.get(symbol, ZERO))
        rows.append(_outcome(made, earlier, session=after.session, close=close, reward=reward))
    return rows


def opinion_outcomes(
    opinions: Iterable[Opinion],
    before: MarketAsOf,
    after: MarketAsOf,
    session: date,
    earlier: Earlier,
) -> list[Outcome]:
    """One row per opinion. `before` and `after` are the market once the session of the opinions, and `session`, were
    closed for every symbol."""
    rows = []
    for opinion in opinions:
        symbol, direction = opinion.key.symbol, DIRECTIONS.get(opinion.action, 0)
        moved = _move(before, after, symbol) if direction else ZERO
        # An opinion without a size is one on the whole portfolio.
        reward = direction * (opinion.size or HUNDRED) / HUNDRED * moved
        close = after.close(symbol) if _is_seen(after, symbol) else ZERO
        rows.append(_outcome(opinion, earlier, session=session, close=close, reward=reward))
    return rows


def _outcome(made: Decision | Opinion, earlier: Earlier, *, session: date, close: Decimal, reward: Decimal) -> Outcome:
    key, opinion = made.key, made.opinion if isinstance(made, Decision) else made
    past, reward = earlier.get((key.symbol, key.owner), ()), reward.quantize(STEP)
    so_far = past[-1].cumulative if past else ZERO
    return Outcome(
        decision_session=key.session,
        session=session,
        symbol=key.symbol,
        owner=key.owner,
        action=made.action,
        size=made.size,
        close=close,
        reward=reward,
        cumulative=((1 + so_far) * (1 + reward) - 1).quantize(STEP),
        key_factors=opinion.key_factors,
        cycle=key.cycle,
    )


def _is_seen(market: MarketAsOf, symbol: Symbol) -> bool:
    """True for a symbol with a close; one that was taken off the desk has none."""
    return symbol in market.symbols and market.count(symbol) > 0


def _move(before: MarketAsOf, after: MarketAsOf, symbol: Symbol) -> Decimal:
    """The change of the last visible close as a fraction, splits in between undone; zero where it is not known."""
    if not _is_seen(before, symbol):
        return ZERO
    bars = after.bars(symbol, LOOKBACK)
    row = bars.index(before.last_session(symbol))
    return ZERO if row is None else Decimal(bars.close[-1]) / Decimal(bars.close[row]) - 1


def _profits(settled: SettledSession) -> dict[Symbol, Decimal]:
    """Profit by symbol over a holding period, in the quote currency. Shares that a person deposited or took over were
    not earned: they count as if they had been paid for at the close."""
    before, after = settled.before, settled.after
    profit: dict[Symbol, Decimal] = {}
    for symbol in before.portfolio.positions.keys() | after.portfolio.positions.keys():
        held = before.portfolio.quantity(symbol) * before.prices.get(symbol, ZERO)
        holds = after.portfolio.quantity(symbol) * after.prices.get(symbol, ZERO)
        profit[symbol] = holds - held
    for fill in settled.fills:
        amount = fill.quantity * fill.price
        cash = -amount if fill.side is Side.BUY else amount
        profit[fill.symbol] = profit.get(fill.symbol, ZERO) + cash - fill.fee
    for flow in _earned(settled):
        profit[flow.symbol] = profit.get(flow.symbol, ZERO) + flow.amount
    return profit


def _earned(settled: SettledSession) -> list[CashFlow]:
    deposits = net_deposits((settled.before, settled.after), settled.cash_flows, settled.adoptions)
    paid = [
        CashFlow(session=one.session, symbol=one.symbol, kind=EXTERNAL, amount=-one.amount)
        for one in deposits
        if one.symbol
    ]
    return [*(flow for flow in settled.cash_flows if not is_external(flow)), *paid]


def _with_closes(context: SessionContext, settled: SettledSession, market: MarketAsOf) -> SettledSession:
    """A holding period whose books after it have the closes of all symbols, held or not."""
    closes = {symbol: market.close(symbol) for symbol in context.symbols if market.count(symbol)}
    return replace(settled, after=replace(settled.after, prices={**closes, **settled.after.prices}))


def publish_settled(
    run: str, recorder: Recorder, clock: Clock, publish: Publish, sessions: Iterable[SettledSession]
) -> None:
    """Publish the trades and the books of sessions that a run has settled."""
    for one in sessions:
        now = clock.now()
        for fill in recorder.new_fills(one):
            publish(OrderFilled(run, now, fill))
        publish(SessionSettled(run, now, one.after, deposits_in(one)))
