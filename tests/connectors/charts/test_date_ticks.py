"""Which sessions carry a date."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from connectors.charts.marks import date_ticks


def weekdays(first: date, count: int) -> list[str]:
    days = (first + timedelta(days=n) for n in range(count * 2 + 7))
    return [day.isoformat() for day in days if day.weekday() < 5][:count]


@given(st.dates(date(1990, 1, 1), date(2030, 1, 1)), st.integers(1, 3000))
def test_a_few_labels_each_at_its_own_session_in_order(first: date, count: int) -> None:
    sessions = weekdays(first, count)
    ticks = date_ticks(sessions)
    assert 1 <= len(ticks) <= 8
    assert all(sessions[index] == label for index, label in ticks)
    indices = [index for index, _ in ticks]
    assert indices == sorted(set(indices))
    # A label is 75 of about 900 pixels wide.
    assert all(b - a >= count / 12 for a, b in pairwise(indices))


def test_three_months_carry_every_other_monday() -> None:
    labels = [label for _, label in date_ticks(weekdays(date(2024, 1, 1), 60))]
    assert len(labels) >= 5
    assert {date.fromisoformat(label).weekday() for label in labels} == {0}


def test_masked_sessions_are_labelled_as_they_are() -> None:
    sessions = [f"day {n}" for n in range(30)]
    assert date_ticks(sessions) == [(n, f"day {n}") for n in range(0, 30, 4)]
