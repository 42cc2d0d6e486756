"""Readings of a screen: one at a time, the newest of those that were asked for meanwhile next."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from textual.app import App
from textual.widgets import Static
from textual.worker import Worker, WorkerState

from engine.reports.documents.book import Book
from engine.reports.documents.decisions import followed_decisions
from tests.tui.commands.test_playback import arrived
from tests.tui.conftest import opened, until
from tui.desk import book_curves
from tui.desk.readings import Readings
from tui.screens.book import BookScreen
from tui.screens.newest_reading import is_reading, newest_reading
from tui.view.snapshot import Snapshot


class Reader(Static):
    """Reads a number once it may."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.ended, self.failed = list[int](), list[int](), list[BaseException]()
        self.may_end = asyncio.Event()

    @newest_reading
    async def read(self, number: int) -> None:
        """Take as long as it takes."""
        self.begun.append(number)
        await self.may_end.wait()
        if number < 0:
            raise ValueError(number)
        self.ended.append(number)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Note an error."""
        if event.state is WorkerState.ERROR and event.worker.error is not None:
            self.failed.append(event.worker.error)


async def test_the_newest_call_follows_the_one_at_work() -> None:
    app, reader = App[None](), Reader()
    async with app.run_test() as pilot:
        await app.mount(reader)
        reader.read(1)
        await until(pilot, lambda: reader.begun == [1])
        for number in (2, 3, 4):
            reader.read(number)
        await pilot.pause()
        assert reader.begun == [1] and reader.ended == []
        reader.may_end.set()
        await until(pilot, lambda: reader.ended == [1, 4])
        reader.read(5)
        await until(pilot, lambda: reader.ended == [1, 4, 5])


async def test_a_call_comes_after_one_that_failed() -> None:
    app, reader = App[None](), Reader()
    async with app.run_test() as pilot:
        await app.mount(reader)
        reader.may_end.set()
        reader.read(-1)
        await until(pilot, lambda: bool(reader.failed))
        reader.read(2)
        await until(pilot, lambda: reader.ended == [2])


async def test_decisions_are_shown_while_the_places_come_faster_than_they_are_read(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Readings.read
    ended: list[Any] = []

    async def slowly(readings: Readings, source: Any, document: Any) -> Any:
        if document is not followed_decisions:
            return await read(readings, source, document)
        await asyncio.sleep(0.3)
        found = await read(readings, source, document)
        ended.append(source)
        return found

    monkeypatch.setattr(Readings, "read", slowly)
    async with opened() as pilot:
        await pilot.press("5")
        await until(pilot, lambda: bool(ended))
        await pilot.press("left_curly_bracket")
        await arrived(pilot)
        ended.clear()
        while len(ended) < 3:
            before = pilot.app.bridge.snapshot().sources[0]  # type: ignore[attr-defined]
            await pilot.press("greater_than_sign" if len(ended) % 2 else "less_than_sign")
            await until(pilot, lambda: pilot.app.bridge.snapshot().sources[0] != before)  # type: ignore[attr-defined]  # noqa: B023
        await until(pilot, lambda: ended[-1] == pilot.app.bridge.snapshot().sources[0])  # type: ignore[attr-defined]


async def test_a_history_that_plays_waits_until_the_screen_shows_its_place_whole(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, show = book_curves.read_book, BookScreen._show_book
    shown: list[tuple[int, int]] = []

    async def slowly(view: Snapshot) -> Book:
        await asyncio.sleep(0.1)
        return await read(view)

    def noted(screen: BookScreen, book: Book, view: Snapshot) -> None:
        show(screen, book, view)
        bar, place = screen.desk_app.bridge.snapshot().place, view.place
        assert bar is not None and place is not None
        shown.append((bar.number, place.number))

    async with opened() as pilot:
        bridge = pilot.app.bridge  # type: ignore[attr-defined]
        await pilot.press("4", "left_curly_bracket")
        await arrived(pilot)
        await until(pilot, lambda: not is_reading(pilot.app))
        monkeypatch.setattr(book_curves, "read_book", slowly)
        monkeypatch.setattr(BookScreen, "_show_book", noted)
        bridge.playback.step_session(-9)
        start = (await arrived(pilot)).place
        assert start is not None
        await until(pilot, lambda: (start.number, start.number) in shown and not is_reading(pilot.app))
        shown.clear()  # a step does not wait for the reading of the place it leaves, as playing does
        bridge.playback.play(60)
        await until(pilot, lambda: not bridge.playback.place.speed and not is_reading(pilot.app))
    assert shown and [view for _, view in shown] == [bar for bar, _ in shown]
