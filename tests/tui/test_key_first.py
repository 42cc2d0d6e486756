"""The way of a key from the terminal to its answer, and what waits for it."""

from __future__ import annotations

import os
from typing import Any

import pytest
from conftest import Running
from textual import events
from textual.drivers.headless_driver import HeadlessDriver
from textual.widgets import Input

from tui import key_first
from tui.app import PaperdeskApp
from tui.key_first import FIRST, KeyFirst, noting_keys


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time of the module: the last element."""
    times = [100.0]
    monkeypatch.setattr(key_first.time, "monotonic", lambda: times[-1])
    return times


def test_others_wait_from_the_reading_of_a_key_to_the_painting_of_its_answer(clock: list[float]) -> None:
    key = KeyFirst()
    assert not key.waits and not key.comes
    key.read()
    assert key.waits and key.comes
    key.begun()
    assert key.waits and not key.comes, "what is painted now may be its answer"
    key.painted()
    assert not key.waits


def test_a_painting_before_the_action_is_no_answer(clock: list[float]) -> None:
    key = KeyFirst()
    key.read()
    key.painted()
    assert key.comes
    key.begun()
    key.painted()
    key.begun()
    assert not key.waits


def test_a_key_that_nothing_answers_keeps_others_for_a_moment_only(clock: list[float]) -> None:
    for begins in (False, True):
        key = KeyFirst()
        key.read()
        if begins:
            key.begun()
        assert key.waits
        clock.append(clock[-1] + 1.01 * FIRST)
        assert not key.waits


def test_a_painting_comes_at_last_while_one_key_follows_another(clock: list[float]) -> None:
    key = KeyFirst()
    for _ in range(5):
        key.read()
        assert key.comes
        clock.append(clock[-1] + 1.01 * FIRST / 5)
    key.read()
    assert not key.comes
    key.painted()
    key.read()
    assert key.comes


def test_a_key_that_the_terminal_holds_has_come(clock: list[float]) -> None:
    ours, theirs = os.pipe()
    key = KeyFirst()
    key.terminal = ours
    assert not key.comes
    os.write(theirs, b"]")
    assert key.comes and key.waits
    os.read(ours, 1)
    assert not key.comes
    os.close(ours)
    os.close(theirs)


async def test_the_driver_says_so_before_the_loop_hears_of_the_key(running: Running) -> None:
    class Noting(noting_keys(HeadlessDriver)):  # type: ignore[misc]
        """A driver whose messages reach nobody."""

        def send_message(self, message: object) -> None:
            """Keep it."""

    async with running() as pilot:
        app: Any = pilot.app
        assert "NotingKeys" in {base.__name__ for base in app.driver_class.__mro__}
        driver = Noting(app)
        driver.process_message(events.MouseMove(None, 1, 1, 0, 0, 0, False, False, False))
        assert not app.key_first.comes
        driver.process_message(events.Key("x", "x"))
        assert app.key_first.comes


async def test_text_and_actions_are_painted_at_once(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []
    async with running() as pilot:
        app = pilot.app
        assert isinstance(app, PaperdeskApp)
        monkeypatch.setattr(app.key_first, "begun", lambda: begun.append("begun"))
        await pilot.press("f12")
        assert not begun, "no action follows"
        await pilot.press("right_square_bracket")
        assert begun.pop() and not begun
        await pilot.press("slash")
        assert isinstance(app.focused, Input)
        begun.clear()
        await pilot.press("x")
        assert begun
        begun.clear()
        await pilot.press("escape")
        await pilot.click("#watchlist")
        assert begun
