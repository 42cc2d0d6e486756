"""The operator's own orders by the limits: never below the floor, never more than free shares, beside what is open."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.order import (
    Order,
    OrderSize,
    Portfolio,
    Position,
    Side,
    closing_order_id,
    is_closing,
    is_own,
    order_id,
    own_order_id,
)
from engine.errors import UsageError
from engine.execution.limits import buying_power, cash_floor, cost, own_order, own_refusal
from engine.messages.commands import PlaceOrder

SESSION = date(2025, 3, 14)
PRICE = Decimal("31.37")
WISHES = st.builds(
    PlaceOrder,
    symbol=st.just("AAA"),
    side=st.sampled_from(Side),
    size=st.builds(
        OrderSize,
        number=st.decimals("0.01", "4000", places=2),
        money=st.booleans(),
    ),
)


@given(
    wishes=st.lists(WISHES, min_size=1, max_size=12),
    cash=st.decimals("0", "20000", places=2),
    held=st.decimals("0", "300", places=3),
    fraction=st.sampled_from([Decimal("0"), Decimal("0.1"), Decimal("0.35")]),
    whole=st.booleans(),
)
def test_whatever_is_wished_for_the_floor_stays_and_no_share_is_sold_twice(
    wishes: Sequence[PlaceOrder], cash: Decimal, held: Decimal, fraction: Decimal, whole: bool
) -> None:
    positions = {"AAA": Position(held, Decimal(30))} if held else {}
    portfolio, taken = Portfolio(cash, positions), list[Order]()
    floor = cash_floor(portfolio, lambda symbol: PRICE, fraction)
    for number, wanted in enumerate(wishes, 1):
        power = buying_power(portfolio, taken, lambda symbol: PRICE)
        name = own_order_id("desk", SESSION, "AAA", wanted.side, number)
        try:
            order = own_order(name, wanted, PRICE, SESSION, held=held, whole=whole)
        except UsageError:
            continue
        if not own_refusal(order, power, PRICE, floor=floor):
            taken.append(order)
    bought = sum((cost(one, PRICE) for one in taken if one.side is Side.BUY), Decimal(0))
    sold = sum((one.quantity or Decimal(0) for one in taken if one.side is Side.SELL), Decimal(0))
    assert sold <= held
    assert not bought or cash - bought >= floor
    for one in taken:
        assert (one.notional is not None) is (one.side is Side.BUY and not whole)
        assert not whole or one.quantity == (one.quantity or Decimal(0)).to_integral_value()


def test_a_short_position_is_bought_back_and_no_more() -> None:
    short = Portfolio(Decimal(500), {"AAA": Position(Decimal(-12), Decimal(30))})
    power = buying_power(short, (), lambda symbol: PRICE)
    for side, number, refused in ((Side.BUY, "12", False), (Side.BUY, "12.5", True), (Side.SELL, "1", True)):
        wanted = PlaceOrder("AAA", side, OrderSize(Decimal(number)))
        order = own_order("x", wanted, PRICE, SESSION, held=Decimal(-12))
        assert order.quantity == Decimal(number)
        assert bool(own_refusal(order, power, PRICE, floor=Decimal(10**6))) is refused


@pytest.mark.parametrize(
    ("number", "money", "whole"),
    [("0", False, False), ("NaN", True, False), ("0.5", True, False), ("2.5", False, True), ("20", True, True)],
)
def test_a_size_that_cannot_be_traded_is_refused(number: str, money: bool, whole: bool) -> None:
    wanted = PlaceOrder("AAA", Side.BUY, OrderSize(Decimal(number), money))
    with pytest.raises(UsageError):
        own_order("x", wanted, PRICE, SESSION, whole=whole)


def test_the_id_tells_whose_order_it_is() -> None:
    assert is_own(own_order_id("desk-you", SESSION, "BTC-USD", Side.SELL, 12))
    assert not is_own(order_id("desk-you-0", SESSION, 1, "AAA", Side.BUY))
    assert not is_own(order_id("a-0-you", SESSION, 2, "AAA", Side.BUY, book="bull"))


@pytest.mark.parametrize("symbol", ["AAA", "BRK-B", "BTC-USD"])
def test_the_id_tells_what_nobody_ordered(symbol: str) -> None:
    assert is_closing(closing_order_id(SESSION, symbol))
    for desk in ("stopped", "stopped-20240304"):
        assert not is_closing(order_id(desk, SESSION, 1, symbol, Side.BUY))
        assert not is_closing(own_order_id(desk, SESSION, symbol, Side.SELL, 12))
