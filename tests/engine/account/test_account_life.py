"""300 lives of a desk in an account, cut and disturbed by chance; `make bench` plays 10,000 of other seeds."""

from __future__ import annotations

import pytest

from tests.engine.account.account_life import TALLY
from tests.engine.account.account_schedules import fault_of, report, schedule_of


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_whatever_happens_orders_are_traded_once_and_journal_and_broker_agree(first: int) -> None:
    TALLY.clear()
    for seed in range(first, first + 50):
        if fault_of(schedule_of(seed)) is not None:
            pytest.fail(report(seed), pytrace=False)
    # They would hold as well where nothing is ever tried.
    assert TALLY["done"] > 50
    assert TALLY["orders sent"] > 40
    assert TALLY["killed"] > 15
    assert TALLY["broken off"] > 0
