"""Bars against the sessions of a window."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.market import Bar, PriceHistory
from engine.errors import MalformedData, MissingData, StaleData, UsageError
from engine.market.price_faults import check_coverage
from tests.connectors.weekdays import Weekdays

CALENDAR = Weekdays()
FIRST, LAST = date(2024, 3, 4), date(2024, 3, 29)
ONE = Decimal(1)


def history(days: list[date]) -> PriceHistory:
    return PriceHistory.of("ABC", [Bar(session=day, open=ONE, high=ONE, low=ONE, close=ONE) for day in days])


def weekdays(first: date, last: date) -> list[date]:
    return list(CALENDAR.sessions(first, last))


def test_a_whole_window_is_covered_also_by_longer_bars() -> None:
    covered = check_coverage(history(weekdays(date(2024, 1, 1), date(2024, 6, 3))), CALENDAR, FIRST, LAST)
    assert (covered.first, covered.last) == (FIRST, LAST)
    assert not covered.starts_late
    assert not covered.ends_early


def test_a_window_from_a_weekend_begins_with_its_first_session() -> None:
    covered = check_coverage(history(weekdays(FIRST, LAST)), CALENDAR, date(2024, 3, 2), date(2024, 3, 31))
    assert not covered.starts_late
    assert not covered.ends_early


def test_a_late_start_and_an_early_end_are_values() -> None:
    covered = check_coverage(history(weekdays(date(2024, 3, 6), date(2024, 3, 20))), CALENDAR, FIRST, LAST)
    assert covered.starts_late
    assert covered.ends_early
    assert (covered.first, covered.last) == (date(2024, 3, 6), date(2024, 3, 20))


@given(st.sets(st.integers(1, 18), min_size=1))
def test_any_gap_is_an_error_that_names_its_first_sessions(gaps: set[int]) -> None:
    days = weekdays(FIRST, LAST)
    with pytest.raises(MissingData) as caught:
        check_coverage(history([day for i, day in enumerate(days) if i not in gaps]), CALENDAR, FIRST, LAST)
    message = str(caught.value)
    assert "ABC" in message
    for place, gap in enumerate(sorted(gaps)):
        assert (str(days[gap]) in message) == (place < 3)


def test_bars_that_end_before_or_begin_after_the_window() -> None:
    with pytest.raises(StaleData, match="2024-02-29"):
        check_coverage(history(weekdays(date(2024, 1, 1), FIRST - timedelta(1))[:-1]), CALENDAR, FIRST, LAST)
    with pytest.raises(MissingData, match="2024-04-01"):
        check_coverage(history(weekdays(date(2024, 4, 1), date(2024, 5, 1))), CALENDAR, FIRST, LAST)
    with pytest.raises(MissingData):
        check_coverage(history([]), CALENDAR, FIRST, LAST)


def test_a_bar_on_a_saturday_is_malformed() -> None:
    days = [*weekdays(FIRST, date(2024, 3, 8)), date(2024, 3, 9), *weekdays(date(2024, 3, 11), LAST)]
    with pytest.raises(MalformedData, match="2024-03-09"):
        check_coverage(history(days), CALENDAR, FIRST, LAST)


def test_a_window_without_sessions_cannot_be_covered() -> None:
    with pytest.raises(UsageError):
        check_coverage(history(weekdays(FIRST, LAST)), CALENDAR, date(2024, 3, 9), date(2024, 3, 10))
