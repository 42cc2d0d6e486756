"""What a session's decisions earned, symbol by symbol: the rows that the next day's reflections read.

Source: FinVision §3.4, the reward agent [V7].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from types import MappingProxyType

from engine.domain.decision import Decision, Outcome
from engine.domain.market import Symbol
from engine.domain.order import Fill, Side
from engine.domain.portfolio import ZERO, Portfolio
from engine.domain.run import CashFlow, EquityPoint
from engine.market.as_of import Market
from engine.market.trading_hours import decision_time
from engine.ports import Calendar

STEP = Decimal("0.00000001")


def known_books(
    market: Market,
    calendar: Calendar,
    symbols: Iterable[Symbol],
    session: date,
    portfolio: Portfolio,
    prices: Mapping[Symbol, Decimal] = MappingProxyType({}),
) -> EquityPoint:
    """The books at the closes that can be seen when a session's decision is taken, held or not: a coin's UTC day may
    still be going on. `prices` are for what is held and no longer among the symbols."""
    known = market.at(decision_time(calendar, session))
    seen = dict(prices) | {symbol: known.close(symbol) for symbol in symbols if known.count(symbol)}
    return EquityPoint(session, portfolio.value(seen), portfolio, seen)


def outcomes(
    decisions: Iterable[Decision],
    before: EquityPoint,
    after: EquityPoint,
    fills: Iterable[Fill],
    flows: Iterable[CashFlow],
    earlier: Mapping[tuple[Symbol, str], Sequence[Outcome]],
) -> list[Outcome]:
    """One row per decision: profit of the symbol between two closes, trades, fees and dividends included, over the
    portfolio's value before. `earlier` gives the rows so far by symbol and owner, for the cumulative return."""
    profit: dict[Symbol, Decimal] = {}
    for symbol in before.portfolio.positions.keys() | after.portfolio.positions.keys():
        held = before.portfolio.quantity(symbol) * before.prices.get(symbol, ZERO)
        holds = after.portfolio.quantity(symbol) * after.prices.get(symbol, ZERO)
        profit[symbol] = holds - held
    for fill in fills:
        amount = fill.quantity * fill.price
        cash = -amount if fill.side is Side.BUY else amount
        profit[fill.symbol] = profit.get(fill.symbol, ZERO) + cash - fill.fee
    for flow in flows:
        profit[flow.symbol] = profit.get(flow.symbol, ZERO) + flow.amount
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
                key_factors=_key_factors(decision),
            )
        )
    return rows


def _key_factors(decision: Decision) -> str:
    rule = decision.proposal.rule or "no rule"
    return f"{rule}: {decision.reason}"[:240]
