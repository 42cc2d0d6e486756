"""Decisions and orders of a whole batch: the opinions that are decided on, sized one by one and limited together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from engine.cycle.turn import OpenOrders, Turn
from engine.domain.decision import Action, Decision, Opinion
from engine.domain.market import Symbol
from engine.domain.order import Order
from engine.domain.portfolio import ZERO
from engine.execution.limits import Approved, Batch, Funds, Refused, Request, limit
from engine.execution.sizing import PositionContext, size
from engine.settings import Sizing


def size_and_limit(
    turn: Turn,
    opinions: Sequence[Opinion],
    positions: Mapping[tuple[Symbol, str], PositionContext],
    sizing: Sizing,
) -> tuple[tuple[Decision, ...], tuple[Order, ...]]:
    """Decisions in the order of the opinions, and the orders of those that trade. `positions` by symbol and book."""
    requests = [_request(turn, opinion, positions, sizing) for opinion in opinions]
    batch = Batch(
        desk=turn.desk,
        session=turn.session,
        cycle=turn.number,
        sizing=sizing,
        whole_shares=turn.whole_shares,
        funds=Funds(turn.portfolio.cash - turn.reserved, turn.value) if turn.books else None,
    )
    limited = limit(batch, requests, turn.taken)
    results = [limited.get((request.symbol, request.book)) for request in requests]
    decisions = tuple(map(_decision, opinions, requests, results))
    orders = tuple(
        replace(result.order, reason=str(opinion.rule or ""))
        for opinion, result in zip(opinions, results, strict=True)
        if isinstance(result, Approved)
    )
    return decisions, orders


def book_of(turn: Turn, opinion: Opinion) -> str:
    """The book that an opinion is sized against: its owner's, or the empty name where the desk has one book only."""
    return opinion.key.owner if turn.books else ""


def _request(
    turn: Turn,
    opinion: Opinion,
    positions: Mapping[tuple[Symbol, str], PositionContext],
    sizing: Sizing,
) -> Request:
    symbol, book = opinion.key.symbol, book_of(turn, opinion)
    queued = turn.open_orders.get(book, OpenOrders()).shares if book else turn.queued
    position = positions[symbol, book]
    return Request(
        symbol=symbol,
        book=book,
        sized=size(opinion.proposal, position, sizing),
        position=position,
        queued=queued.get(symbol, ZERO),
    )


def _decision(opinion: Opinion, request: Request, result: Approved | Refused | None) -> Decision:
    action, allowed, cuts = request.sized.action, request.sized.size, request.sized.cuts
    if isinstance(result, Approved):
        allowed, cuts = result.size, cuts + result.cuts
    elif result is not None:
        action, allowed, cuts = Action.HOLD, ZERO, cuts + result.cuts
    return Decision(
        key=opinion.key,
        action=action,
        size=allowed,
        proposal=opinion.proposal,
        cuts=cuts,
        unresolved_figures=opinion.unresolved_figures,
        evidence=opinion.evidence,
        book=request.book,
    )
