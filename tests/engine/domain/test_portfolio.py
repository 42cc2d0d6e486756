from __future__ import annotations

import pickle
from datetime import date
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.order import Fill, Portfolio, Position, Side
from engine.errors import InvariantBroken

D = Decimal
DAY = date(2024, 1, 2)


def fill(side: Side, quantity: str, price: str, fee: str = "0") -> Fill:
    return Fill(order_id="id", symbol="AAA", side=side, session=DAY, quantity=D(quantity), price=D(price), fee=D(fee))


def holding(quantity: str, cost: str = "10") -> Portfolio:
    return Portfolio(D(1000), {"AAA": Position(D(quantity), D(cost))})


def test_buying_more_averages_the_cost_and_selling_keeps_it() -> None:
    book = Portfolio(D(1000)).filled(fill(Side.BUY, "10", "10", "1")).filled(fill(Side.BUY, "30", "14", "1"))

    assert book.positions["AAA"] == Position(D(40), D(13))
    assert book.cash == D(1000) - 100 - 420 - 2
    book = book.filled(fill(Side.SELL, "15", "20"))
    assert book.positions["AAA"] == Position(D(25), D(13))
    assert book.filled(fill(Side.SELL, "25", "20")).positions == {}


def test_selling_through_zero_opens_a_short_at_the_price() -> None:
    book = holding("10").filled(fill(Side.SELL, "15", "12"))

    assert book.positions["AAA"] == Position(D(-5), D(12))
    assert book.filled(fill(Side.BUY, "2", "9")).positions["AAA"] == Position(D(-3), D(12))
    assert book.filled(fill(Side.BUY, "6", "9")).positions["AAA"] == Position(D(1), D(9))


def test_a_split_pays_what_is_left_of_a_share_in_cash() -> None:
    book, paid = holding("5", "30").split("AAA", D("1.5"), D("20"), step=D(1))

    assert book.positions["AAA"] == Position(D(7), D(20))
    assert (paid, book.cash) == (D("10.00"), D("1010.00"))


def test_a_reverse_split_that_leaves_no_share_pays_all_of_it() -> None:
    book, paid = holding("3").split("AAA", D("0.1"), D("100"), step=D(1))

    assert book.positions == {}
    assert (paid, book.cash) == (D("30.00"), D("1030.00"))


def test_a_short_position_pays_dividends() -> None:
    book, paid = holding("-10").dividend("AAA", D("0.25"))

    assert (paid, book.cash) == (D("-2.50"), D("997.50"))


def test_an_impossible_split_is_a_bug() -> None:
    with pytest.raises(InvariantBroken):
        holding("1").split("AAA", D(0), D(1))


def test_an_empty_portfolio_travels_between_processes() -> None:
    assert pickle.loads(pickle.dumps(Portfolio(D(5)))) == Portfolio(D(5))


def test_large_amounts_are_rounded_once() -> None:
    """An amount that ends in 0.015 less 1e-18, with more digits than the default context keeps: rounded to that
    context first it would be half a cent, and the cent above."""
    price_nano = 99_999_999_999_999
    quantity_nano = (15 * 10**15 - 1) * pow(price_nano, -1, 10**17) % 10**17
    exact = Fraction(quantity_nano * price_nano, 10**18)
    assert exact > 10**11

    book = Portfolio(D(0)).filled(fill(Side.SELL, str(D(quantity_nano) / 10**9), str(D(price_nano) / 10**9)))

    assert Fraction(book.cash) == Fraction(round(exact * 100), 100)
    assert book.cash % D("0.1") == D("0.01")


TRADES = st.lists(
    st.tuples(st.sampled_from(Side), st.integers(1, 10**12), st.integers(1, 10**7), st.integers(0, 500)),
    min_size=1,
    max_size=12,
)


@given(TRADES)
def test_cash_positions_and_fees_are_deposits_and_profit_after_every_fill(
    trades: list[tuple[Side, int, int, int]],
) -> None:
    """The profit is computed from the average cost that the portfolio itself keeps."""
    deposit = D(1000)
    book, fees, realized, rounding = Portfolio(deposit), Fraction(0), Fraction(0), Fraction(0)
    for side, nano, price_units, fee_cents in trades:
        trade = fill(side, str(D(nano) / 10**9), str(D(price_units) / 10_000), str(D(fee_cents) / 100))
        before = book.positions.get("AAA", Position(D(0), D(0)))
        change = Fraction(trade.quantity) * (1 if side is Side.BUY else -1)
        closes = Fraction(before.quantity) * change < 0
        closed = min(abs(change), abs(Fraction(before.quantity))) if closes else Fraction(0)
        gain = Fraction(trade.price) - Fraction(before.average_cost)
        realized += closed * gain * (1 if before.quantity > 0 else -1)
        fees += Fraction(trade.fee)
        exact = Fraction(trade.quantity) * Fraction(trade.price)
        rounding += (1 if side is Side.BUY else -1) * (exact - Fraction(round(exact * 100), 100))

        book = book.filled(trade)

        after = book.positions.get("AAA", Position(D(0), D(0)))
        mark = Fraction(trade.price)
        unrealized = Fraction(after.quantity) * (mark - Fraction(after.average_cost))
        left = Fraction(book.cash) + Fraction(after.quantity) * mark + fees
        assert abs(left - (Fraction(deposit) + realized + unrealized + rounding)) < Fraction(1, 10**12)
