"""The clocks: one tells the time of day, one stands still until it is moved."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from engine.clock import BacktestClock, LiveClock, OffsetClock, SyncedClock
from engine.errors import InvariantBroken

START = datetime(2024, 3, 1, 21, tzinfo=UTC)


def test_a_backtests_clock_stands_still_and_never_goes_back() -> None:
    clock = BacktestClock(START)
    clock.advance(START)
    assert clock.now() == START
    clock.advance(START + timedelta(hours=1))
    assert clock.now() == START + timedelta(hours=1)
    with pytest.raises(InvariantBroken):
        clock.advance(START)
    assert clock.now() == START + timedelta(hours=1)


def test_the_live_clock_is_aware_and_in_utc() -> None:
    clock = LiveClock()
    first, second = clock.now(), clock.now()
    assert first.utcoffset() == timedelta(0)
    assert first <= second


def test_an_offset_clock_is_as_far_from_the_other_as_it_was_told() -> None:
    inner = BacktestClock(datetime(2024, 1, 2, 21, 0, tzinfo=UTC))
    clock = OffsetClock(inner, timedelta(hours=-3))
    inner.advance(datetime(2024, 1, 3, 21, 0, tzinfo=UTC))
    assert clock.now() == datetime(2024, 1, 3, 18, 0, tzinfo=UTC)


def test_a_moved_clock_goes_on_from_the_time_that_it_was_told_last() -> None:
    inner = BacktestClock(datetime(2024, 3, 1, tzinfo=UTC))
    clock = SyncedClock(inner)
    assert clock.now() == inner.now()
    clock.sync(datetime(2021, 1, 4, 14, 30, tzinfo=UTC))
    inner.advance(inner.now() + timedelta(seconds=5))
    assert clock.now() == datetime(2021, 1, 4, 14, 30, 5, tzinfo=UTC)
    clock.sync(datetime(2021, 1, 4, 20, tzinfo=UTC))
    assert clock.now() == datetime(2021, 1, 4, 20, tzinfo=UTC)
