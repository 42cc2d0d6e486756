"""10,000 lives of a desk in an account, cut and disturbed by chance; `make bench` plays as many of other seeds.

The usual suite plays ten, `make test-long` the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.engine.account.account_life import TALLY
from tests.engine.account.account_schedules import fault_of, report, schedule_of, with_bookings

USUAL = [(*range(3, 13), 1417, 2023, 6364, 8025)]
"""Ten lives, and those that were found to end wrongly: short shares and cash that stayed twice for them, a split and an
adoption between a close and the look at its value."""
LONG = [(*range(3), *range(13, 40)), *(range(first, first + 332) for first in range(40, 10_000, 332))]


def named(seeds: Sequence[int]) -> str:
    return f"{seeds[0]} to {seeds[-1]}"


@pytest.mark.parametrize("seeds", [*USUAL, *(pytest.param(seeds, marks=pytest.mark.slow) for seeds in LONG)], ids=named)
def test_whatever_happens_orders_are_traded_once_and_journal_and_broker_agree(seeds: Sequence[int]) -> None:
    TALLY.clear()
    for seed in seeds:
        if fault_of(schedule_of(seed)) is not None:
            pytest.fail(report(seed), pytrace=False)
    # They would hold as well where nothing is ever tried.
    assert TALLY["done"] > len(seeds)
    assert TALLY["orders sent"] > 0.8 * len(seeds)
    assert TALLY["killed"] > 0.3 * len(seeds)
    assert TALLY["broken off"] > 0


@pytest.mark.parametrize("seeds", [(8, 12, 14), pytest.param(range(40, 400), marks=pytest.mark.slow)], ids=named)
def test_the_same_holds_for_a_desk_that_books_between_its_runs(seeds: Sequence[int]) -> None:
    TALLY.clear()
    for seed in seeds:
        if fault_of(with_bookings(schedule_of(seed), seed)) is not None:
            pytest.fail(report(seed, books=True), pytrace=False)
    assert TALLY["booked"] >= len(seeds) / 8
    assert TALLY["done"] > len(seeds)
