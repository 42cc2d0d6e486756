"""A desk that stays open beside a configuration that is written anew: what has changed is said, and no cycle runs by
the old one."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import until
from textual.pilot import Pilot

from engine.app.desk import watch as desk_watch
from engine.settings import places
from tests.tui.conftest import opened
from tui.settings.configuration_changes import ConfigurationChanges
from tui.widgets.screen_bars import ErrorBar, EventLog

BEGUN = '[desk]\nsymbols = ["ORVL"]\npreset = "finvision"\n[broker]\nmode = "auto"\n'


def write(text: str) -> None:
    places.config_file().write_text(text, encoding="utf-8")


def strip(pilot: Pilot[Any]) -> str:
    bar = pilot.app.screen_stack[0].query_one(ErrorBar)
    return str(bar.render()) if bar.text else ""


def log(pilot: Pilot[Any]) -> str:
    return pilot.app.screen_stack[0].query_one(EventLog).as_text()


async def test_no_cycle_runs_by_a_configuration_that_has_changed_until_the_desk_is_opened_again(fresh: Path) -> None:
    write(BEGUN)
    async with opened((160, 30)) as pilot:
        write(BEGUN + '[app]\ntheme = "light"\n')
        write(BEGUN.replace("auto", "ask"))
        await until(pilot, lambda: "has changed since the desk was opened (broker.mode)" in strip(pilot))
        assert "ctrl+t open again" in strip(pilot) and "API keys" not in strip(pilot)
        await pilot.press("escape")
        await until(pilot, lambda: not strip(pilot))
        await pilot.press("r")
        await until(pilot, lambda: "no cycle runs by what it was before" in strip(pilot))
        assert not places.desk_journal("demo").exists()
        write("[broker]\nmode = 5\n")
        await until(pilot, lambda: "no cycle runs until it is right" in strip(pilot) and "broker.mode" in strip(pilot))
        write(BEGUN + '[app]\ntheme = "light"\n')  # what concerns the app alone is read when it opens
        await until(pilot, lambda: not pilot.app.bridge._follower.changed)  # type: ignore[attr-defined]
        await pilot.press("r")
        await until(pilot, places.desk_journal("demo").exists)
        write(BEGUN.replace('"ORVL"', '"ORVL", "TMBK"'))
        await until(pilot, lambda: "(desk.symbols)" in strip(pilot))
        await until(pilot, lambda: not pilot.app.bridge.snapshot().busy)  # type: ignore[attr-defined]
        await pilot.press("ctrl+t")
        await until(pilot, lambda: pilot.app._exit)
        assert pilot.app.reopening == ()  # type: ignore[attr-defined]


async def test_a_scheduled_cycle_of_the_app_comes_again_once_the_configuration_is_what_it_was(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(BEGUN + "[watch]\nin_app = true\n")
    there, text = threading.Event(), "the configuration has changed"
    monkeypatch.setattr(desk_watch, "RETRY", timedelta())
    monkeypatch.setattr(ConfigurationChanges, "__call__", lambda changes: "" if there.is_set() else text)
    async with opened((160, 30)) as pilot:
        await until(pilot, lambda: "the configuration has changed (code 75)" in log(pilot))
        assert not places.desk_journal("demo").exists()
        there.set()
        await until(pilot, lambda: "run done" in log(pilot))
