"""Moves of the price are counted in sessions, from closes, and the ones that followed are marked."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.market import Bar, PriceHistory
from engine.market.figures import PriceMove, last_sessions, momentum, moves_after, moves_up_to

FIRST = date(2023, 1, 2)


def history(*closes: float) -> PriceHistory:
    prices = [Decimal(str(close)) for close in closes]
    return PriceHistory.of(
        "MSFT", [Bar(session=FIRST + timedelta(days=n), open=p, high=p, low=p, close=p) for n, p in enumerate(prices)]
    )


def test_moves_lead_up_to_the_last_close_over_each_horizon() -> None:
    bars = history(*(100 + n for n in range(8)))
    assert moves_up_to(bars) == (PriceMove(1, 107 / 106 - 1), PriceMove(7, 107 / 100 - 1))
    assert moves_up_to(history(100)) == moves_up_to(history()) == ()


def test_moves_that_followed_are_hindsight() -> None:
    bars = history(*(100 + n for n in range(20)))
    moves = moves_after(bars, FIRST + timedelta(days=5))
    assert moves == (
        PriceMove(1, 106 / 105 - 1, True),
        PriceMove(7, 112 / 105 - 1, True),
        PriceMove(14, 119 / 105 - 1, True),
    )
    assert [m.horizon_days for m in moves_after(bars, FIRST + timedelta(days=13))] == [1]
    assert moves_after(bars, FIRST + timedelta(days=19)) == ()
    assert moves_after(bars, FIRST - timedelta(days=1)) == ()


CLOSES = st.lists(st.floats(1, 1000).map(lambda x: round(x, 2)), min_size=2, max_size=40)


@given(CLOSES, CLOSES)
def test_what_comes_later_does_not_change_what_led_up(closes: list[float], later: list[float]) -> None:
    short, long = history(*closes), history(*closes, *later).slice(0, len(closes))
    assert moves_up_to(short) == moves_up_to(long)
    assert last_sessions(short) == last_sessions(long)
    assert momentum(short) == momentum(long)


@given(CLOSES)
def test_what_followed_a_session_is_what_led_up_to_the_later_one(closes: list[float]) -> None:
    bars = history(*closes)
    for move in moves_after(bars, FIRST):
        later = {m.horizon_days: m.change for m in moves_up_to(bars.slice(0, move.horizon_days + 1))}
        assert move.change == later[move.horizon_days]


def test_the_last_sessions_come_oldest_first_and_need_a_close_before() -> None:
    moves = last_sessions(history(100, 110, 99), 5)
    assert [(m.session, m.close) for m in moves] == [
        (FIRST + timedelta(days=1), 110.0),
        (FIRST + timedelta(days=2), 99.0),
    ]
    assert [m.change for m in moves] == pytest.approx([0.1, -0.1])
    assert len(last_sessions(history(1, 2, 3, 4, 5, 6, 7), 2)) == 2
    assert last_sessions(history(5)) == ()


def test_momentum_is_the_cumulative_log_return_of_three_sessions() -> None:
    rising = momentum(history(50, 100, 7, 9, 120))
    assert rising is not None and exp(rising) == pytest.approx(1.2)
    falling = momentum(history(100, 1, 1, 90))
    assert falling is not None and falling < 0
    assert momentum(history(1, 2, 3)) is None
