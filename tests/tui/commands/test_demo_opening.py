"""The first start on the demo desk: its end stands, its film plays and stops, and the tour offers itself after it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from textual.pilot import Pilot

from engine.app.desk import demo_history
from tests.tui.commands.test_demo_time import view
from tests.tui.conftest import cells, drawn, opened, until
from tui.desk import demo_opening
from tui.screens.confirm import TOUR_QUESTION, ConfirmScreen


@pytest.fixture
def short(fresh: Path, recorded_history: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fresh home, whose film is as long but quick."""
    monkeypatch.setattr(demo_opening, "STANDS", 0.1)
    monkeypatch.setattr(demo_opening, "READS", 0.3)
    monkeypatch.setattr("tui.playback.playback.READ", 0.05)


def toasts(pilot: Pilot[Any]) -> list[str]:
    return [str(one.message) for one in pilot.app._notifications]


def stands_at_the_end(pilot: Pilot[Any]) -> bool:
    """True where the desk shows the end of its history, in the present."""
    books = view(pilot).desk.books
    at_last = books is not None and books.session == demo_history.LAST and bool(books.point.portfolio.positions)
    return view(pilot).place is None and at_last


def is_asked(pilot: Pilot[Any]) -> bool:
    return isinstance(pilot.app.screen, ConfirmScreen) and TOUR_QUESTION.title in drawn(pilot)


def begins_nothing_more(pilot: Pilot[Any]) -> bool:
    """True where the opening will play and ask nothing by itself."""
    return pilot.app.demo._stage.name == "OVER"  # type: ignore[attr-defined, no-any-return]


async def test_the_end_stands_then_the_film_stops_twice_and_hands_over_the_same_desk(short: None) -> None:
    async with opened(plays=True) as pilot:
        await until(pilot, lambda: stands_at_the_end(pilot))
        before = view(pilot).desk.books
        await until(pilot, lambda: view(pilot).place is not None and bool(view(pilot).place.speed))  # type: ignore[union-attr]
        stops, together = list[str](), list[bool]()

        def is_over() -> bool:
            together.append(view(pilot).place is not None and is_asked(pilot))
            told = [text for text in toasts(pilot) if "is bought" in text or "at a loss" in text]
            if told and told[-1] not in stops and view(pilot).place is not None:
                stops.append(told[-1])
                assert not view(pilot).place.speed and pilot.app.screen.symbol in told[-1]  # type: ignore[union-attr, attr-defined]
            return is_asked(pilot)

        await until(pilot, is_over)
        assert len(stops) == 2 and not any(together), "never the film and the tour at once"
        assert stands_at_the_end(pilot) and view(pilot).desk.books == before
        await pilot.press("y")
        await until(pilot, lambda: "1/6" in drawn(pilot) or "1 of 6" in drawn(pilot))
    async with opened(plays=True) as pilot:
        await until(pilot, lambda: stands_at_the_end(pilot))
        await until(pilot, lambda: begins_nothing_more(pilot))
        assert stands_at_the_end(pilot) and not is_asked(pilot), "once"


@pytest.mark.parametrize("key", ["tab", *(pytest.param(key, marks=pytest.mark.slow) for key in "n5")])
async def test_any_key_takes_over(short: None, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setattr("tui.playback.playback.READ", 60.0)
    async with opened(plays=True) as pilot:
        await until(pilot, lambda: view(pilot).place is not None and bool(view(pilot).place.speed))  # type: ignore[union-attr]
        await pilot.press(key)
        await until(pilot, lambda: view(pilot).place is None and begins_nothing_more(pilot))
        assert ["same as" in text for text in toasts(pilot)] == [True] * (key == "n"), "nothing of the film is left"
        assert not is_asked(pilot), "nobody's keys are taken"
        if key == "n":
            await until(pilot, lambda: view(pilot).desk.session == demo_history.DUE and not view(pilot).busy)
        assert begins_nothing_more(pilot) and view(pilot).place is None


async def test_a_key_before_it_keeps_it_from_playing(short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_opening, "STANDS", 600.0)
    async with opened(plays=True) as pilot:
        await until(pilot, lambda: stands_at_the_end(pilot))
        await pilot.press("tab")
        await until(pilot, lambda: begins_nothing_more(pilot))
        assert view(pilot).place is None and not is_asked(pilot)


async def test_the_keys_of_the_past_go_on_in_the_film(short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.playback.playback.READ", 60.0)
    async with opened(plays=True) as pilot:
        await until(pilot, lambda: view(pilot).place is not None and bool(view(pilot).place.speed))  # type: ignore[union-attr]
        await pilot.press("full_stop")
        await until(pilot, lambda: view(pilot).place is not None and not view(pilot).place.speed)  # type: ignore[union-attr]
        await pilot.press("backslash")
        await until(pilot, lambda: stands_at_the_end(pilot))


async def test_a_session_takes_two_to_three_seconds_at_the_speed_of_reading(
    fresh: Path, recorded_history: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = [1000.0]
    monkeypatch.setattr("tui.playback.playback.time", SimpleNamespace(monotonic=lambda: times[-1]))
    async with opened() as pilot:
        await until(pilot, lambda: stands_at_the_end(pilot))
        await pilot.press("left_curly_bracket", "left_curly_bracket")
        playback = pilot.app.bridge.playback  # type: ignore[attr-defined]
        await until(pilot, lambda: playback.ended_session is not None and not playback.at_end)
        start, began = playback.ended_session, times[-1]
        await pilot.press("full_stop")
        while playback.ended_session in (None, start):
            shown = view(pilot).place
            times.append(times[-1] + 0.3)
            playback.play_on(shown)
            await until(pilot, lambda: playback.arrived)
        assert 2 <= times[-1] - began <= 3.2 and playback.place.speed == 1


async def test_nothing_plays_where_no_animation_is_wanted(short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.app.app.TEXTUAL_ANIMATIONS", "none")
    async with opened(plays=True) as pilot:
        await until(pilot, lambda: stands_at_the_end(pilot))
        await until(pilot, lambda: begins_nothing_more(pilot))
        assert view(pilot).place is None and not is_asked(pilot)


async def test_a_desk_that_begins_empty_is_offered_the_tour_alone(fresh: Path) -> None:
    async with opened(plays=True) as pilot:
        await until(pilot, lambda: is_asked(pilot))
        assert view(pilot).place is None


async def test_settings_name_the_symbols_of_a_desk_that_names_none(desk: Path) -> None:
    async with opened() as pilot:
        await until(pilot, lambda: bool(pilot.app.screen.symbol))  # type: ignore[attr-defined]
        await pilot.press("comma")
        await until(pilot, lambda: len(pilot.app.screen_stack) == 2 and bool(cells(pilot, "settings")))
        assert ["desk.symbols", "those of the data: ORVL, BXWD, HLXM, WRNN-USD", ""] in cells(pilot, "settings")
