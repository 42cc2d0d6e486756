"""Advice comes to a side and a size, and only sensible trade values are taken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.decision import Action, Advice, TradeValues, trade_of
from engine.errors import ConfigError

VALUES = TradeValues(9, 4, 2, 7)


@pytest.mark.parametrize(
    ("words", "trade"),
    [
        ("significantly increase", (Action.BUY, 9)),
        ("slightly increase", (Action.BUY, 4)),
        ("hold", (Action.HOLD, 0)),
        ("slightly decrease", (Action.SELL, 2)),
        ("significantly decrease", (Action.SELL, 7)),
    ],
)
def test_each_level_trades_its_own_value(words: str, trade: tuple[Action, int]) -> None:
    assert trade_of(Advice(words), VALUES) == trade


def test_every_level_comes_to_something() -> None:
    assert {trade_of(level, VALUES) for level in Advice} == {
        (Action.BUY, 9),
        (Action.BUY, 4),
        (Action.HOLD, 0),
        (Action.SELL, 2),
        (Action.SELL, 7),
    }


@given(st.tuples(*[st.integers(-3, 104)] * 4))
def test_values_are_percents_in_order_or_refused(values: tuple[int, int, int, int]) -> None:
    up, slightly_up, slightly_down, down = values
    if 1 <= slightly_up <= up <= 100 and 1 <= slightly_down <= down <= 100:
        made = TradeValues(*values)
        assert trade_of(Advice.SIGNIFICANTLY_INCREASE, made)[1] >= trade_of(Advice.SLIGHTLY_INCREASE, made)[1]
    else:
        with pytest.raises(ConfigError, match="trade values: slightly_"):
            TradeValues(*values)
