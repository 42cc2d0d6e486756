"""Positions of the protocol, and their closing."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

from connectors.sandbox.margin import market_value
from connectors.sandbox.order_rules import read_ticket
from connectors.sandbox.protocol import ApiError, Request, Response, invalid, not_found
from connectors.sandbox.router import Api, route
from engine.domain.decimal_text import plain
from engine.domain.market import from_nano
from engine.domain.portfolio import EXACT, SHARE_STEP

_RATIO = Decimal("0.0000000001")


class PositionsApi(Api):
    """Requests for positions."""

    @route("GET", "/v2/positions")
    def positions(self, request: Request) -> Response:
        """All positions."""
        return Response(200, [self._position(symbol) for symbol in sorted(self._book.portfolio.positions)])

    @route("GET", "/v2/positions/{asset}")
    def position(self, request: Request) -> Response:
        """One position, by name or asset id."""
        return Response(200, self._position(self._symbol_held(request)))

    def _symbol_held(self, request: Request) -> str:
        listing = self._market.require(request.parts["asset"], "symbol")
        if listing.symbol not in self._book.portfolio.positions:
            raise not_found("position does not exist")
        return listing.symbol

    def _position(self, symbol: str) -> dict[str, Any]:
        matching, listing = self._matching, self._market.listing(symbol)
        held = self._book.portfolio.positions[symbol]
        price = matching.price(symbol)
        before = self._market.close_before(symbol, matching.now)
        last = price if before is None else from_nano(before)
        quantity, cost = held.quantity, held.average_cost.quantize(SHARE_STEP)
        value, basis = market_value(quantity, price), market_value(quantity, held.average_cost)
        gained = value - market_value(quantity, last)
        taken = self._book.held_for_orders(symbol, price)
        return {
            "asset_id": listing.asset_id,
            "symbol": listing.compact,
            "exchange": "CRYPTO" if listing.crypto else "NASDAQ",
            "asset_class": "crypto" if listing.crypto else "us_equity",
            "asset_marginable": not listing.crypto,
            "qty": plain(quantity),
            "qty_available": plain(quantity - taken if quantity > 0 else quantity),
            "avg_entry_price": plain(cost),
            "side": "long" if quantity > 0 else "short",
            "market_value": plain(value),
            "cost_basis": plain(basis),
            "unrealized_pl": plain(value - basis),
            "unrealized_plpc": _ratio(value - basis, abs(basis)),
            "unrealized_intraday_pl": plain(gained),
            "unrealized_intraday_plpc": _ratio(gained, abs(value - gained)),
            "current_price": plain(price),
            "lastday_price": plain(last),
            "change_today": _ratio(price - last, last),
        }

    @route("DELETE", "/v2/positions/{asset}")
    def close_one(self, request: Request) -> Response:
        """Close a position, or part of it, at the market."""
        symbol = self._symbol_held(request)
        held = self._book.portfolio.quantity(symbol)
        quantity = abs(held)
        if request.query.get("qty"):
            quantity = _decimal(request, "qty")
        elif request.query.get("percentage"):
            quantity = EXACT.multiply(quantity, _decimal(request, "percentage") / 100).quantize(SHARE_STEP)
        return Response(200, self._closing(symbol, quantity, held))

    @route("DELETE", "/v2/positions")
    def close_all(self, request: Request) -> Response:
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
        return Response(207, results)

    def _closing(self, symbol: str, quantity: Decimal, held: Decimal) -> dict[str, Any]:
        listing = self._market.listing(symbol)
        body = {
            "symbol": listing.wire,
            "qty": plain(quantity),
            "side": "sell" if held > 0 else "buy",
            "type": "market",
            "time_in_force": "gtc" if listing.crypto else "day",
        }
        return self._exchange.submit(read_ticket(body, self._market, self._exchange.now))


def _ratio(above: Decimal, below: Decimal) -> str:
    return plain((above / below).quantize(_RATIO)) if below else "0"


def _decimal(request: Request, name: str) -> Decimal:
    try:
        number = Decimal(request.query[name])
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or number <= 0:
        raise invalid(f"invalid {name}: {request.query[name][:40]}")
    return number
