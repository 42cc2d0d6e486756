"""Outcomes of decisions: what each has earned, worked out from the books as soon as its stretch is settled.

Source: FinVision §3.4, the reward agent [V7].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from types import MappingProxyType

from engine.account.time_weighted import EXTERNAL, net_deposits
from engine.cycle.opinion_outcomes import opinion_outcomes
from engine.domain.decision import Decision, Outcome
from engine.domain.market import Symbol
from engine.domain.order import Side
from engine.domain.portfolio import ZERO, Portfolio
from engine.domain.run import CashFlow, EquityPoint
from engine.execution.venue import SettledSession
from engine.market.as_of import Market
from engine.market.trading_hours import decision_time
from engine.ports import Calendar
from engine.session.context import RunState, SessionContext

STEP = Decimal("0.00000001")


def learn(context: SessionContext, state: RunState, settled: Iterable[SettledSession]) -> RunState:
    """The state after the outcomes of settled stretches became known: journalled, kept for later reflections, and given
    to the memory as feedback. A session's reward is that of its last decision: earlier cycles were overtaken."""
    history, awaiting, opinions = state.history, state.awaiting, state.opinions
    for one in (*state.unlearned, *settled):
        decided = one.before.session, one.before.book
        due = [made for made in awaiting if (made.key.session, made.book) == decided]
        combined = [made for made in opinions if (made.key.session, "") == decided]
        if not due and not combined:
            continue
        awaiting = tuple(made for made in awaiting if (made.key.session, made.book) != decided)
        opinions = tuple(made for made in opinions if (made.key.session, "") != decided)
        seen = _as_seen(context, one)
        rows = [
            *outcomes(due, seen, history.outcomes),
            *opinion_outcomes(
                combined,
                context.market.at(decision_time(context.calendar, one.before.session)),
                context.market.at(decision_time(context.calendar, one.after.session)),
                one.after.session,
                history.outcomes,
            ),
        ]
        history = context.cycle.learn(history, rows)
        context.recorder.learned(rows)
    return replace(state, history=history, awaiting=awaiting, opinions=opinions, unlearned=())


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
    """The books at the closes that can be seen when a session's decision is taken, held or not: a coin's UTC day may
    still be going on. `prices` are for what is held and no longer among the symbols."""
    known = market.at(decision_time(calendar, session))
    seen = dict(prices) | {symbol: known.close(symbol) for symbol in symbols if known.count(symbol)}
    return EquityPoint(session, portfolio.value(seen), portfolio, seen)


def outcomes(
    decisions: Iterable[Decision],
    settled: SettledSession,
    earlier: Mapping[tuple[Symbol, str], Sequence[Outcome]],
) -> list[Outcome]:
    """One row per decision: profit of the symbol over a stretch, trades, fees and dividends included, over the
    portfolio's value before. `earlier` gives the rows so far by symbol and owner, for the cumulative return."""
    before, after, profit = settled.before, settled.after, _profits(settled)
    rows = []
    for decision in decisions:
        key = decision.key
        past = earlier.get((key.symbol, key.owner), ())
        reward = (profit.get(key.symbol, ZERO) / before.value).quantize(STEP) if before.value > 0 else ZERO
        so_far = past[-1].cumulative if past else ZERO
        rows.append(
            Outcome(
                decision_session=key.session,
                session=after.session,
                symbol=key.symbol,
                owner=key.owner,
                action=decision.action,
                size=decision.size,
                close=after.prices.get(key.symbol, before.prices.get(key.symbol, ZERO)),
                reward=reward,
                cumulative=((1 + so_far) * (1 + reward) - 1).quantize(STEP),
                key_factors=decision.opinion.key_factors,
            )
        )
    return rows


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
