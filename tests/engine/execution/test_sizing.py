"""Sizing by rule: every rule's band, and the conditions that code can check. Source: FinVision table 5 [V6]."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.decision import Action, Proposal, SizingRule
from engine.domain.order import PositionContext
from engine.execution.limits import size
from engine.preset import load_preset

FINVISION = load_preset("finvision").sizing
BUY, SELL, HOLD, ABSTAIN = Action.BUY, Action.SELL, Action.HOLD, Action.ABSTAIN


def standing(
    cash: str = "50000", quantity: str = "100", price: str = "100", cost: str = "100", streak: int = 0
) -> PositionContext:
    return PositionContext(
        shares=Decimal(quantity),
        price=Decimal(price),
        average_cost=Decimal(cost),
        cash=Decimal(cash),
        value=Decimal(100_000),
        gains_in_a_row=streak,
    )


def proposal(action: Action, asked: int, rule: SizingRule | None) -> Proposal:
    return Proposal(action, asked, rule, "why")


@pytest.mark.parametrize(
    ("action", "rule", "asked", "allowed"),
    [
        (BUY, SizingRule.STRONG_UPTREND, 1, "5"),
        (BUY, SizingRule.STRONG_UPTREND, 5, "5"),
        (BUY, SizingRule.STRONG_UPTREND, 7, "7"),
        (BUY, SizingRule.STRONG_UPTREND, 10, "10"),
        (BUY, SizingRule.STRONG_UPTREND, 1000, "10"),
        (BUY, SizingRule.DIP_IN_UPTREND, 1, "1"),
        (BUY, SizingRule.DIP_IN_UPTREND, 6, "5"),
        (BUY, SizingRule.DIP_IN_UPTREND, -3, "1"),
        (SELL, SizingRule.REVERSAL, 1, "1"),
        (SELL, SizingRule.REVERSAL, 10, "10"),
        (SELL, SizingRule.REVERSAL, 11, "10"),
        (SELL, SizingRule.GAIN_OVER_COST, 1, "3"),
        (SELL, SizingRule.GAIN_OVER_COST, 4, "4"),
        (SELL, SizingRule.GAIN_OVER_COST, 10, "5"),
        (SELL, SizingRule.GAINS_IN_A_ROW, 2, "3"),
        (SELL, SizingRule.GAINS_IN_A_ROW, 9, "5"),
    ],
)
def test_a_size_is_cut_to_the_band_of_its_rule(action: Action, rule: SizingRule, asked: int, allowed: str) -> None:
    sized = size(proposal(action, asked, rule), standing(cost="90", streak=3), FINVISION)

    assert (sized.action, sized.size) == (action, Decimal(allowed))
    assert [(c.asked, c.allowed) for c in sized.cuts] == (
        [] if asked == int(allowed) else [(Decimal(asked), Decimal(allowed))]
    )


@pytest.mark.parametrize(
    ("rule", "cash", "passes"),
    [
        (SizingRule.STRONG_UPTREND, "10000", False),
        (SizingRule.STRONG_UPTREND, "10000.01", True),
        (SizingRule.DIP_IN_UPTREND, "20000", False),
        (SizingRule.DIP_IN_UPTREND, "20000.01", True),
    ],
)
def test_a_purchase_needs_cash_above_its_rules_mark(rule: SizingRule, cash: str, passes: bool) -> None:
    sized = size(proposal(BUY, 5, rule), standing(cash=cash), FINVISION)

    assert (sized.action, sized.size) == ((BUY, 5) if passes else (HOLD, 0))
    assert passes or [(cut.rule, cut.allowed) for cut in sized.cuts] == [(rule, 0)]


@pytest.mark.parametrize(
    ("rule", "where", "passes"),
    [
        *((SizingRule.GAIN_OVER_COST, {"price": price}, price == "105.01") for price in ("105", "105.01", "80")),
        *((SizingRule.GAINS_IN_A_ROW, {"streak": streak}, streak >= 3) for streak in (0, 2, 3, 9)),
    ],
)
def test_a_sale_needs_its_rules_gain_over_cost_or_streak_of_gains(
    rule: SizingRule, where: dict[str, Any], passes: bool
) -> None:
    sized = size(proposal(SELL, 4, rule), standing(**where), FINVISION)

    assert (sized.action, sized.size) == ((SELL, 4) if passes else (HOLD, 0))
    assert passes or [(cut.rule, cut.allowed) for cut in sized.cuts] == [(rule, 0)]


@pytest.mark.parametrize("rule", [SizingRule.REVERSAL, SizingRule.GAIN_OVER_COST, SizingRule.GAINS_IN_A_ROW])
def test_nothing_is_sold_that_is_not_held(rule: SizingRule) -> None:
    sized = size(proposal(SELL, 4, rule), standing(quantity="0", cost="0", streak=5), FINVISION)

    assert (sized.action, sized.size) == (HOLD, 0)
    assert [(cut.rule, cut.allowed) for cut in sized.cuts] == [(rule, 0)]


@pytest.mark.parametrize(
    ("action", "rule"),
    [
        (BUY, None),
        (BUY, SizingRule.REVERSAL),
        (BUY, SizingRule.UNCERTAINTY),
        (SELL, None),
        (SELL, SizingRule.STRONG_UPTREND),
        (SELL, SizingRule.UPTREND_GOES_ON),
    ],
)
def test_a_rule_that_does_not_allow_the_action_makes_it_a_hold(action: Action, rule: SizingRule | None) -> None:
    sized = size(proposal(action, 5, rule), standing(), FINVISION)

    assert (sized.action, sized.size) == (HOLD, 0)
    assert [(c.rule, c.asked, c.allowed) for c in sized.cuts] == [("rule", 5, 0)]


def test_an_abstention_is_no_hold() -> None:
    assert size(proposal(ABSTAIN, 0, None), standing(), FINVISION).action is ABSTAIN
    assert size(proposal(HOLD, 0, SizingRule.UNCERTAINTY), standing(), FINVISION).action is HOLD


MONEY = st.decimals(-1000, 10**9, places=2)


@given(
    st.sampled_from(Action),
    st.integers(-(10**9), 10**9),
    st.none() | st.sampled_from(SizingRule),
    st.builds(
        PositionContext,
        shares=st.decimals(-100, 10**6, places=9),
        price=st.decimals("0.000000001", 10**6, places=9),
        average_cost=st.decimals(0, 10**6, places=9),
        cash=MONEY,
        value=MONEY,
        gains_in_a_row=st.integers(0, 300),
    ),
)
def test_whatever_is_asked_the_size_is_in_range_and_every_change_is_told(
    action: Action, asked: int, rule: SizingRule | None, where: PositionContext
) -> None:
    sized = size(proposal(action, asked, rule), where, FINVISION)

    assert sized.action in (action, HOLD)
    assert (sized.action is ABSTAIN) == (action is ABSTAIN)
    assert 1 <= sized.size <= 10 if sized.action in (BUY, SELL) else sized.size == 0
    if action in (BUY, SELL):
        assert bool(sized.cuts) == (sized.action is not action or sized.size != asked)
    if sized.action is SELL:
        assert where.shares > 0
