"""The books of owners within a run: the claims of their own open orders."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from engine.cycle.turn import OpenOrders
from engine.domain.order import Order, Portfolio, Side
from engine.domain.run import EquityPoint
from engine.session.owner_books import BookOrders, OwnerBooks

MONDAY = date(2024, 3, 4)


def point(owner: str) -> EquityPoint:
    return EquityPoint(MONDAY, Decimal(50_000), Portfolio(Decimal(50_000)), {}, owner)


def order(book: str, symbol: str, *, notional: int | None = None, bought: int | None = None, sold: int = 0) -> Order:
    return Order(
        id=f"{book}-{symbol}",
        symbol=symbol,
        side=Side.SELL if sold else Side.BUY,
        session=MONDAY,
        quantity=Decimal(sold or bought) if sold or bought else None,
        notional=None if notional is None else Decimal(notional),
        book=book,
    )


def test_the_claims_on_a_book_are_those_of_its_own_orders() -> None:
    orders = (
        order("bull", "AAA", notional=4_000),
        order("bull", "BBB", bought=10),
        order("bear", "AAA", sold=95),
    )
    waiting = BookOrders(
        session=MONDAY, orders=orders, prices={"AAA": Decimal(100), "BBB": Decimal(20)}, sent=("AAA", "BBB")
    )
    books = OwnerBooks({owner: point(owner) for owner in ("bull", "bear", "calm")}, waiting)

    assert books.open_orders == {
        "bull": OpenOrders(Decimal("4210.00")),  # whole shares may cost 5 % more at the open
        "bear": OpenOrders(shares={"AAA": Decimal(95)}),
        "calm": OpenOrders(),
    }
    assert OwnerBooks({"bull": point("bull")}).open_orders == {}, "all orders are settled"
