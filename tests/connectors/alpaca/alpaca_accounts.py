"""Paper accounts for tests: an adapter on a sandbox or on a scripted server, and the bodies that Alpaca publishes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from connectors.alpaca.broker import AlpacaBroker
from connectors.alpaca.settings import AlpacaSettings
from engine.domain.order import Order, OrderState, Side
from tests.servers.fake_web import Page

KEY, SECRET = "PKTEST0123456789ABCD", "secret-that-must-never-be-seen"
DECIDED = date(2024, 1, 31)
LONG_AGO = datetime(2024, 1, 1, tzinfo=UTC)
FIRST, LAST = date(2024, 1, 29), date(2024, 2, 2)

Question = Callable[[AlpacaBroker], Awaitable[Any]]
QUESTIONS: Mapping[str, Question] = {
    "account": lambda broker: broker.account(),
    "activities": lambda broker: broker.activities(LONG_AGO),
    "equity_history": lambda broker: broker.equity_history(FIRST, LAST),
    "lookup": lambda broker: broker.lookup("some-order"),
    "open_orders": lambda broker: broker.open_orders(),
    "clock": lambda broker: broker.clock(),
    "session_hours": lambda broker: broker.session_hours(FIRST, LAST),
    "asset": lambda broker: broker.asset("AAA"),
}
"""Everything that can be asked; nothing of it changes anything."""


@asynccontextmanager
async def paper(url: str, key: str = KEY, secret: str = SECRET, **options: Any) -> AsyncIterator[AlpacaBroker]:
    """An adapter that does not wait long."""
    timeout = options.pop("timeout", 60.0)
    settings = AlpacaSettings(key=key, secret=secret, trading_url=url, data_url=url, timeout=timeout)
    broker = AlpacaBroker(settings, **{"attempts": 2, "first_pause": 0.01} | options)
    yield broker
    await broker.aclose()


def a_buy(name: str = "desk-1", symbol: str = "AAA", notional: str = "500.00") -> Order:
    order = Order(id=name, symbol=symbol, side=Side.BUY, session=DECIDED, notional=Decimal(notional))
    return order.moved(OrderState.SUBMITTING)


def a_sale(name: str = "desk-2", symbol: str = "AAA", quantity: str = "4") -> Order:
    order = Order(id=name, symbol=symbol, side=Side.SELL, session=DECIDED, quantity=Decimal(quantity))
    return order.moved(OrderState.SUBMITTING)


def said(document: Any, status: int = 200, *headers: tuple[str, str]) -> Page:
    """A page of JSON."""
    return Page(body=json.dumps(document).encode(), status=status, headers=headers)


ACCOUNT: dict[str, Any] = {
    "id": "e6fe16f3-64a4-4921-8928-cadf02f92f98",
    "status": "ACTIVE",
    "currency": "USD",
    "cash": "4000.32",
    "equity": "5000.5",
    "account_blocked": False,
    "trading_blocked": False,
    "trade_suspended_by_user": False,
}
ORDER: dict[str, Any] = {
    "id": "61e69015-8549-4bfd-b9c3-01e75843f47d",
    "client_order_id": "desk-1",
    "submitted_at": "2024-01-31T21:05:00.123456789Z",
    "symbol": "AAA",
    "asset_class": "us_equity",
    "notional": "500",
    "qty": None,
    "filled_qty": "0",
    "filled_avg_price": None,
    "side": "buy",
    "status": "accepted",
}
FILL: dict[str, Any] = {
    "activity_type": "FILL",
    "cum_qty": "2",
    "id": "20220202135509981::2d7be4ff-d1f3-43e9-856a-0f5cf5c5088e",
    "leaves_qty": "0",
    "order_id": "b5abe576-6a8a-49f3-a353-46b72c1ccae9",
    "order_status": "filled",
    "price": "174.78",
    "qty": "2",
    "side": "buy",
    "symbol": "AAPL",
    "transaction_time": "2022-02-02T18:55:09.981482Z",
    "type": "fill",
}
"""The published example."""
DIVIDEND: dict[str, Any] = {
    "activity_sub_type": "SDIV",
    "activity_type": "DIV",
    "created_at": "2021-05-10T14:01:04.650275Z",
    "currency": "USD",
    "date": "2019-08-01",
    "id": "20190801011955195::5f596936-6f23-4cef-bdf1-3806aae57dbf",
    "net_amount": "1.02",
    "per_share_amount": "0.51",
    "qty": "2",
    "status": "executed",
    "symbol": "T",
}
"""The published example."""
