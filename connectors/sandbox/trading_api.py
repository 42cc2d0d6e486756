"""Trading in the protocol: orders (place, list, look up, replace, cancel) and positions with their closing."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

from connectors.sandbox.book import market_value
from connectors.sandbox.exchange import Exchange
from connectors.sandbox.orders import SandboxOrder, amount_of, read_ticket
from connectors.sandbox.protocol import ApiError, Request, invalid, not_found, route, stable_id, texts
from engine.domain.market import from_nano
from engine.domain.order import EXACT, SHARE_STEP, ZERO
from engine.domain.text import plain

_RATIO = Decimal("0.0000000001")


class TradingApi:
    """Requests for orders and positions."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._market = exchange.market
        self._book = exchange.book

    # Orders

    @route("POST", "/v2/orders")
    def place(self, request: Request) -> dict[str, Any]:
        """Submit an order."""
        return self._submit(request.json())

    @route("GET", "/v2/orders")
    def orders(self, request: Request) -> list[dict[str, Any]]:
        """Orders by status and time of submission; at most 500 at once."""
        limit = request.number("limit", 50, 500)
        status = request.choice("status", "open", ("open", "closed", "all"))
        newest_first = request.newest_first("direction", "desc")
        after, until = request.moment("after"), request.moment("until")
        symbols = {self._market.require(name, "symbol").symbol for name in request.values("symbols")}
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
            and (not classes or self._market.listing(order.symbol).asset_class in classes)
            and (after_id is None or order.seq > after_id)
            and (before_id is None or order.seq < before_id)
        ]
        ordered = found[::-1] if newest_first else found
        return [self._json(order) for order in ordered[:limit]]

    @route("GET", "/v2/orders/{order}")
    def order(self, request: Request) -> dict[str, Any]:
        """One order, by the broker's id."""
        return self._json(self._order(request))

    @route("GET", "/v2/orders:by_client_order_id")
    def order_by_client_id(self, request: Request) -> dict[str, Any]:
        """One order, by its client order id."""
        order = self._book.by_client_id.get(request.query.get("client_order_id", ""))
        if order is None:
            raise not_found(f"order not found for {request.query.get('client_order_id', '')[:128]}")
        return self._json(order)

    @route("DELETE", "/v2/orders/{order}", status=204)
    def cancel(self, request: Request) -> None:
        """Cancel an order."""
        self._exchange.cancel(self._order(request))

    @route("DELETE", "/v2/orders", status=207)
    def cancel_all(self, request: Request) -> list[dict[str, Any]]:
        """Cancel every open order."""
        done = self._book.open_orders()
        for order in done:
            self._exchange.cancel(order)
        return [{"id": order.id, "status": 200} for order in done]

    @route("PATCH", "/v2/orders/{order}")
    def replace(self, request: Request) -> dict[str, Any]:
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
        return self._submit(changed, order)

    def _submit(self, body: dict[str, Any], replaces: SandboxOrder | None = None) -> dict[str, Any]:
        return self._exchange.submit(read_ticket(body, self._market, self._exchange.now), replaces)

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

    def _json(self, order: SandboxOrder) -> dict[str, Any]:
        return order.json(self._market.listing(order.symbol))

    # Positions

    @route("GET", "/v2/positions")
    def positions(self, request: Request) -> list[dict[str, Any]]:
        """All positions."""
        return [self._position(symbol) for symbol in sorted(self._book.portfolio.positions)]

    @route("GET", "/v2/positions/{asset}")
    def position(self, request: Request) -> dict[str, Any]:
        """One position, by name or asset id."""
        return self._position(self._symbol_held(request))

    def _symbol_held(self, request: Request) -> str:
        listing = self._market.require(request.parts["asset"], "symbol")
        if listing.symbol not in self._book.portfolio.positions:
            raise not_found("position does not exist")
        return listing.symbol

    def _position(self, symbol: str) -> dict[str, Any]:
        listing = self._market.listing(symbol)
        held = self._book.portfolio.positions[symbol]
        price = self._exchange.price(symbol)
        before = self._market.close_before(symbol, self._exchange.now)
        last = price if before is None else from_nano(before)
        quantity, cost = held.quantity, held.average_cost.quantize(SHARE_STEP)
        value, basis = market_value(quantity, price), market_value(quantity, held.average_cost)
        gained = value - market_value(quantity, last)
        taken = self._book.held_for_orders(symbol, price)
        document = {
            "asset_id": listing.asset_id,
            "symbol": listing.compact,
            "exchange": listing.exchange,
            "asset_class": listing.asset_class,
            "asset_marginable": not listing.crypto,
            "qty": quantity,
            "qty_available": quantity - taken if quantity > 0 else quantity,
            "avg_entry_price": cost,
            "side": "long" if quantity > 0 else "short",
            "market_value": value,
            "cost_basis": basis,
            "unrealized_pl": value - basis,
            "unrealized_plpc": _ratio(value - basis, abs(basis)),
            "unrealized_intraday_pl": gained,
            "unrealized_intraday_plpc": _ratio(gained, abs(value - gained)),
            "current_price": price,
            "lastday_price": last,
            "change_today": _ratio(price - last, last),
        }
        return texts(document)

    @route("DELETE", "/v2/positions/{asset}")
    def close_one(self, request: Request) -> dict[str, Any]:
        """Close a position, or part of it, at the market."""
        symbol = self._symbol_held(request)
        held = self._book.portfolio.quantity(symbol)
        quantity, percentage = amount_of(request.query, "qty"), amount_of(request.query, "percentage")
        if quantity is None:
            quantity = EXACT.multiply(abs(held), (percentage or 100) / Decimal(100)).quantize(SHARE_STEP)
        return self._closing(symbol, quantity, held)

    @route("DELETE", "/v2/positions", status=207)
    def close_all(self, request: Request) -> list[dict[str, Any]]:
        """Close all positions at the market."""
        if request.query.get("cancel_orders", "").lower() == "true":
            for order in self._book.open_orders():
                self._exchange.cancel(order)
        results = []
        for symbol, position in sorted(self._book.portfolio.positions.items()):
            listing = self._market.listing(symbol)
            try:
                body, status = self._closing(symbol, abs(position.quantity), position.quantity), 200
            except ApiError as error:
                body, status = error.body, error.status
            results.append({"symbol": listing.compact, "status": status, "body": body})
        return results

    def _closing(self, symbol: str, quantity: Decimal, held: Decimal) -> dict[str, Any]:
        listing = self._market.listing(symbol)
        body = {
            "symbol": listing.wire,
            "qty": plain(quantity),
            "side": "sell" if held > 0 else "buy",
            "type": "market",
            "time_in_force": "gtc" if listing.crypto else "day",
        }
        return self._submit(body)


def _ratio(above: Decimal, below: Decimal) -> Decimal:
    return (above / below).quantize(_RATIO) if below else ZERO
