"""A seat's account at the table as the venue of a session: its books at each close, and what moved them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal

from engine.account.time_weighted import EXTERNAL
from engine.arena.market import Market
from engine.arena.public_data import session_of
from engine.arena.values import FlowKind
from engine.domain.market import Symbol
from engine.domain.order import Fill, Side
from engine.domain.portfolio import Portfolio, Position
from engine.domain.run import CashFlow, EquityPoint
from engine.execution.venue import BuyingPower, OrderTerms, SettledSession, Settlement

_KINDS = {FlowKind.INCOME: EXTERNAL, FlowKind.SHOCK: EXTERNAL}
"""Flows that no trade has earned; the others keep their name."""


class SeatAccount:
    """The account of one seat (SessionVenue). Its books are those of the last close: what came this morning counts
    from the next one."""

    def __init__(self, arena: Market, agent: str) -> None:
        self._agent = agent
        begun = {flow.stock: flow for flow in arena.flows if flow.agent == agent and flow.kind is FlowKind.INITIAL}
        positions = {
            stock: Position(Decimal(flow.shares), arena.listings[stock].rules.first_price)
            for stock, flow in begun.items()
            if stock is not None and flow.shares
        }
        prices = {name: listing.rules.first_price for name, listing in arena.listings.items()}
        books = Portfolio(begun[None].amount, positions)
        self._point = EquityPoint(session_of(0), books.value(prices), books, prices)
        self._closed: SettledSession | None = None

    @property
    def portfolio(self) -> Portfolio:
        """Cash and shares at the last close."""
        return self._point.portfolio

    @property
    def buying_power(self) -> BuyingPower:
        """All of it: open orders are cancelled at the close."""
        held = {symbol: position.quantity for symbol, position in self.portfolio.positions.items()}
        return BuyingPower(self.portfolio.cash, held=held)

    async def settle(self, session: date) -> Settlement:
        """The day that has closed since the last decision."""
        return Settlement() if self._closed is None else Settlement.of((self._closed,))

    async def whole_shares(self, symbols: Iterable[Symbol]) -> frozenset[Symbol]:
        """All: the arena trades no part of a share."""
        return frozenset(symbols)

    async def terms(self, symbols: Iterable[Symbol]) -> Mapping[Symbol, OrderTerms]:
        """None: any order is taken."""
        return {}

    def close(self, arena: Market) -> None:
        """Keep the books of a day that has closed, with its trades and flows."""
        before, day = self._point, arena.day - 1
        positions = {
            name: Position(Decimal(held), arena.average_cost(self._agent, name))
            for name in arena.listings
            if (held := arena.ledger.shares(self._agent, name))
        }
        prices = {name: listing.closes[-1] for name, listing in arena.listings.items()}
        books = Portfolio(arena.ledger.cash(self._agent), positions)
        self._point = EquityPoint(session_of(day), books.value(prices), books, prices)
        self._closed = SettledSession(before, self._point, self._fills(arena, day), self._flows(arena, day))

    def _fills(self, arena: Market, day: int) -> tuple[Fill, ...]:
        return tuple(
            Fill(
                order_id=f"day-{day}",
                symbol=one.stock,
                side=Side.BUY if one.buyer == self._agent else Side.SELL,
                session=session_of(day),
                quantity=Decimal(one.quantity),
                price=one.price,
                fee=one.cost_buyer if one.buyer == self._agent else one.cost_seller,
            )
            for one in arena.trades
            if one.day == day and self._agent in (one.buyer, one.seller)
        )

    def _flows(self, arena: Market, day: int) -> tuple[CashFlow, ...]:
        return tuple(
            CashFlow(
                session=session_of(day),
                symbol=flow.stock or "",
                kind=_KINDS.get(flow.kind, flow.kind.value),
                amount=flow.amount,
            )
            for flow in arena.flows
            if flow.day == day and flow.agent == self._agent and flow.kind is not FlowKind.INITIAL
        )
