from __future__ import annotations

from datetime import date
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.market import PriceHistory
from engine.domain.order import Side
from engine.domain.run import ExecutionRules
from engine.errors import MissingData, UsageError
from engine.simulation.simulated_broker import FillModel
from tests.engine.desks import bar

D = Decimal


def test_slippage_is_against_the_trader() -> None:
    model = FillModel(ExecutionRules(slippage_bp=D(5)))

    assert model.price(D("100"), Side.BUY) == D("100.05")
    assert model.price(D("100"), Side.SELL) == D("99.95")


def test_every_part_of_the_commission_is_charged() -> None:
    rules = ExecutionRules(commission_rate=D("0.001"), commission_per_order=D("1"), commission_per_share=D("0.005"))

    # 0.1 % of 2,000 and half a cent for each of 40 shares, and 1 for the order.
    assert FillModel(rules).fee(D(40), D(50)) == D("3.20")


def test_a_notional_buys_whole_shares_where_there_are_no_fractions() -> None:
    model = FillModel(ExecutionRules(commission_rate=D("0.001"), fractional=False))

    # FinAgent's floor(cash / price / (1 + c)): 10,000 / 183.21 / 1.001 = 54.52...
    assert model.affordable(D(10_000), D("183.21")) == D(54)


def test_rounding_the_amount_and_the_fee_up_gives_shares_back() -> None:
    model = FillModel(ExecutionRules(commission_rate=D("0.5"), commission_per_order=D("0.0075")))

    # 0.015 shares at 1 cost 0.015 and a fee of 0.015: half cents, both rounded up to 0.02, one cent too much.
    assert model.amount(D("0.015"), D(1)) + model.fee(D("0.015"), D(1)) == D("0.04")
    quantity = model.affordable(D("0.03"), D(1))

    assert model.amount(quantity, D(1)) + model.fee(quantity, D(1)) <= D("0.03")
    assert quantity > 0


@given(
    notional=st.integers(1, 10**9).map(lambda n: D(n) / 100),
    price=st.integers(1, 10**14).map(lambda n: D(n) / 10**9),
    rate=st.integers(0, 9_999).map(lambda n: D(n) / 10_000),
    per_order=st.integers(0, 1_000).map(lambda n: D(n) / 100),
    per_share=st.integers(0, 10_000).map(lambda n: D(n) / 10_000),
    fractional=st.booleans(),
)
def test_a_buy_never_costs_more_than_its_notional_and_wastes_little(
    notional: D, price: D, rate: D, per_order: D, per_share: D, fractional: bool
) -> None:
    rules = ExecutionRules(
        commission_rate=rate,
        commission_per_order=per_order,
        commission_per_share=per_share,
        fractional=fractional,
    )
    model = FillModel(rules)

    quantity = model.affordable(notional, price)

    assert quantity >= 0
    if quantity:
        assert model.amount(quantity, price) + model.fee(quantity, price) <= notional
    # Three cents and two of the smallest steps more would not have been paid for.
    more = Fraction(quantity) + 2 * Fraction(model.share_step)
    exact = more * Fraction(price) * (1 + Fraction(rate)) + more * Fraction(per_share) + Fraction(per_order)
    assert exact + Fraction(3, 100) > Fraction(notional)


def test_an_unknown_volume_is_an_error_only_where_a_cap_needs_it(bars: PriceHistory) -> None:
    assert FillModel(ExecutionRules()).volume_limit(bars, 1) is None

    with pytest.raises(MissingData, match="AAA 2024-01-03"):
        FillModel(ExecutionRules(volume_cap=D("0.1"))).volume_limit(bars, 1)


def test_the_volume_cap_is_a_fraction_of_the_bar(bars: PriceHistory) -> None:
    assert FillModel(ExecutionRules(volume_cap=D("0.1"))).volume_limit(bars, 0) == D("12.3")
    assert FillModel(ExecutionRules(volume_cap=D("0.1"), fractional=False)).volume_limit(bars, 0) == D(12)


@pytest.mark.parametrize(
    "rules",
    [
        ExecutionRules(slippage_bp=D(-1)),
        ExecutionRules(slippage_bp=D(10_000)),
        ExecutionRules(commission_rate=D("-0.1")),
        ExecutionRules(commission_rate=D(1)),
        ExecutionRules(volume_cap=D(0)),
        ExecutionRules(volume_cap=D(2)),
    ],
)
def test_rules_that_no_market_could_have_are_refused(rules: ExecutionRules) -> None:
    with pytest.raises(UsageError):
        FillModel(rules)


@pytest.fixture
def bars() -> PriceHistory:
    days = ((date(2024, 1, 2), 123), (date(2024, 1, 3), None))
    return PriceHistory.of("AAA", [bar(day, 1, 1, volume=volume) for day, volume in days])
