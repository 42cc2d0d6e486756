"""Orders: placed, listed, looked up, replaced, withdrawn."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from connectors.sandbox.exchange import Exchange
from connectors.sandbox.order_rules import read_ticket
from connectors.sandbox.orders import SandboxOrder
from connectors.sandbox.router import Router
from connectors.sandbox.wire import Refusal, Request, Response, identity, invalid, not_found
from engine.domain.decimal_text import plain
from engine.domain.portfolio import ZERO


class OrdersApi:
    """Answers for one account."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._market = exchange.market
        self._book = exchange.book

    def routes(self, router: Router) -> None:
        """Says what is answered here."""
        router.add("POST", "/v2/orders", self.place)
        router.add("GET", "/v2/orders", self.orders)
        router.add("DELETE", "/v2/orders", self.cancel_all)
        router.add("GET", "/v2/orders:by_client_order_id", self.order_by_client_id)
        router.add("GET", "/v2/orders/{order}", self.order)
        router.add("PATCH", "/v2/orders/{order}", self.replace)
        router.add("DELETE", "/v2/orders/{order}", self.cancel)

    def place(self, request: Request) -> Response:
        """Takes an order."""
        ticket = read_ticket(request.json(), self._market, self._exchange.now)
        return Response(200, self._exchange.submit(ticket))

    def orders(self, request: Request) -> Response:
        """Orders by status and time of submission; at most 500 at once."""
        limit = request.number("limit", 50, 500)
        status = request.choice("status", "open", ("open", "closed", "all"))
        newest_first = request.choice("direction", "desc", ("asc", "desc")) == "desc"
        after, until = request.moment("after"), request.moment("until")
        symbols = {self._market.named(word, "symbol").symbol for word in request.words("symbols")}
        side = request.query.get("side")
        classes = request.words("asset_class")
        after_id, before_id = (self._seq(request.query.get(name)) for name in ("after_order_id", "before_order_id"))
        found = [
            order
            for order in self._book.orders
            if (status == "all" or order.is_open is (status == "open"))
            and (after is None or order.created_at > after)
            and (until is None or order.created_at < until)
            and (not symbols or order.symbol in symbols)
            and (not side or order.side.value.lower() == side)
            and (not classes or self._class(order) in classes)
            and (after_id is None or order.seq > after_id)
            and (before_id is None or order.seq < before_id)
        ]
        ordered = found[::-1] if newest_first else found
        return Response(200, [self._json(order) for order in ordered[:limit]])

    def order(self, request: Request) -> Response:
        """One order, by the broker's id."""
        return Response(200, self._json(self._order(request)))

    def order_by_client_id(self, request: Request) -> Response:
        """One order, by the id that the client gave it."""
        order = self._book.by_client_id.get(request.query.get("client_order_id", ""))
        if order is None:
            raise not_found(f"order not found for {request.query.get('client_order_id', '')[:128]}")
        return Response(200, self._json(order))

    def cancel(self, request: Request) -> Response:
        """Withdraws an order."""
        self._exchange.cancel(self._order(request))
        return Response(204)

    def cancel_all(self, request: Request) -> Response:
        """Withdraws every open order."""
        done = self._book.open_orders()
        for order in done:
            self._exchange.cancel(order)
        return Response(207, [{"id": order.id, "status": 200} for order in done])

    def replace(self, request: Request) -> Response:
        """Puts a changed order in the place of an open one."""
        order, body = self._order(request), request.json()
        if not order.is_open:
            raise Refusal(422, 42210000, f'order is already in "{order.status}" state')
        if order.notional is not None or order.filled_qty:
            raise invalid("the sandbox does not replace orders by notional, or filled in part")
        changed = {
            "symbol": self._market.listing(order.symbol).wire,
            "side": order.side.value.lower(),
            "type": order.type,
            "qty": body.get("qty") or plain(order.qty or ZERO),
            "time_in_force": body.get("time_in_force") or order.time_in_force,
            "limit_price": body.get("limit_price") or order.limit_price,
            "client_order_id": body.get("client_order_id") or identity("replacement", order.id),
        }
        return Response(200, self._exchange.submit(read_ticket(changed, self._market, self._exchange.now), order))

    def _order(self, request: Request) -> SandboxOrder:
        name = request.parts["order"]
        try:
            UUID(name)
        except ValueError:
            raise invalid("order_id must be a valid UUID") from None
        order = self._book.by_id.get(name.lower())
        if order is None:
            raise not_found(f"order not found for {name}")
        return order

    def _seq(self, order_id: str | None) -> int | None:
        if not order_id:
            return None
        order = self._book.by_id.get(order_id)
        if order is None:
            raise invalid(f"order not found for {order_id[:40]}")
        return order.seq

    def _class(self, order: SandboxOrder) -> str:
        return "crypto" if self._market.listing(order.symbol).crypto else "us_equity"

    def _json(self, order: SandboxOrder) -> dict[str, Any]:
        return order.json(self._market.listing(order.symbol))
