"""The simulated market behind the Broker port: whoever drives it lets sessions pass with `play`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal

from engine.domain.brokerage import (
    Activity,
    ActivityKind,
    Asset,
    BrokerAccount,
    BrokerClock,
    BrokerOrder,
    SessionHours,
)
from engine.domain.execution import FillAt
from engine.domain.market import Symbol
from engine.domain.order import Fill, Order, OrderUpdate, Side, is_final
from engine.domain.portfolio import EXACT, ZERO, Portfolio
from engine.domain.run import CashFlow, EquityPoint
from engine.ports import Calendar
from engine.simulation.simulated_broker import CASH_IN_LIEU, DIVIDEND, STOPPED_TRADING, SimulatedBroker


class AsyncBroker:
    """An account at the simulated market. `begun` are the books that the core was given, at the session that they have
    been through; between two sessions the clock stands at the close of the last one."""

    def __init__(self, core: SimulatedBroker, calendar: Calendar, begun: EquityPoint) -> None:
        self.core = core
        self._calendar = calendar
        self._points = [begun]
        self._orders: dict[str, Order] = {}
        self._placed_at: dict[str, datetime] = {}
        self._activities: list[Activity] = []

    def play(self, session: date) -> EquityPoint:
        """Lets a session open, trade and close. Raises InvariantBroken for one that does not follow."""
        before = self.core.portfolio
        opened = self.core.open_session(session)
        point, closed = self.core.close_session(session)
        fills, flows = opened.fills + closed.fills, opened.cash_flows + closed.cash_flows
        self._activities += self._lines(session, before, fills, flows)
        self._points.append(point)
        return point

    # Account

    async def account(self) -> BrokerAccount:
        """Cash, positions, and what they were worth at the last close."""
        book = self.core.portfolio
        return BrokerAccount("simulated", "ACTIVE", "", "USD", book.cash, self._points[-1].value, dict(book.positions))

    async def activities(self, after: datetime) -> Sequence[Activity]:
        """Everything that moved cash or shares since a moment, oldest first."""
        return [one for one in self._activities if one.time > after]

    async def equity_history(self, first: date, last: date) -> Mapping[date, Decimal]:
        """The books' value at the close of each session that was played."""
        return {point.session: point.value for point in self._points[1:] if first <= point.session <= last}

    # Orders

    async def place(self, order: Order) -> OrderUpdate:
        """Hands an order over; the outcome is always known."""
        if order.id not in self._orders:
            self._orders[order.id], self._placed_at[order.id] = order, self._now()
        return self.core.submit(order)

    async def lookup(self, order_id: str) -> BrokerOrder | None:
        """How an order stands, or None for an id that was never placed here."""
        order, standing = self._orders.get(order_id), self.core.standing(order_id)
        if order is None or standing is None:
            return None
        spent = [(f.quantity, EXACT.multiply(f.quantity, f.price)) for f in self.core.fills if f.order_id == order_id]
        shares = sum((quantity for quantity, _ in spent), ZERO)
        cost = sum((amount for _, amount in spent), ZERO)
        return BrokerOrder(
            order_id,
            order_id,
            order.symbol,
            order.side,
            standing.state,
            order.quantity,
            order.notional,
            standing.filled_quantity,
            EXACT.divide(cost, shares) if shares else None,
            self._placed_at[order_id],
            standing.detail,
        )

    async def open_orders(self) -> Sequence[BrokerOrder]:
        """Every order that waits, oldest first."""
        found = [await self.lookup(order_id) for order_id in self._orders]
        return [order for order in found if order is not None and not is_final(order.state)]

    async def cancel(self, order_id: str) -> None:
        """Withdraws an order that waits."""
        self.core.cancel(order_id)

    # Exchange

    async def clock(self) -> BrokerClock:
        """The close of the last session, and the one that comes next."""
        following = self._calendar.session_at(self._calendar.number(self._points[-1].session) + 1)
        opens, closes = self._calendar.opens_at(following), self._calendar.closes_at(following)
        return BrokerClock(self._now(), False, opens, closes)

    async def session_hours(self, first: date, last: date) -> Sequence[SessionHours]:
        """The sessions of the calendar, both days included."""
        calendar = self._calendar
        days = calendar.sessions(first, last)
        return [SessionHours(day, calendar.opens_at(day), calendar.closes_at(day)) for day in days]

    async def asset(self, symbol: Symbol) -> Asset | None:
        """What trades here, or None."""
        if symbol not in self.core.symbols:
            return None
        return Asset(symbol, symbol, "active", True, self.core.rules.fractional)

    async def aclose(self) -> None:
        """Nothing is open."""

    # What happened

    def _now(self) -> datetime:
        return self._calendar.closes_at(self._points[-1].session)

    def _lines(
        self, session: date, before: Portfolio, fills: Sequence[Fill], flows: Sequence[CashFlow]
    ) -> Iterator[Activity]:
        """A session as lines of the account's history: what splits and dividends moved, then trades and their fees."""
        opens, closes = self._calendar.opens_at(session), self._calendar.closes_at(session)
        prefix = f"{session:%Y%m%d}"
        for symbol, shares in self._split(before, fills).items():
            paid = sum((f.amount for f in flows if f.symbol == symbol and f.kind == CASH_IN_LIEU), ZERO)
            yield Activity(
                f"{prefix}-split-{symbol}",
                ActivityKind.SPLIT,
                opens,
                symbol,
                quantity=shares,
                amount=paid,
                words="split",
            )
        for flow in flows:
            if flow.kind != CASH_IN_LIEU:
                kind = ActivityKind.DIVIDEND if flow.kind == DIVIDEND else ActivityKind.OTHER
                name = f"{prefix}-{flow.kind}-{flow.symbol}"
                yield Activity(name, kind, opens, flow.symbol, amount=flow.amount, words=flow.kind)
        at_open = self.core.rules.fill_at is FillAt.NEXT_OPEN
        for number, fill in enumerate(fills, 1):
            when = opens if at_open and fill.reason != STOPPED_TRADING else closes
            name = f"{prefix}-fill-{number}"
            yield Activity(
                name,
                ActivityKind.FILL,
                when,
                fill.symbol,
                fill.order_id,
                fill.side,
                fill.quantity,
                fill.price,
                words="fill",
            )
            if fill.fee:
                yield Activity(f"{name}-fee", ActivityKind.FEE, when, fill.symbol, amount=-fill.fee, words="commission")

    def _split(self, before: Portfolio, fills: Sequence[Fill]) -> dict[Symbol, Decimal]:
        """Shares by symbol that came or went without a trade."""
        after = self.core.portfolio
        moved: dict[Symbol, Decimal] = {}
        for symbol in before.positions:
            traded = sum((f.quantity if f.side is Side.BUY else -f.quantity for f in fills if f.symbol == symbol), ZERO)
            change = after.quantity(symbol) - before.quantity(symbol) - traded
            if change:
                moved[symbol] = change
        return moved
