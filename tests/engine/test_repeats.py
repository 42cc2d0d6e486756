"""Repeats of a row: which one stands for all, and what they spread over."""

from __future__ import annotations

from statistics import median

from hypothesis import given
from hypothesis import strategies as st

from engine.reports.comparison import median_repeat, spreads

FIGURES = st.floats(-100, 100, allow_nan=False)


@given(st.lists(st.fixed_dictionaries({"CR": FIGURES, "SR": FIGURES}), min_size=1, max_size=9))
def test_as_many_repeats_lie_below_the_chosen_sharpe_as_above(repeats: list[dict[str, float | None]]) -> None:
    chosen = repeats[median_repeat(repeats)]["SR"] or 0.0
    ratios = sorted(repeat["SR"] or 0.0 for repeat in repeats)
    below, above = sum(r < chosen for r in ratios), sum(r > chosen for r in ratios)
    assert chosen in ratios
    assert below <= (len(ratios) - 1) // 2 and above <= len(ratios) // 2
    if len(ratios) % 2:
        assert chosen == median(ratios)


@given(st.lists(st.tuples(FIGURES, FIGURES), min_size=1, max_size=4, unique_by=(lambda p: p[0], lambda p: p[1])))
def test_where_the_medians_fall_together_that_repeat_stands_for_all(beside: list[tuple[float, float]]) -> None:
    # Every repeat below the middle one is so in both metrics, so that one repeat holds both medians.
    middle: dict[str, float | None] = {"CR": 1.5, "SR": 0.5}
    repeats = [middle]
    for cr, sr in beside:
        repeats.insert(0, {"CR": 200 + cr / 100, "SR": 200 + sr / 100})
        repeats.append({"CR": -200 + cr / 100, "SR": -200 + sr / 100})
    assert repeats[median_repeat(repeats)] == middle
    found = spreads(repeats)
    assert (found["CR"].median, found["SR"].median) == (1.5, 0.5)


def test_where_the_medians_fall_apart_the_sharpe_decides() -> None:
    repeats: list[dict[str, float | None]] = [
        {"CR": 5.0, "SR": 0.1},
        {"CR": 1.0, "SR": 0.2},
        {"CR": 3.0, "SR": 0.9},
    ]
    assert median_repeat(repeats) == 1
    found = spreads(repeats)["CR"]
    assert (found.low, found.median, found.high, found.count) == (1.0, 3.0, 5.0, 3)


def test_of_an_even_number_the_lower_middle_one_and_of_equals_the_first() -> None:
    assert median_repeat([{"SR": 4.0}, {"SR": 1.0}, {"SR": 3.0}, {"SR": 2.0}]) == 3
    assert median_repeat([{"SR": 1.0}, {"SR": 1.0}, {"SR": 1.0}]) == 0


def test_an_undefined_sharpe_ranks_as_zero_and_an_undefined_metric_has_no_spread() -> None:
    repeats: list[dict[str, float | None]] = [{"CR": 0.0, "SR": None}, {"CR": 2.0, "SR": 1.0}, {"CR": -2.0, "SR": -1.0}]
    assert median_repeat(repeats) == 0
    assert spreads(repeats)["SR"].median == 0.0
    flat = spreads([{"SR": None}, {"SR": None}])["SR"]
    assert (flat.low, flat.median, flat.high, flat.count) == (None, None, None, 2)
