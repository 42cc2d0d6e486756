"""Outcomes of decisions and of opinions, worked out as soon as the stretch that follows them is settled.

A decision's reward is what its symbol earned in the books. An opinion that was combined moved no money of its own, so
its reward is its direction times the size that it asked for times the move of the close: a purchase of 8 % earns 8 % of
a rise, a sale of 8 % earns 8 % of a fall, HOLD and ABSTAIN earn nothing. Costs, dividends and limits are left out. The
rule is the same for owners who were overruled and owners who won, so that they can be compared.
Source: FinVision §3.4, the reward agent [V7].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from types import MappingProxyType

from engine.account.time_weighted import EXTERNAL, net_deposits
from engine.domain.decision import DIRECTIONS, Decision, Opinion, Outcome
from engine.domain.market import Symbol
from engine.domain.order import Side
from engine.domain.portfolio import ZERO, Portfolio
from engine.domain.run import CashFlow, EquityPoint
from engine.execution.venue import SettledSession
from engine.market.as_of import Market
from engine.market.point_in_time import MarketAsOf
from engine.market.trading_hours import decision_time
from engine.ports import Calendar
from engine.session.context import RunState, SessionContext

STEP = Decimal("0.00000001")
HUNDRED = Decimal(100)
LOOKBACK = 60
"""Bars in which the last close before the opinion is looked for; a desk that rested longer than that learns nothing."""

Earlier = Mapping[tuple[Symbol, str], Sequence[Outcome]]
"""The outcomes so far by symbol and owner, oldest first: what the cumulative return goes on from."""


def learn(context: SessionContext, state: RunState, settled: Iterable[SettledSession]) -> RunState:
    """The state after the outcomes of settled stretches became known: journalled, and kept for later reflections. A
    session's reward is that of its last decision: earlier cycles were overtaken."""
    history, awaiting, opinions = state.history, state.awaiting, state.opinions
    for one in (*state.unlearned, *settled):
        decided = one.before.session, one.before.book
        due = [made for made in awaiting if (made.key.session, made.book) == decided]
        combined = [made for made in opinions if (made.key.session, "") == decided]
        if not due and not combined:
            continue
        awaiting = tuple(made for made in awaiting if (made.key.session, made.book) != decided)
        opinions = tuple(made for made in opinions if (made.key.session, "") != decided)
        begun, ended = one.before.session, one.after.session
        markets = [context.market.at(decision_time(context.calendar, session)) for session in (begun, ended)]
        rows = [
            *outcomes(due, _as_seen(context, one), history.outcomes),
            *opinion_outcomes(combined, markets[0], markets[1], ended, history.outcomes),
        ]
        rows = [replace(row, horizon=_own_sessions(context, row.symbol, begun, ended)) for row in rows]
        history = history.with_outcomes(rows)
        context.recorder.learned(rows)
    return replace(state, history=history, awaiting=awaiting, opinions=opinions, unlearned=())


def _own_sessions(context: SessionContext, symbol: Symbol, begun: date, ended: date) -> int:
    """The number of a symbol's own sessions from one session of the desk to another."""
    calendar = context.market.calendars.get(symbol, context.calendar)
    return calendar.number(ended) - calendar.number(begun)


def deposits_in(settled: SettledSession) -> Decimal:
    """The money and shares that were deposited (negative: withdrawn) in a stretch, at its last prices."""
    moved = net_deposits((settled.before, settled.after), settled.cash_flows, settled.adoptions)
    return sum((one.amount for one in moved), ZERO)


def books_as_seen(
    market: Market,
    calendar: Calendar,
    symbols: Iterable[Symbol],
    session: date,
    portfolio: Portfolio,
    *,
    prices: Mapping[Symbol, Decimal] = MappingProxyType({}),
) -> EquityPoint:
    """The books at the closes that can be seen when a session's decision is taken, held or not: the UTC day of crypto
    may still be going on. `prices` are for what is held and no longer among the symbols."""
    known = market.at(decision_time(calendar, session))
    seen = dict(prices) | {symbol: known.close(symbol) for symbol in symbols if known.count(symbol)}
    return EquityPoint(session, portfolio.value(seen), portfolio, seen)


def outcomes(decisions: Iterable[Decision], settled: SettledSession, earlier: Earlier) -> list[Outcome]:
    """One row per decision: profit of the symbol over a stretch, trades, fees and dividends included, over the
    portfolio's value before."""
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
    """One row per opinion. `before` is the market that the opinions rest on, `after` the market as it was known once
    `session` was closed."""
    rows = []
    for opinion in opinions:
        symbol, direction = opinion.key.symbol, DIRECTIONS.get(opinion.action, 0)
        moved = _move(before, after, symbol) if direction else ZERO
        # An opinion without a size is one on the whole portfolio.
        reward = direction * (opinion.size or HUNDRED) / HUNDRED * moved
        close = after.close(symbol) if after.count(symbol) else ZERO
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


def _move(before: MarketAsOf, after: MarketAsOf, symbol: Symbol) -> Decimal:
    """The change of the last visible close as a fraction, splits in between undone; zero where it is not known."""
    if not before.count(symbol):
        return ZERO
    bars = after.bars(symbol, LOOKBACK)
    row = bars.index(before.last_session(symbol))
    return ZERO if row is None else Decimal(bars.close[-1]) / Decimal(bars.close[row]) - 1


def _profits(settled: SettledSession) -> dict[Symbol, Decimal]:
    """Profit by symbol over a stretch, in the quote currency. Shares that a person deposited or took over were not
    earned: they count as if they had been paid for at the close."""
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
    return [*(flow for flow in settled.cash_flows if flow.kind != EXTERNAL), *paid]


def _as_seen(context: SessionContext, settled: SettledSession) -> SettledSession:
    before, after = (
        books_as_seen(
            context.market, context.calendar, context.symbols, books.session, books.portfolio, prices=books.prices
        )
        for books in (settled.before, settled.after)
    )
    book = settled.after.book
    return replace(settled, before=replace(before, book=book), after=replace(after, book=book))
