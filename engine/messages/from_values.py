"""Events made from the values that they are about: published while a run goes on, and again from its rows."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from engine.domain.decision import Decision, Opinion
from engine.domain.order import Fill
from engine.domain.run import EquityPoint
from engine.messages.events import DecisionMade, OpinionFormed, OrderFilled, SessionSettled


def opinion_formed(time: datetime, opinion: Opinion) -> OpinionFormed:
    """The event of an opinion that was combined with others."""
    key = opinion.key
    return OpinionFormed(
        run=key.run,
        time=time,
        session=key.session,
        symbol=key.symbol,
        owner=key.owner,
        action=opinion.action.value,
        size=opinion.size,
        reason=opinion.reason,
    )


def decision_made(time: datetime, decision: Decision) -> DecisionMade:
    """The event of a decision."""
    key = decision.key
    return DecisionMade(
        run=key.run,
        time=time,
        session=key.session,
        symbol=key.symbol,
        owner=key.owner,
        action=decision.action.value,
        size=decision.size,
        reason=decision.reason,
        cut=decision.cut,
    )


def order_filled(run: str, time: datetime, fill: Fill) -> OrderFilled:
    """The event of a trade, published by the run that has booked it."""
    return OrderFilled(
        run=run,
        time=time,
        order_id=fill.order_id,
        session=fill.session,
        symbol=fill.symbol,
        side=fill.side.value,
        quantity=fill.quantity,
        price=fill.price,
        fee=fill.fee,
    )


def session_settled(run: str, time: datetime, books: EquityPoint, deposits: Decimal = Decimal(0)) -> SessionSettled:
    """The event of a session's closed books; `deposits`: those less withdrawals in it."""
    return SessionSettled(
        run=run,
        time=time,
        session=books.session,
        value=books.value,
        cash=books.portfolio.cash,
        positions=tuple((symbol, p.quantity, books.prices[symbol]) for symbol, p in books.portfolio.positions.items()),
        brought=deposits,
    )
