"""Decisions and books as values, for tests of what is told about them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal

from engine.domain.decision import Action, Cut, Decision, DecisionKey, Proposal
from engine.domain.order import Portfolio, Position
from engine.domain.run import EquityPoint


def decided(
    symbol: str,
    action: str,
    size: Decimal | int,
    session: date,
    *,
    run: str = "r1",
    owner: str = "desk",
    reason: str = "",
    cuts: tuple[Cut, ...] = (),
) -> Decision:
    """A decision of an owner, as it was asked for but for the cuts."""
    asked = int(cuts[0].asked if cuts else size)
    return Decision(
        key=DecisionKey(run, session, 1, symbol, owner),
        action=Action(action),
        size=Decimal(size),
        proposal=Proposal(Action(action), asked, None, reason),
        cuts=cuts,
    )


def settled(
    session: date,
    value: Decimal,
    cash: Decimal,
    positions: Mapping[str, Position] | None = None,
    prices: Mapping[str, Decimal] | None = None,
) -> EquityPoint:
    """The books at a close; without `positions` all is cash."""
    return EquityPoint(session, value, Portfolio(cash, positions or {}), dict(prices or {}))
