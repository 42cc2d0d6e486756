"""Order ids and the life of an order that names its book."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from engine.domain.order import Order, OrderState, Side, order_id

SESSION = date(2024, 3, 1)


def test_an_order_id_names_the_book_only_where_there_is_one() -> None:
    assert order_id("demo", SESSION, 1, "BTC/USD", Side.SELL) == "demo-20240301-1-BTCUSD-S-1"
    assert order_id("demo", SESSION, 2, "MSFT", Side.BUY, book="bull") == "demo-20240301-2-MSFT-bull-B-1"
    assert order_id("demo", SESSION, 1, "MSFT", Side.BUY, attempt=2) == "demo-20240301-1-MSFT-B-2"


def test_an_order_keeps_its_book_through_its_life() -> None:
    order = Order(id="x", symbol="MSFT", side=Side.BUY, session=SESSION, notional=Decimal(5), book="bull")

    assert order.moved(OrderState.SUBMITTING).moved(OrderState.FILLED).book == "bull"
