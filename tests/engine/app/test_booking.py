"""Bookings beside cycles and other processes: several hints in one, none while something else works, none lost."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.app.desk import booking_queue
from engine.app.desk_runner import DeskRunner
from engine.app.records.desk_journal import desk_lock
from engine.domain.live import Delivery, FeedMessage, FeedState, OrderHint
from engine.errors import DeskHalted, NetworkError, TryAgainLater
from engine.messages.bus import Bus
from engine.messages.commands import RunCycle, Shutdown
from engine.messages.events import Noticed, Publish
from tests.engine.app.test_desk_runner import NOON, Cycles, runner

FILL = OrderHint("desk-1", "fill", NOON)
HEARD = pytest.mark.parametrize(
    "message",
    [
        FILL,
        OrderHint("desk-1", "canceled", NOON),
        FeedState("orders", Delivery.STREAM, NOON),
        FeedState("orders", Delivery.POLLING, NOON),
    ],
    ids=["fill", "canceled", "back", "requested instead"],
)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing waits for time to pass."""
    for name in ("SOON", "LONGEST", "PAUSE"):
        monkeypatch.setattr(booking_queue, name, 0.0)


class Books:
    """Counts bookings, each of which waits until it is `let`, and raises what is due."""

    def __init__(self, *errors: Exception, let: bool = True) -> None:
        self.begun = self.done = 0
        self.began, self.may = asyncio.Event(), asyncio.Event()
        self._errors = list(errors)
        if let:
            self.may.set()

    async def __call__(self, publish: Publish) -> None:
        self.begun += 1
        self.began.set()
        await self.may.wait()
        if self._errors:
            raise self._errors.pop(0)
        self.done += 1


def hears(desk: DeskRunner, *messages: FeedMessage) -> None:
    assert desk.bookings is not None
    for message in messages:
        desk.bookings.on_message(message)


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.001)


@HEARD
async def test_several_hints_in_a_moment_are_one_booking_and_a_later_one_another(message: FeedMessage) -> None:
    books = Books(let=False)
    desk = runner(Cycles().run, book=books)
    hears(desk, message, FILL, FILL)
    await books.began.wait()
    hears(desk, FILL)  # it came while the account was being asked: that may not have it yet
    books.may.set()
    await until(lambda: books.done == 2)
    hears(desk, OrderHint("desk-1", "new", NOON), FeedState("shares", Delivery.STREAM, NOON))
    hears(desk, FeedState("orders", Delivery.DOWN, NOON))
    await asyncio.sleep(0.01)
    assert books.begun == 2


async def test_a_booking_waits_for_the_cycle_and_the_cycle_for_a_booking() -> None:
    books, cycles = Books(let=False), Cycles(held=True)
    desk = runner(cycles.run, book=books)
    serving = asyncio.create_task(desk.serve())
    hears(desk, FILL)
    await books.began.wait()
    desk.send(RunCycle())
    await until(lambda: desk.busy)
    await asyncio.sleep(0.01)
    assert cycles.asked == 0
    books.may.set()
    await cycles.began.wait()
    hears(desk, FILL)
    await asyncio.sleep(0.01)
    assert (books.begun, books.done) == (1, 1)
    cycles.answered.set()
    await until(lambda: books.done == 2)
    assert not desk.busy
    desk.send(Shutdown())
    await serving


@pytest.mark.parametrize(
    ("error", "level", "tries"),
    [(TryAgainLater("at work"), "", 2), (NetworkError("gone"), "warning", 1), (DeskHalted("cash"), "error", 1)],
    ids=["tried again", "left", "said"],
)
async def test_what_cannot_be_booked_is_tried_again_or_said_in_a_line(error: Exception, level: str, tries: int) -> None:
    books, bus = Books(error), Bus()
    heard = bus.subscribe()
    desk = runner(Cycles().run, book=books, bus=bus)
    hears(desk, FILL)
    if level:
        said = await anext(aiter(heard))
        assert isinstance(said, Noticed) and said.level == level and str(error) in said.text
    else:
        await until(lambda: books.done == 1)
    assert books.begun == tries


async def test_a_lock_that_is_never_free_is_said_once() -> None:
    bus = Bus()
    heard = bus.subscribe()
    books = Books(*[TryAgainLater("a run is at work")] * booking_queue.TRIES)
    hears(runner(Cycles().run, book=books, bus=bus), FILL)
    said = await anext(aiter(heard))
    assert isinstance(said, Noticed)
    assert books.begun == booking_queue.TRIES


async def test_who_leaves_waits_for_no_booking() -> None:
    books = Books(let=False)
    desk = runner(Cycles().run, book=books)
    serving = asyncio.create_task(desk.serve())
    hears(desk, FILL)
    await books.began.wait()
    desk.send(Shutdown())
    await serving
    await asyncio.sleep(0.01)
    assert books.done == 0


def test_a_booking_that_ends_while_its_holder_is_looked_for_is_no_run(
    paperdesk_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import filelock

    booking = desk_lock("demo", brief=True)
    booking.__enter__()
    acquire = filelock.FileLock.acquire

    def acquired(lock: Any, *about: Any, **more: Any) -> Any:
        try:
            return acquire(lock, *about, **more)
        except filelock.Timeout:
            booking.__exit__(None, None, None)
            raise

    monkeypatch.setattr(filelock.FileLock, "acquire", acquired)
    with desk_lock("demo"):
        pass


HOLDER = """
import sys
from engine.app.records.desk_journal import desk_lock
with desk_lock("demo", brief=sys.argv[1] == "brief"):
    print("held", flush=True)
    sys.stdin.readline()
"""


def test_a_run_waits_for_a_booking_and_for_nothing_else(paperdesk_home: Path) -> None:
    for kind in ("brief", "run"):
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLDER, kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert holder.stdin is not None and holder.stdout is not None
        try:
            assert holder.stdout.readline() == "held\n"
            with pytest.raises(TryAgainLater), desk_lock("demo", brief=True):
                pass  # a booking never waits in the lock: what it is about is booked by who has it, or a moment later
            if kind == "run":
                with pytest.raises(TryAgainLater), desk_lock("demo"):
                    pass
            holder.stdin.write("\n")
            holder.stdin.flush()
            if kind == "brief":
                with desk_lock("demo"):
                    pass
        finally:
            holder.communicate()
