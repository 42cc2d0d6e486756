"""The live clock: which occasions come when, over half days, weekends and daylight saving, and what a failure does."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.app.desk.watch import RETRY, Watch
from engine.clock import BacktestClock
from engine.errors import CredentialsRefused, NetworkError
from engine.market.trading_hours import AroundTheClock, exchange_calendar
from engine.session.schedule import Schedule, ScheduledRun, next_run

XNYS = exchange_calendar()
HALF_HOUR = Schedule(timedelta(minutes=10), timedelta(minutes=30))


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def occasions(schedule: Schedule, start: str, count: int) -> list[ScheduledRun]:
    found, now = [], at(start)
    for _ in range(count):
        found.append(next_run(XNYS, schedule, now))
        now = found[-1].at
    return found


def test_a_daily_schedule_follows_every_close_also_of_half_days_and_over_the_change_of_time() -> None:
    daily = Schedule(timedelta(minutes=10))
    assert [(o.at, o.session, o.number) for o in occasions(daily, "2024-03-08T21:10", 2)] == [
        (at("2024-03-11T20:10"), date(2024, 3, 11), 1),  # summer time began on the Sunday
        (at("2024-03-12T20:10"), date(2024, 3, 12), 1),
    ]
    assert occasions(daily, "2024-11-28T00:00", 1)[0] == ScheduledRun(at("2024-11-29T18:10"), date(2024, 11, 29), 1)


def test_within_a_session_cycles_rest_on_the_one_before() -> None:
    found = occasions(HALF_HOUR, "2024-11-27T21:10", 8)
    assert {(o.session, o.number) for o in found[:6]} == {(date(2024, 11, 27), n) for n in range(2, 8)}
    assert found[0].at == at("2024-11-29T15:00")  # after a holiday; a half day ends at 18:00
    assert found[6] == ScheduledRun(at("2024-11-29T18:10"), date(2024, 11, 29), 1)
    assert found[7] == ScheduledRun(at("2024-12-02T15:00"), date(2024, 11, 29), 2)


@given(
    st.datetimes(datetime.fromisoformat("2023-01-05"), datetime.fromisoformat("2025-12-20"), timezones=st.just(UTC)),
    st.integers(1, 300),
    st.one_of(st.none(), st.integers(5, 500)),
)
def test_no_scheduled_run_is_passed_over_and_each_rests_on_the_last_completed_session(
    start: datetime, delay: int, every: int | None
) -> None:
    schedule = Schedule(timedelta(minutes=delay), None if every is None else timedelta(minutes=every))
    now, found = start, []
    for _ in range(5):
        occasion = next_run(XNYS, schedule, now)
        assert occasion.at > now
        assert occasion.session == XNYS.last_closed(occasion.at) or occasion.number == 1
        found.append(occasion)
        now = occasion.at
    for before, after in pairwise(found):
        between = before.at + (after.at - before.at) / 2
        assert next_run(XNYS, schedule, between) == after


def test_crypto_has_a_scheduled_run_every_day() -> None:
    calendar = AroundTheClock()
    found = next_run(calendar, Schedule(timedelta(minutes=10)), at("2024-03-09T12:00"))
    assert found == ScheduledRun(at("2024-03-10T00:10"), date(2024, 3, 9), 1)


def test_a_desk_with_coins_waits_for_their_utc_day() -> None:
    mixed = Schedule(timedelta(minutes=10), timedelta(hours=3), crypto=True)
    found = occasions(mixed, "2024-03-08T20:59", 4)  # a Friday
    assert found == [
        ScheduledRun(at("2024-03-09T00:10"), date(2024, 3, 8), 1),
        ScheduledRun(at("2024-03-11T16:30"), date(2024, 3, 8), 2),
        ScheduledRun(at("2024-03-11T19:30"), date(2024, 3, 8), 3),
        ScheduledRun(at("2024-03-12T00:10"), date(2024, 3, 11), 1),
    ]
    assert next_run(XNYS, mixed, at("2024-03-12T00:05")) == found[-1]


class Life:
    """A clock that moves when somebody sleeps, and what was said and done."""

    def __init__(self, start: str, until: str, failing: dict[int, Exception] | None = None) -> None:
        self.clock = BacktestClock(at(start))
        self.until = at(until)
        self.done: list[tuple[datetime, date, int]] = []
        self.said: list[str] = []
        self.failing = dict(failing or {})
        self.paused_until: datetime | None = None
        self.asleep = timedelta(0)

    async def sleep(self, seconds: float) -> None:
        self.clock.advance(self.clock.now() + timedelta(seconds=seconds) + self.asleep)
        self.asleep = timedelta(0)
        if self.clock.now() > self.until:
            raise asyncio.CancelledError
        await asyncio.sleep(0)

    async def work(self, occasion: ScheduledRun) -> None:
        self.done.append((self.clock.now(), occasion.session, occasion.number))
        error = self.failing.pop(len(self.done), None)
        if error is not None:
            raise error

    async def live(self, schedule: Schedule) -> None:
        watch = Watch(
            calendar=XNYS,
            schedule=schedule,
            clock=self.clock,
            work=self.work,
            report=lambda level, text: self.said.append(text),
            sleep=self.sleep,
            paused=lambda: self.paused_until is not None and self.clock.now() < self.paused_until,
        )
        with pytest.raises(asyncio.CancelledError):
            await watch.run()


async def test_what_is_due_is_done_at_once_and_then_at_every_close() -> None:
    life = Life("2024-03-08T23:00", "2024-03-13T00:00")
    await life.live(Schedule(timedelta(minutes=10)))
    assert life.done == [
        (at("2024-03-08T23:00"), date(2024, 3, 8), 1),
        (at("2024-03-11T20:10"), date(2024, 3, 11), 1),
        (at("2024-03-12T20:10"), date(2024, 3, 12), 1),
    ]
    assert any("2024-03-11 20:10" in text for text in life.said)


async def test_a_passing_failure_is_tried_again_until_it_passes() -> None:
    life = Life("2024-03-08T23:00", "2024-03-09T12:00", {1: NetworkError("no way out"), 2: NetworkError("still")})
    await life.live(Schedule(timedelta(minutes=10)))
    first = at("2024-03-08T23:00")
    assert [when for when, _, _ in life.done] == [first, first + RETRY, first + 2 * RETRY]
    assert ["74" in text for text in life.said[:2]] == [True, True]


async def test_a_failure_within_the_session_waits_for_the_next_cycle() -> None:
    life = Life("2024-03-11T13:31", "2024-03-11T15:10", {2: NetworkError("no way out")})
    await life.live(HALF_HOUR)
    assert [when for when, _, _ in life.done[1:]] == [
        at("2024-03-11T14:00"),
        at("2024-03-11T14:30"),
        at("2024-03-11T15:00"),
    ]


async def test_a_paused_desk_comes_back_to_its_close_once_the_pause_is_over() -> None:
    life = Life("2024-03-08T23:00", "2024-03-11T20:30")
    life.paused_until = at("2024-03-10T09:00")
    await life.live(Schedule(timedelta(minutes=10)))
    assert [(when, session) for when, session, _ in life.done] == [
        (at("2024-03-08T23:00"), date(2024, 3, 8)),
        (at("2024-03-10T09:00"), date(2024, 3, 8)),
        (at("2024-03-11T20:10"), date(2024, 3, 11)),
    ]
    assert sum("paused" in text for text in life.said) == 1
    longer = Life("2024-03-08T23:00", "2024-03-11T20:30")
    longer.paused_until = at("2024-03-12T00:00")
    await longer.live(Schedule(timedelta(minutes=10)))
    assert [session for _, session, _ in longer.done] == [date(2024, 3, 8), date(2024, 3, 11)]


async def test_a_machine_that_slept_leaves_out_what_is_stale() -> None:
    life = Life("2024-03-11T13:59:30", "2024-03-11T20:20")
    life.asleep = timedelta(hours=1)
    await life.live(Schedule(timedelta(minutes=10), timedelta(hours=2)))
    # Asleep from 13:59 to 15:00 costs nothing: the first cycle is due at 15:30.
    assert [n for _, _, n in life.done] == [1, 2, 3, 4, 1]
    late = Life("2024-03-11T15:29:00", "2024-03-11T20:20")
    late.asleep = timedelta(minutes=30)
    await late.live(Schedule(timedelta(minutes=10), timedelta(hours=2)))
    assert [n for _, _, n in late.done] == [1, 3, 4, 1]
    assert any("missed" in text and "cycle 2" in text for text in late.said)


async def test_a_close_that_was_slept_over_is_made_up_for_at_once_and_only_the_latest() -> None:
    life = Life("2024-03-11T19:29:30", "2024-03-14T12:00")
    life.asleep = timedelta(days=2, hours=2)
    await life.live(Schedule(timedelta(minutes=10), timedelta(hours=2)))
    assert life.done == [
        (at("2024-03-11T19:29:30"), date(2024, 3, 8), 1),
        (at("2024-03-13T21:29:50"), date(2024, 3, 13), 1),
    ]
    assert sum("missed" in text for text in life.said) == 1


async def test_what_only_a_person_can_mend_ends_the_watch() -> None:
    life = Life("2024-03-08T23:00", "2024-03-13T00:00", {1: CredentialsRefused("the keys are refused")})
    watch = Watch(
        calendar=XNYS,
        schedule=Schedule(),
        clock=life.clock,
        work=life.work,
        report=lambda level, text: None,
        sleep=life.sleep,
    )
    with pytest.raises(CredentialsRefused):
        await watch.run()
