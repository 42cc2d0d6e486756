"""Events made from the values that they are about: published while a run goes on, and again from its rows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from engine.domain.decision import Decision, DecisionKey, Opinion
from engine.domain.model_call import ModelResult
from engine.domain.order import Fill, Order
from engine.domain.run import EquityPoint
from engine.messages.answer_text import answer_text
from engine.messages.events import AgentAnswered, DecisionMade, OpinionFormed, OrderFilled, OrderMoved, SessionSettled


def agent_answered(
    time: datetime,
    key: DecisionKey,
    step: str,
    *,
    result: ModelResult,
    outcome: str,
    reason: str,
    answer: Mapping[str, Any] | None,
) -> AgentAnswered:
    """The event of one call for the question `step`; `outcome`, `reason` and `answer` are those of an AnswerEntry. An
    answer that could not be used follows the reason, after an empty line."""
    unusable = "\n\n".join(part for part in (f"{outcome}: {reason}", result.text) if part)
    return AgentAnswered(
        run=key.run,
        time=time,
        session=key.session,
        symbol=key.symbol,
        owner=key.owner,
        step=step,
        text=unusable if answer is None else answer_text(answer),
        model=result.model,
        abstained=outcome == "abstained",
        cached=result.cached,
        input_tokens=result.usage.input_tokens,
        output_tokens=result.usage.output_tokens,
        cost=result.cost,
        seconds=result.latency,
    )


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


def order_moved(run: str, time: datetime, order: Order, detail: str = "") -> OrderMoved:
    """The event of an order that came to the state that it has."""
    return OrderMoved(
        run=run,
        time=time,
        order_id=order.id,
        session=order.session,
        symbol=order.symbol,
        side=order.side.value,
        state=order.state.value,
        detail=detail,
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
        costs=tuple(position.average_cost for position in books.portfolio.positions.values()),
    )
