"""Faults of the paper's own program, each as a case that fails where the market had it.

The numbers are those that the program was seen to compute wrongly. Source: Agent Trading Arena, Algorithm 1 [R1].
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from engine.arena.market import Market
from engine.arena.rules import ArenaRules
from engine.arena.values import Order, Refusal
from engine.domain.order import Side

BUY, SELL = Side.BUY, Side.SELL


def market(**changes: Any) -> Market:
    """One stock at 450 with 1,000 shares, dealt evenly to four agents with 10,000 each."""
    stocks = [{"name": "X", "shares": 1000, "first_price": 450}]
    settings: dict[str, Any] = {"days": 2, "fluctuation": 20, "stocks": stocks, "seats": [{"cash": 10_000}]}
    return Market(ArenaRules.model_validate(settings | changes), ("ann", "bob", "cy", "dee"))


def send(desk: Market, agent: str, side: Side, quantity: int, limit: int) -> Order:
    order = desk.submit(agent, "X", side, quantity, Decimal(limit))
    assert isinstance(order, Order)
    return order


def test_a_bid_below_the_ask_does_not_trade() -> None:
    desk = market()
    send(desk, "ann", BUY, 10, 400)
    send(desk, "bob", SELL, 10, 410)
    assert desk.trades == [] and desk.listings["X"].reference == 450


def test_of_equal_prices_the_older_order_comes_first() -> None:
    desk = market()
    send(desk, "ann", SELL, 5, 440)
    send(desk, "bob", SELL, 5, 440)
    send(desk, "cy", BUY, 5, 440)
    assert [one.seller for one in desk.trades] == ["ann"]


def test_a_larger_buyer_pays_each_ask_its_own_price() -> None:
    desk = market()
    send(desk, "ann", SELL, 5, 430)
    send(desk, "bob", SELL, 5, 445)
    send(desk, "cy", BUY, 10, 450)
    assert [(one.quantity, one.price) for one in desk.trades] == [(5, 430), (5, 445)]
    # The price moves with each of the two, not once.
    first = (Decimal(430) * 100 + Decimal(450) * 1000) / 1100
    second = (Decimal(445) * 100 + first * 1000) / 1100
    assert abs(desk.trades[0].reference - first) < Decimal("0.00001")
    assert abs(desk.trades[1].reference - second) < Decimal("0.00001")


def test_the_cap_holds_over_every_part_of_an_order() -> None:
    desk = market(daily_cap="0.01", fluctuation=500)
    send(desk, "ann", SELL, 5, 460)
    send(desk, "bob", SELL, 5, 470)
    send(desk, "cy", BUY, 10, 480)
    assert [one.reference for one in desk.trades] == [Decimal("454.5")] * 2


def test_nobody_pays_more_than_its_limit() -> None:
    desk = market()
    send(desk, "ann", SELL, 10, 405)
    send(desk, "bob", BUY, 10, 405)
    assert desk.trades[0].price == 405 and desk.ledger.cash("bob") == 10_000 - 4_050


def test_the_printed_rules_settle_after_the_impact_and_count_the_excess() -> None:
    desk = market(settle="impact")
    send(desk, "ann", SELL, 10, 405)
    send(desk, "bob", BUY, 10, 405)
    (trade,) = desk.trades
    assert trade.price == Decimal("442.5") == (Decimal(405) * 200 + Decimal(450) * 1000) / 1200
    assert trade.excess == 10 * (trade.price - 405)
    assert desk.ledger.cash("bob") == 10_000 - 10 * trade.price


def test_equal_quantities_trade_in_full() -> None:
    desk = market()
    send(desk, "ann", SELL, 10, 440)
    send(desk, "bob", BUY, 10, 440)
    assert [one.quantity for one in desk.trades] == [10]
    assert not desk.open_orders("ann") and not desk.open_orders("bob")


def test_numbers_of_orders_are_used_once() -> None:
    desk = market()
    orders = [send(desk, agent, side, 3, 440) for agent in ("ann", "bob", "cy") for side in (BUY, SELL)]
    assert [one.id for one in orders] == [1, 2, 3, 4, 5, 6]


def test_checks_come_before_the_price_moves() -> None:
    desk, printed = market(), market(checks="printed")
    for one in (desk, printed):
        assert one.submit("ann", "X", BUY, 1000, Decimal(460)) is Refusal.NO_CASH
        assert one.submit("ann", "X", SELL, 251, Decimal(460)) is Refusal.NO_SHARES
    assert desk.listings["X"].reference == 450
    assert printed.listings["X"].reference > 459


def test_all_cash_and_all_shares_can_be_used() -> None:
    desk, printed = market(), market(checks="printed", fluctuation=None)
    for one, accepted in ((desk, True), (printed, False)):
        assert isinstance(one.submit("ann", "X", SELL, 250, Decimal(500)), Order) is accepted
        assert isinstance(one.submit("bob", "X", BUY, 25, Decimal(400)), Order) is accepted


def test_nobody_trades_with_itself() -> None:
    desk = market()
    send(desk, "ann", SELL, 5, 440)
    send(desk, "bob", SELL, 5, 441)
    send(desk, "ann", BUY, 5, 445)
    assert [(one.buyer, one.seller) for one in desk.trades] == [("ann", "bob")]
    assert desk.ledger.free_shares("ann", "X") == 255


def test_trades_of_a_call_auction_belong_to_the_round_that_sent_the_orders() -> None:
    desk = market(auction="call")
    orders = []
    for price in (440, 445):
        orders += [send(desk, "ann", SELL, 5, price), send(desk, "bob", BUY, 5, price)]
        desk.end_round()
    assert [one.round for one in orders] == [1, 1, 2, 2]
    assert [(one.round, one.price) for one in desk.trades] == [(1, 440), (2, 445)]
