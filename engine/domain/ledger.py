"""Books carried forward: a portfolio after trades, cash flows and adopted differences."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal

from engine.domain.market import Symbol
from engine.domain.order import Fill
from engine.domain.portfolio import EXACT, ZERO, Portfolio, Position
from engine.domain.run import Adoption, CashFlow


def carried_forward(
    portfolio: Portfolio,
    fills: Iterable[Fill] = (),
    flows: Iterable[CashFlow] = (),
    adoptions: Iterable[Adoption] = (),
) -> Portfolio:
    """The portfolio after a session's events.

    Shares that moved without a trade come first, since splits take place before the market opens. Then come trades,
    then cash, and adoptions last.
    """
    flows, changes = tuple(flows), dict[Symbol, Decimal]()
    for flow in flows:
        if flow.quantity and flow.symbol:
            # Summed up first: a split may come as the old shares that go and the new ones that come.
            changes[flow.symbol] = EXACT.add(changes.get(flow.symbol, ZERO), flow.quantity)
    for symbol, change in changes.items():
        portfolio = _with_shares(portfolio, symbol, change)
    for fill in fills:
        portfolio = portfolio.filled(fill)
    paid = sum((portfolio.money(flow.amount) for flow in flows), ZERO)
    portfolio = replace(portfolio, cash=portfolio.cash + paid)
    for adopted in adoptions:
        portfolio = _with_adoption(portfolio, adopted)
    return portfolio


def _with_shares(portfolio: Portfolio, symbol: Symbol, change: Decimal) -> Portfolio:
    """The portfolio after a change of shares without a trade; the cost of the whole position is unchanged."""
    before = portfolio.positions.get(symbol, Position(ZERO, ZERO))
    held, after = dict(portfolio.positions), EXACT.add(before.quantity, change)
    held.pop(symbol, None)
    if after:
        held[symbol] = Position(after, before.average_cost * before.quantity / after)
    return replace(portfolio, positions=held)


def _with_adoption(portfolio: Portfolio, adopted: Adoption) -> Portfolio:
    change = EXACT.subtract(adopted.after, adopted.before)
    if not adopted.symbol:
        return replace(portfolio, cash=portfolio.cash + change)
    held = dict(portfolio.positions)
    after = EXACT.add(portfolio.quantity(adopted.symbol), change)
    held.pop(adopted.symbol, None)
    if after:
        held[adopted.symbol] = Position(after, adopted.price)
    return replace(portfolio, positions=held)
