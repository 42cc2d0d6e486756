"""Orders of the protocol: place, list, look up, replace, cancel."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from connectors.sandbox.order_rules import read_ticket
from connectors.sandbox.orders import SandboxOrder
from connectors.sandbox.protocol import ApiError, Request, Response, invalid, not_found, stable_id
from connectors.sandbox.router import Api, route
from engine.domain.decimal_text import plain
from engine.domain.portfolio import ZERO


class OrdersApi(Api):
    """Requests for orders."""

    @route("POST", "/v2/orders")
    def place(self, request: Request) -> Response:
        """Submit an order."""
        ticket = read_ticket(request.json(), self._market, self._exchange.now)
        return Response(200, self._exchange.submit(ticket))

    @route("GET", "/v2/orders")
    def orders(self, request: Request) -> Response:
        """Orders by status and time of submission; at most 500 at once."""
        limit = request.number("limit", 50, 500)
        status = request.choice("status", "open", ("open", "closed", "all"))
        newest_first = request.choice("direction", "desc", ("asc", "desc")) == "desc"
        after, until = request.moment("after"), request.moment("until")
        symbols = {self._market.require(word, "symbol").symbol for word in request.values("symbols")}
        side = request.query.get("side")
        classes = request.values("asset_class")
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

    @route("GET", "/v2/orders/{order}")
    def order(self, request: Request) -> Response:
        """One order, by the broker's id."""
        return Response(200, self._json(self._order(request)))

    @route("GET", "/v2/orders:by_client_order_id")
    def order_by_client_id(self, request: Request) -> Response:
        """One order, by its client order id."""
        order = self._book.by_client_id.get(request.query.get("client_order_id", ""))
        if order is None:
            raise not_found(f"order not found for {request.query.get('client_order_id', '')[:128]}")
        return Response(200, self._json(order))

    @route("DELETE", "/v2/orders/{order}")
    def cancel(self, request: Request) -> Response:
        """Cancel an order."""
        self._exchange.cancel(self._order(request))
        return Response(204)

    @route("DELETE", "/v2/orders")
    def cancel_all(self, request: Request) -> Response:
        """Cancel every open order."""
        done = self._book.open_orders()
        for order in done:
            self._exchange.cancel(order)
        return Response(207, [{"id": order.id, "status": 200} for order in done])

    @route("PATCH", "/v2/orders/{order}")
    def replace(self, request: Request) -> Response:
        """Replace an open order by a changed one."""
        order, body = self._order(request), request.json()
        if not order.is_open:
            raise ApiError(422, 42210000, f'order is already in "{order.status}" state')
        if order.notional is not None or order.filled_qty:
            raise invalid("the sandbox does not replace orders by notional, or filled in part")
        changed = {
            "symbol": self._market.listing(order.symbol).wire,
            "side": order.side.value.lower(),
            "type": order.type,
            "qty": body.get("qty") or plain(order.qty or ZERO),
            "time_in_force": body.get("time_in_force") or order.time_in_force,
            "limit_price": body.get("limit_price") or order.limit_price,
            "client_order_id": body.get("client_order_id") or stable_id("replacement", order.id),
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
