"""The broker behind the sandbox's protocol: takes orders, and lets time pass.

The account is on margin, as a real paper account is: cash may fall below zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from connectors.sandbox.corporate_actions import apply_actions
from connectors.sandbox.floor import Floor
from connectors.sandbox.market import latest_session, next_session, session_open
from connectors.sandbox.order_rules import Ticket, good_for
from connectors.sandbox.orders import SandboxOrder
from connectors.sandbox.permission import check_account, check_means
from connectors.sandbox.wire import Refusal, denied, identity, invalid, stamp
from engine.domain.decimal_text import plain


class Exchange:
    """Orders and time. `moved` receives every step of the clock, after the books are on disk; all methods that change
    something leave them written."""

    def __init__(self, floor: Floor, *, pay_dividends: bool = False) -> None:
        """Opens the account where the books are new."""
        self.floor = floor
        self.market = floor.market
        self.book = floor.book
        self.moved: Callable[[datetime, datetime], None] = lambda before, after: None
        self._pay_dividends = pay_dividends
        if self.book.is_new:
            self.book.facts |= {
                "account": identity("account", floor.now),
                "created": stamp(floor.now),
                "actions_through": latest_session(self.market.exchange, floor.now).isoformat(),
            }
        floor.commit()

    @property
    def now(self) -> datetime:
        """What time it is here."""
        return self.floor.now

    # Orders

    def submit(self, ticket: Ticket, replaces: SandboxOrder | None = None) -> dict[str, Any]:
        """Takes an order; the answer is how it stood on arrival, so one that fills at once is still pending in it.
        Raises Refusal."""
        floor, listing = self.floor, ticket.listing
        if ticket.client_order_id in self.book.by_client_id:
            raise invalid("client_order_id must be unique")
        check_account(floor)
        if not floor.is_tradable(listing.symbol):
            raise invalid(f"asset {listing.wire} is not tradable")
        intent = check_means(floor, ticket, replaces)
        fault = floor.faults.for_order(listing.wire, ticket.side.value.lower())
        if fault is not None and fault.kind == "refuse":
            raise denied(fault.message or "order refused")
        order = self._made(ticket, intent)
        if replaces is not None:
            order.replaces = replaces.id
            replaces.replaced_by, replaces.replaced_at = order.id, floor.now
            floor.end(replaces, "replaced")
        if fault is not None and fault.kind == "partial_fill":
            order.part, order.rest = fault.fraction, fault.then
        self.book.add(order)
        floor.tell(order.status, order)
        answer = order.json(listing)
        if fault is not None and fault.kind == "reject":
            order.failed_at = floor.now
            floor.end(order, "rejected")
        elif floor.trades_now(order):
            floor.arrive(order)
        floor.commit()
        return answer

    def cancel(self, order: SandboxOrder) -> None:
        """Withdraws an order. Raises Refusal for one that has ended."""
        if not order.is_open:
            raise Refusal(422, 42210000, f'order is already in "{order.status}" state')
        order.canceled_at = self.now
        self.floor.end(order, "canceled")
        self.floor.commit()

    def transfer(self, amount: Decimal) -> None:
        """Brings cash into the account, or takes it out."""
        self.book.portfolio = replace(self.book.portfolio, cash=self.book.portfolio.cash + amount)
        values = {"date": self.now.date().isoformat(), "net_amount": plain(amount), "status": "executed"}
        self.book.record("CSD" if amount > 0 else "CSW", self.now, values)
        self.floor.commit()

    def resume(self) -> None:
        """Lets orders meet the market that a fault kept from it."""
        self._meet(opening=False)
        self.floor.commit()

    def _made(self, ticket: Ticket, intent: str) -> SandboxOrder:
        seq = len(self.book.orders) + 1
        order_id = identity("order", self.book.facts["account"], seq)
        waits = not ticket.listing.crypto and session_open(self.market.exchange, self.now) is None
        return SandboxOrder(
            seq=seq,
            id=order_id,
            client_order_id=ticket.client_order_id or identity("client", order_id),
            symbol=ticket.listing.symbol,
            side=ticket.side,
            type=ticket.type,
            time_in_force=ticket.time_in_force,
            created_at=self.now,
            updated_at=self.now,
            status="accepted" if waits or ticket.time_in_force in ("opg", "cls") else "pending_new",
            intent=intent,
            qty=ticket.qty,
            notional=ticket.notional,
            limit_price=ticket.limit_price,
            session=good_for(ticket, self.market, self.now),
        )

    # Time

    def advance(self, to: datetime) -> None:
        """Lets time pass: every open and close on the way happens at its moment. Raises Refusal for a moment that has
        passed, or one beyond the data."""
        if to < self.now:
            raise invalid(f"the clock stands at {stamp(self.now)} and does not go back to {stamp(to)}")
        last, calendar = self.market.last_session, self.market.exchange
        if last is not None:
            end = calendar.opens_at(next_session(calendar, datetime.combine(last, time(23, 59), UTC)))
            if to >= end:
                raise invalid(f"the data ends on {last}: the clock cannot pass the next open after it")
        while (event := self._next_event()) <= to:
            self._step(event)
        if to > self.now:
            self._step(to)

    def _next_event(self) -> datetime:
        """The next moment at which something may happen by itself."""
        calendar = self.market.exchange
        today = session_open(calendar, self.now)
        moments = [calendar.opens_at(next_session(calendar, self.now))]
        if today is not None:
            moments.append(calendar.closes_at(today))
        for order in self.book.open_orders():
            if order.rest_due is not None and not self.floor.is_halted(order.symbol):
                moments.append(max(order.rest_due, self.now))
            if self.market.listing(order.symbol).crypto:
                moments.append(datetime.combine(self.now.date() + timedelta(days=1), time(0), UTC))
        return min(moments)

    def _step(self, to: datetime) -> None:
        floor, calendar = self.floor, self.market.exchange
        before, floor.now = floor.now, to
        for order in self.book.open_orders():
            if order.limit_price is not None and order.status in ("new", "partially_filled"):
                floor.cross(order, before)
        for order in self.book.open_orders():
            if order.rest_due is not None and order.rest_due <= to and not floor.is_halted(order.symbol):
                order.rest_due = None
                floor.fill(order, floor.price(order.symbol))
        session = latest_session(calendar, to)
        opening = calendar.opens_at(session) == to
        if opening:
            apply_actions(floor, session, pay_dividends=self._pay_dividends)
        self._meet(opening=opening)
        if before < calendar.closes_at(session) <= to:
            self._close(session)
        floor.commit()
        self.moved(before, to)

    def _meet(self, *, opening: bool) -> None:
        for order in self.book.open_orders():
            if order.status in ("accepted", "pending_new") and self.floor.trades_now(order):
                self.floor.arrive(order)
            if opening and order.time_in_force == "opg" and order.is_open:
                self.floor.expire(order)

    def _close(self, session: date) -> None:
        floor = self.floor
        for order in self.book.open_orders():
            if order.session != session.isoformat():
                continue
            trades = self.market.path(order.symbol, session) is not None and not floor.is_halted(order.symbol)
            if order.time_in_force == "cls" and trades:
                floor.arrive(order)
            if order.is_open:
                floor.expire(order)
        self.book.mark(session, floor.figures().equity)
