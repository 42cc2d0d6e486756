"""The line that says what changed since the last look: on opening again, and when another process's run ends."""

from __future__ import annotations

import json
from datetime import date
from functools import partial
from typing import Any

import pytest
from conftest import Running, until
from test_other_processes import FIRST, SECOND, config, desk_is_open, log, run_elsewhere  # noqa: F401 - a fixture
from textual.pilot import Pilot

from connectors.wiring.services import services
from engine.app.open_desk import OpenDesk
from engine.journal.reader import JournalReader
from engine.reports.amounts import percent
from engine.settings import places
from engine.settings.config import Config

THIRD = date(2025, 3, 13)


def greetings(pilot: Pilot[Any]) -> list[str]:
    return [line.partition("since your last visit ")[2] for line in log(pilot) if "since your last visit" in line]


async def test_opening_again_says_what_changed_since_the_last_look(running: Running, config: Config) -> None:  # noqa: F811
    desk = partial(OpenDesk, services(config))
    await run_elsewhere(config, FIRST)
    journal = places.desk_journal("demo")
    async with running(open_desk=desk) as pilot:
        await until(pilot, lambda: desk_is_open(pilot))
        assert greetings(pilot) == [], "nobody has looked before"
        await pilot.press("tab")
        seen = pilot.app.bridge._follower.visit.time  # type: ignore[attr-defined]
        await run_elsewhere(config, SECOND)
        await until(pilot, lambda: len(greetings(pilot)) == 1)
        with JournalReader(journal) as reader:
            fills, (before, after) = len(reader.fills()), (point.value for point in reader.equity())
        assert fills
        said = f"4 decisions, {fills} fill{'' if fills == 1 else 's'}, {percent(after / before - 1)}"
        when, _, words = greetings(pilot)[0].partition(": ")
        assert (when, words) == (f"({seen:%Y-%m-%d %H:%M})", said)
        # Another run: still one line, which counts both.
        await run_elsewhere(config, THIRD)
        await until(pilot, lambda: greetings(pilot)[0].startswith(f"{when}: 8 decisions, "))
        assert len(greetings(pilot)) == 1 and greetings(pilot)[0].endswith("%")
        said = greetings(pilot)[0].partition(": ")[2]
    state = json.loads(places.app_state().read_text(encoding="utf-8"))
    assert state["last visits"]["demo"]["event"] > 0
    async with running(open_desk=desk) as pilot:  # closed without another key: those changes are still news
        await until(pilot, lambda: desk_is_open(pilot))
        await until(pilot, lambda: greetings(pilot) == [f"{when}: {said}"])


async def test_a_cycle_that_was_asked_for_by_a_key_is_seen_at_its_end(
    running: Running,
    config: Config,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("engine.app.desk.demo_history.DUE", date(2025, 3, 12))
    await run_elsewhere(config, FIRST)
    async with running(open_desk=partial(OpenDesk, services(config))) as pilot:
        await until(pilot, lambda: desk_is_open(pilot))
        follower = pilot.app.bridge._follower  # type: ignore[attr-defined]
        before = follower.visit.event
        await pilot.press("r")
        await until(pilot, lambda: any("run done" in line for line in log(pilot)) and not follower.requests.busy)
        await until(pilot, lambda: follower.visit.event > before and follower.visit.event == follower._tail.last_event)
        monkeypatch.setattr("engine.app.desk.demo_history.DUE", THIRD)
        await run_elsewhere(config, THIRD)
        await until(pilot, lambda: bool(greetings(pilot)))
        assert ": 4 decisions" in greetings(pilot)[0], "those of the other run alone"


LOST = '{"last visits": {"test": {"event": 99, "time": "2024-01-01T00:00:00+00:00"}}}'


@pytest.mark.parametrize("state", ["{", '{"last visits": {"test": {"event": "x"}}}', LOST])
async def test_a_state_that_cannot_be_read_or_is_of_another_journal_is_none(running: Running, state: str) -> None:
    places.app_state().parent.mkdir(parents=True)
    places.app_state().write_text(state, encoding="utf-8")
    async with running() as pilot:
        await pilot.press("tab")
        assert greetings(pilot) == []
    assert json.loads(places.app_state().read_text(encoding="utf-8"))["last visits"]["test"]["event"] == 0
