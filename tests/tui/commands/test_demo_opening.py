"""The opening of the demo desk: its history is made beside it, and its end plays until a key of the desk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from engine import places
from engine.app.demo_history import DemoHistory, demo_history
from engine.app.lock import one_process
from engine.domain.run import RunSpec
from engine.journal.reader import JournalReader
from tests.tui.commands.conftest import BACKTEST, Run
from tests.tui.commands.test_demo_time import NOW, view
from tests.tui.conftest import Running, opened, until
from tui import demo_opening
from tui.commands.app import open_desk
from tui.invocation import Invocation
from tui.widgets.pane_text import TextPane
from tui.widgets.screen_bars import StatusBar

LAST = date(2025, 2, 27)
"""Ten sessions before the last completed one at NOW."""


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.clock.LiveClock.now", lambda clock: NOW)


@pytest.fixture
def made(backtested: Path, now: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A short backtest in the place of the history."""
    with JournalReader(places.run_journal(BACKTEST)) as reader:
        spec = reader.run(BACKTEST).spec
    assert spec is not None
    monkeypatch.setattr("engine.app.open_desk.demo_history", lambda services: DemoHistory(spec, True))
    monkeypatch.setattr(demo_opening, "PLAYED", 3)
    yield


def toasts(pilot: Pilot[Any]) -> list[str]:
    return [str(one.message) for one in pilot.app._notifications]


async def test_its_end_plays_until_a_key_of_the_desk(made: None) -> None:
    async with opened(history=True) as pilot:
        await until(pilot, lambda: view(pilot).place is not None and view(pilot).desk.run == BACKTEST)
        place = view(pilot).place
        assert place is not None and place.name == "demo history" and place.session is not None
        with JournalReader(places.run_journal(BACKTEST)) as reader:
            closes = [one.session for one in reader.equity(BACKTEST, "test")]
        assert place.session >= closes[-4], "the last three sessions, not as many steps of one"
        await pilot.press("5", "1")
        await until(pilot, lambda: view(pilot).place is None)
        await until(pilot, lambda: demo_opening.AFTER in toasts(pilot))
        assert view(pilot).desk.run == ""
        for key, past in (("p", False), ("full_stop", True), ("backslash", False)):
            if view(pilot).place is None:
                pilot.app.demo.play()  # type: ignore[attr-defined]
                await until(pilot, lambda: view(pilot).place is not None and view(pilot).desk.run == BACKTEST)
            await pilot.press(key)
            assert (pilot.app.bridge.playback is not None) is past  # type: ignore[attr-defined]
        await pilot.press("5", "right_square_bracket")
        screen = pilot.app.screen
        await until(pilot, lambda: "demo history" in str(screen.query_one("#decisions").border_title))
        await pilot.resize_terminal(200, 60)
        await until(pilot, lambda: "Earned" in screen.query_one("#summary", TextPane).as_text())
        assert not screen.query_one("#prices").display, "the desk's chart, which ends months later"


async def test_nothing_plays_where_no_animation_is_wanted(made: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.app.TEXTUAL_ANIMATIONS", "none")
    async with opened(history=True) as pilot:
        await until(pilot, lambda: pilot.app.demo.source is not None)  # type: ignore[attr-defined]
        assert view(pilot).place is None


async def test_it_is_made_beside_the_desk_and_said(running: Running, tmp_path: Path) -> None:
    import backtest_targets
    from fake_desk import FakeDesk

    desk = FakeDesk(tmp_path)
    desk.history = DemoHistory(replace(desk.default_backtest, run="demo-history-1"), False)
    async with running(desk=desk, target=backtest_targets.short) as pilot:
        await pilot.press("tab")
        await until(pilot, lambda: toasts(pilot) == [demo_opening.READY])
        assert view(pilot).place is None and not view(pilot).note
        assert [source.name for source in view(pilot).sources] == ["desk test", "demo history"]
        assert view(pilot).backtests == ()
    async with running(desk=desk, target=backtest_targets.fails) as pilot:
        bar = pilot.app.screen.query_one(StatusBar)
        await until(pilot, lambda: "making the demo's history" in bar.render_line(0).text or bool(toasts(pilot)))
        await until(pilot, lambda: "could not be made: the bars end on 2024-02-01" in "".join(toasts(pilot)))
        assert not view(pilot).note


def test_it_has_sixty_sessions_and_what_is_left_of_an_unfinished_one_is_removed(fresh: Path, now: None) -> None:
    journal = places.run_journal(f"demo-history-{LAST:%Y%m%d}")
    journal.parent.mkdir(parents=True)
    journal.write_bytes(b"half")
    desk = open_desk(Invocation())
    assert desk.history is not None and not desk.history.made and not journal.exists()
    spec: RunSpec = desk.history.spec
    assert (spec.first, spec.last, spec.warm_up_from, spec.preset) == (date(2024, 11, 29), LAST, None, "desk")
    with one_process(places.run_lock(spec.run), ""):
        assert demo_history(Invocation().services()) is None, "another process makes it"


def test_the_history_of_a_desk_that_a_headless_run_opened_ends_before_its_first_session(desk: Path) -> None:
    found = demo_history(Invocation().services())
    assert found is not None and not found.made
    assert (found.spec.last, found.spec.run) == (date(2025, 3, 10), "demo-history-20250310")


def test_a_desk_that_nobody_opened_and_that_never_ran_has_no_history(fresh: Path) -> None:
    assert demo_history(Invocation().services()) is None


@pytest.mark.slow
async def test_a_fresh_home_makes_it_and_plays_it(run: Run, fresh: Path, now: None) -> None:
    async with opened(history=True) as pilot:
        await until(pilot, lambda: "making the demo's history" in view(pilot).note)
        await until(pilot, lambda: view(pilot).place is not None, seconds=300)
        await until(pilot, lambda: view(pilot).place is None)
        assert view(pilot).now is not None and view(pilot).desk.run == ""
    async with opened(history=True) as pilot:
        await until(pilot, lambda: view(pilot).place is not None)
        await pilot.press("n")
        await until(pilot, lambda: view(pilot).desk.session == date(2025, 2, 28))
        assert demo_history(Invocation().services()) is not None


async def test_settings_name_the_symbols_of_a_desk_that_names_none(desk: Path) -> None:
    async with opened() as pilot:
        await until(pilot, lambda: bool(pilot.app.screen.symbol))  # type: ignore[attr-defined]
        await pilot.press("comma")
        await until(pilot, lambda: hasattr(pilot.app.screen, "text"))
        page = str(pilot.app.screen.text)  # type: ignore[attr-defined]
    assert "symbols                 ORVL, BXWD, HLXM, WRNN-USD (none is named: those of the data)\n" in page
