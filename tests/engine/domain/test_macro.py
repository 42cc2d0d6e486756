"""Vintages: nothing is known before it came out, and the latest word then is what is said."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.macro import MacroObservation, MacroSeries, end_of_vintage

START = datetime(2023, 1, 2, tzinfo=UTC)

observations = st.lists(
    st.builds(
        lambda day, hour, value: MacroObservation(
            date(2023, 1, 1) + timedelta(day), Decimal(value), START + timedelta(hours=hour)
        ),
        st.integers(0, 5),
        st.integers(0, 200),
        st.integers(0, 3),
    ),
    max_size=25,
    unique_by=lambda one: (one.date, one.known_from),
)


@given(observations, st.integers(-5, 210))
def test_what_is_said_was_known_and_nothing_newer_was(items: list[MacroObservation], hour: int) -> None:
    moment = START + timedelta(hours=hour)
    series = MacroSeries.of("X", items)
    known = [one for one in items if one.known_from <= moment]
    said = series.known_at(moment)
    if not known:
        assert said is None
        assert series.history_at(moment) == ()
        return
    assert said is not None
    assert said.known_from <= moment
    newest = max(known, key=lambda one: (one.date, one.known_from))
    assert (said.date, said.value) == (newest.date, newest.value)
    history = series.history_at(moment)
    assert history[-1] == said
    assert [one.date for one in history] == sorted({one.date for one in known})


@given(observations, st.randoms())
def test_the_order_of_the_input_and_repeats_do_not_count(items: list[MacroObservation], random: object) -> None:
    shuffled = list(items)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    series = MacroSeries.of("X", items)
    assert MacroSeries.of("X", shuffled + items) == series
    assert MacroSeries.of("X", series.observations) == series


def test_two_values_at_once_are_refused() -> None:
    one = MacroObservation(date(2023, 1, 1), Decimal(1), START)
    with pytest.raises(ValueError, match="two values"):
        MacroSeries.of("X", [one, MacroObservation(one.date, Decimal(2), START)])


@pytest.mark.parametrize("day", [date(2023, 1, 5), date(2023, 7, 6), date(2024, 2, 29)])
def test_a_day_ends_after_it_does_in_st_louis_and_before_the_next_open(day: date) -> None:
    from zoneinfo import ZoneInfo

    end = end_of_vintage(day)
    midnight = datetime.combine(day + timedelta(1), datetime.min.time(), ZoneInfo("America/Chicago"))
    opens = datetime.combine(day + timedelta(1), datetime.min.time(), ZoneInfo("America/New_York"))
    assert midnight <= end < opens + timedelta(hours=9.5)


def claims(*figures: tuple[int, int, int]) -> MacroSeries:
    """Weekly claims: the week, the value in thousands, hours from START until it was known."""
    return MacroSeries.of(
        "ICSA",
        [
            MacroObservation(
                date(2023, 1, 7) + timedelta(weeks=week), Decimal(value * 1000), START + timedelta(hours=at)
            )
            for week, value, at in figures
        ],
    )


def test_a_release_tells_the_last_figure_against_the_ones_before_as_they_stood() -> None:
    series = claims((0, 250, 0), (51, 200, 100), (52, 210, 200), (51, 205, 200), (52, 220, 300))
    before, then, later = (START + timedelta(hours=h) for h in (150, 200, 300))
    first = series.release(before, then)
    assert first is not None and (first.date, first.available_at) == (date(2024, 1, 6), then)
    assert first.summary == (
        "Initial claims for unemployment insurance (ICSA): 210000 for 2024-01-06, +2.44% against 205000 before, "
        "-16.00% against 250000 a year before."
    )
    revised = series.release(then, later)
    assert revised is not None and revised.id != first.id
    assert "220000 for 2024-01-06" in revised.summary and revised.summary.endswith("revised from 210000.")


def test_nothing_new_is_no_release_nor_is_an_old_figure_revised() -> None:
    series = claims((0, 250, 0), (1, 200, 100), (0, 260, 200))
    moments = [START + timedelta(hours=h) for h in (-1, 0, 99, 100, 199, 200, 999)]
    assert series.release(None, moments[0]) is None
    assert series.release(None, moments[1]) is not None
    assert series.release(moments[1], moments[2]) is None
    assert series.release(moments[2], moments[3]) is not None
    assert series.release(moments[4], moments[5]) is None
    # What is asked for without a moment before is told as it stands.
    told = series.release(None, moments[6])
    assert told is not None and "-23.08% against 260000 before" in told.summary


def test_a_change_from_zero_or_below_is_told_as_a_difference() -> None:
    series = MacroSeries.of("SPREAD", [MacroObservation(date(2023, 1, n), Decimal(n - 2), START) for n in (1, 2, 3)])
    told = series.release(None, START)
    assert told is not None and told.summary == "SPREAD: 1 for 2023-01-03, +1 against 0 before."


@given(observations, st.integers(-5, 210), st.integers(0, 50))
def test_a_release_is_new_known_and_the_same_on_cut_data(items: list[MacroObservation], hour: int, more: int) -> None:
    after, until = START + timedelta(hours=hour), START + timedelta(hours=hour + more)
    series = MacroSeries.of("X", items)
    told = series.release(after, until)
    assert told == series.cut(until).release(after, until)
    if told is None:
        assert series.known_at(after) == series.known_at(until)
    else:
        assert told.available_at <= until and series.known_at(after) != series.known_at(until)
