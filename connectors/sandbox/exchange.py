"""The sandbox's exchange: order submission, and the passing of time.

The account is on margin, as a real paper account is: cash may fall below zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from connectors.sandbox.corporate_actions import apply_actions
from connectors.sandbox.market import latest_session, next_session, session_open
from connectors.sandbox.matching_engine import MatchingEngine
from connectors.sandbox.order_checks import check_account, check_buying_power
from connectors.sandbox.order_rules import Ticket, good_for
from connectors.sandbox.orders import SandboxOrder
from connectors.sandbox.protocol import ApiError, forbidden, invalid, stable_id, stamp
from engine.domain.decimal_text import plain


class Exchange:
    """Orders and time. `on_step` gets every step of the clock, after the books are on disk; all changes are written at
    once."""

    def __init__(self, matching: MatchingEngine, *, pay_dividends: bool = False) -> None:
        """Open the account if the books are new."""
        self.matching = matching
        self.market = matching.market
        self.book = matching.book
        self.on_step: Callable[[datetime, datetime], None] = lambda before, after: None
        self._pay_dividends = pay_dividends
        if self.book.is_new:
            self.book.facts |= {
                "account": stable_id("account", matching.now),
                "created": stamp(matching.now),
                "actions_through": latest_session(self.market.exchange, matching.now).isoformat(),
            }
        matching.commit()

    @property
    def now(self) -> datetime:
        """The sandbox's time."""
        return self.matching.now

    # Orders

    def submit(self, ticket: Ticket, replaces: SandboxOrder | None = None) -> dict[str, Any]:
        """Submit an order; the answer is its state on arrival, so one that fills at once is still pending in it.

        Raises ApiError.
        """
        matching, listing = self.matching, ticket.listing
        if ticket.client_order_id in self.book.by_client_id:
            raise invalid("client_order_id must be unique")
        check_account(matching)
        if not matching.is_tradable(listing.symbol):
            raise invalid(f"asset {listing.wire} is not tradable")
        intent = check_buying_power(matching, ticket, replaces)
        fault = matching.faults.for_order(listing.wire, ticket.side.value.lower())
        if fault is not None and fault.kind == "refuse":
            raise forbidden(fault.message or "order refused")
        order = self._new_order(ticket, intent)
        if replaces is not None:
            order.replaces = replaces.id
            replaces.replaced_by, replaces.replaced_at = order.id, matching.now
            matching.end(replaces, "replaced")
        if fault is not None and fault.kind == "partial_fill":
            order.part, order.rest = fault.fraction, fault.then
        self.book.add(order)
        matching.report(order.status, order)
        answer = order.json(listing)
        if fault is not None and fault.kind == "reject":
            order.failed_at = matching.now
            matching.end(order, "rejected")
        elif matching.trades_now(order):
            matching.match(order)
        matching.commit()
        return answer

    def cancel(self, order: SandboxOrder) -> None:
        """Cancel an order. Raises ApiError for a final one."""
        if not order.is_open:
            raise ApiError(422, 42210000, f'order is already in "{order.status}" state')
        order.canceled_at = self.now
        self.matching.end(order, "canceled")
        self.matching.commit()

    def transfer(self, amount: Decimal) -> None:
        """Deposit cash, or withdraw it."""
        self.book.portfolio = replace(self.book.portfolio, cash=self.book.portfolio.cash + amount)
        values = {"date": self.now.date().isoformat(), "net_amount": plain(amount), "status": "executed"}
        self.book.record("CSD" if amount > 0 else "CSW", self.now, values)
        self.matching.commit()

    def resume(self) -> None:
        """Match orders that a fault kept from the market."""
        self._match_waiting(opening=False)
        self.matching.commit()

    def _new_order(self, ticket: Ticket, intent: str) -> SandboxOrder:
        seq = len(self.book.orders) + 1
        order_id = stable_id("order", self.book.facts["account"], seq)
        waits = not ticket.listing.crypto and session_open(self.market.exchange, self.now) is None
        return SandboxOrder(
            seq=seq,
            id=order_id,
            client_order_id=ticket.client_order_id or stable_id("client", order_id),
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
        """Advance the clock; every open and close on the way happens at its time.

        Raises ApiError for a time in the past, or one beyond the data.
        """
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
        """The next time at which something may happen by itself."""
        calendar = self.market.exchange
        today = session_open(calendar, self.now)
        moments = [calendar.opens_at(next_session(calendar, self.now))]
        if today is not None:
            moments.append(calendar.closes_at(today))
        for order in self.book.open_orders():
            if order.rest_due is not None and not self.matching.is_halted(order.symbol):
                moments.append(max(order.rest_due, self.now))
            if self.market.listing(order.symbol).crypto:
                moments.append(datetime.combine(self.now.date() + timedelta(days=1), time(0), UTC))
        return min(moments)

    def _step(self, to: datetime) -> None:
        matching, calendar = self.matching, self.market.exchange
        before, matching.now = matching.now, to
        for order in self.book.open_orders():
            if order.limit_price is not None and order.status in ("new", "partially_filled"):
                matching.match_limit(order, before)
        for order in self.book.open_orders():
            if order.rest_due is not None and order.rest_due <= to and not matching.is_halted(order.symbol):
                order.rest_due = None
                matching.fill(order, matching.price(order.symbol))
        session = latest_session(calendar, to)
        opening = calendar.opens_at(session) == to
        if opening:
            apply_actions(matching, session, pay_dividends=self._pay_dividends)
        self._match_waiting(opening=opening)
        if before < calendar.closes_at(session) <= to:
            self._close(session)
        matching.commit()
        self.on_step(before, to)

    def _match_waiting(self, *, opening: bool) -> None:
        for order in self.book.open_orders():
            if order.status in ("accepted", "pending_new") and self.matching.trades_now(order):
                self.matching.match(order)
            if opening and order.time_in_force == "opg" and order.is_open:
                self.matching.expire(order)

    def _close(self, session: date) -> None:
        matching = self.matching
        for order in self.book.open_orders():
            if order.session != session.isoformat():
                continue
            trades = self.market.path(order.symbol, session) is not None and not matching.is_halted(order.symbol)
            if order.time_in_force == "cls" and trades:
                matching.match(order)
            if order.is_open:
                matching.expire(order)
        self.book.record_close(session, matching.figures().equity)
