"""Every key of the table is pressed where it works, and the screen answers: a key that nobody tests fails here."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from textual.pilot import Pilot
from textual.screen import ModalScreen

from tests.tui.conftest import opened, until
from tui.app.palette import begin_tour
from tui.screens.frame import FramedScreen
from tui.settings.keys import _TABLE, KEYS, MODES, SCREENS, Key

PANES: dict[str, list[list[str]]] = _TABLE["panes"]

BEFORE: dict[str, Sequence[str]] = {
    "chart.usual": ("plus", "plus"),
    "chart.shorter": ("l",),
    "go.back": ("z",),
    "past.present": ("left_curly_bracket",),
}
"""Keys that are pressed first, where the key does nothing else."""

IN_OTHER_TESTS = {
    "desk.run": "test_app::test_a_cycle_streams_pauses_and_ends_in_signals",
    "desk.run-symbol": "test_run_symbol::test_c_has_the_symbol_that_is_shown_decided_alone",
    "desk.next-session": "commands.test_demo_time::test_r_and_a_headless_run_decide_what_is_due_and_n_and_next_go_on",
    "desk.pause": "test_app::test_a_cycle_streams_pauses_and_ends_in_signals",
    "desk.kill-switch": "test_controls_in_app::test_the_kill_switch_halts_and_resumes_a_desk_that_never_ran",
    "desk.approve": "test_controls_in_app::test_a_and_x_ask_first_and_then_the_order_is_sent_or_ended",
    "desk.veto": "test_controls_in_app::test_a_and_x_ask_first_and_then_the_order_is_sent_or_ended",
    "desk.edit": "test_order_dialog::test_an_order_is_weighed_edited_taken_back_and_vetoed_with_a_reason",
    "desk.undo": "test_order_dialog::test_an_order_is_weighed_edited_taken_back_and_vetoed_with_a_reason",
    "backtest.report": "commands.test_lab_pages::page_of",
    "backtest.start": "test_app::test_a_backtest_runs_beside_and_ends_in_results",
    "go.retry": "test_app::test_a_cycle_that_breaks_is_a_strip_that_can_be_dismissed",
    "go.suspend": "test_terminal::test_it_is_suspended_and_comes_back",
    "go.quit": "test_navigation::test_a_free_desk_is_left_at_once",
}
"""Keys that act on the desk's runs, on orders that wait or on what has failed, and the tests that press them there."""


def state(pilot: Pilot[Any]) -> tuple[object, ...]:
    """All that a key may change: what is drawn below the status bar with its colours, messages, focus, the pages."""
    app = pilot.app
    drawn = [list(strip) for strip in app.screen._compositor.render_strips()[1:]]
    told = [(one.message, one.raised_at) for one in app._notifications]
    return drawn, told, app.current_mode, app.focused and app.focused.id, len(app.screen_stack), app.clipboard


async def back_to(pilot: Pilot[Any], mode: str) -> None:
    """A screen with nothing over it, in the present, with all of its panes."""
    app = pilot.app
    while isinstance(app.screen, ModalScreen):
        app.pop_screen()
    app.bridge.to_present()  # type: ignore[attr-defined]
    app.clear_notifications()
    app.switch_mode(mode)
    await until(pilot, lambda: app.current_mode == mode)
    frame = app.screen
    assert isinstance(frame, FramedScreen)
    await until(pilot, lambda: frame._built)
    if frame._zoomed:
        frame.action_zoom_pane()
    frame.focus_pane(frame.PANES[0])
    await pilot.pause(0)


async def settled(pilot: Pilot[Any]) -> None:
    """Wait until all is read that was begun, and is on the screen."""
    app: Any = pilot.app
    await until(pilot, lambda: all(worker.is_finished for worker in app.workers))
    await until(pilot, lambda: app.bridge.playback is None or app.bridge.playback.arrived)
    for _ in range(2):  # one refresh waits for a key that was pressed just now
        app._refresh_screen()
    await pilot.pause(0)


def pressed(key: Key) -> str:
    """The key that is pressed, as Pilot names it."""
    return key.keys.split(",")[0]


async def test_a_key_changes_the_screen(desk: Path) -> None:
    dead = []
    async with opened() as pilot:
        await until(pilot, lambda: bool(pilot.app.screen.symbol))  # type: ignore[attr-defined]
        for key in (one for one in KEYS if one.id not in IN_OTHER_TESTS):
            mode = home_of(key)
            await settled(pilot)  # a page that takes a while to open comes over this screen, not the next
            await back_to(pilot, mode if not key.id.startswith("screen.") else other_than(mode))
            await pilot.press(*BEFORE.get(key.id, ()))
            await settled(pilot)
            before = state(pilot)
            await pilot.press(pressed(key))
            try:
                await until(pilot, lambda before=before: state(pilot) != before)  # type: ignore[misc]
            except AssertionError:
                dead.append(f"{key.id}: {key.shown} changes nothing on {mode}")
    assert dead == []


def home_of(key: Key) -> str:
    """The screen on which a key is tried: its own for one that goes there, else the first of those where it acts; the
    keys of all screens are spread over them."""
    if key.id.startswith("screen."):
        return key.id.removeprefix("screen.")
    if len(key.screens) < len(MODES):
        return key.screens[0]
    return list(SCREENS)[KEYS.index(key) % len(SCREENS)]


def other_than(mode: str) -> str:
    return "desk" if mode != "desk" else "book"


def test_a_test_presses_the_key() -> None:
    table = {key.id: key for key in KEYS}
    for key_id, test in IN_OTHER_TESTS.items():
        key = table[key_id]
        module, _, name = test.partition("::")
        source = inspect.getsource(getattr(import_module(f"tests.tui.{module}"), name))
        presses = re.findall(r"(?:press|keys)\(([^)]*)\)", source)
        names = [*key.keys.split(","), key.keys.replace("ctrl+", "C-")]  # tmux has names of its own
        assert any(f'"{one}"' in line for one in names for line in presses), f"{name} does not press {key.shown}"


WHERE: dict[str, tuple[Sequence[str], str]] = {
    "table": (("2",), "decisions"),
    "chart": (("1",), "candles"),
    "agents": (("1",), "agents"),
    "text": (("5",), "log"),
    "menu": (("?",), ""),
    "page": (("grave_accent",), ""),
    "trail": (("1", "d"), ""),
    "tour": ((), ""),
}
"""The keys that lead to a pane of each kind, and its id; none for a page over a screen. The palette begins the tour."""

FIRST = {
    "answer(-1)": "action_answer(1)",
    "move(1)": "action_move(-9)",
    "move(-1)": "action_move(1)",
    "edge(-1)": "action_edge(0)",
    "page(1)": "action_page(-9)",
    "edge(True)": "action_edge(False)",
    "scroll_lines(2)": "action_edge(False)",
    "decision(-1)": "action_decision(1)",
    "edge(0)": "action_edge(-1)",
    "page(-1)": "action_page(1)",
    "zoom(0)": "action_zoom(-1)",
    "pan(1)": "action_pan(-1)",
    "newest": "action_pan(-1)",
    "edge(False)": "action_edge(True)",
    "scroll_lines(-2)": "action_edge(True)",
    "point(-1)": "action_point(1)",
    "follow": "action_edge(True)",
}
"""What is done first, where an action leads back."""


async def test_a_key_of_a_pane_changes_it(desk: Path) -> None:
    dead = []
    async with opened((80, 24)) as pilot:
        await until(pilot, lambda: bool(pilot.app.screen.symbol))  # type: ignore[attr-defined]
        for kind, key, does in ((kind, *row[:2]) for kind, rows in PANES.items() for row in rows):
            keys, name = WHERE[kind]
            if kind == "page":  # with few rows the log is longer than its page
                await pilot.resize_terminal(80, 10)
            await back_to(pilot, "desk")
            await settled(pilot)
            if kind == "tour":
                await begin_tour(pilot.app, pilot.app)  # type: ignore[arg-type]
            await pilot.press(*keys)
            await until(pilot, lambda name=name: bool(name) or isinstance(pilot.app.screen, ModalScreen))  # type: ignore[misc]
            await settled(pilot)
            frame = pilot.app.screen
            if name == "log" and not frame.query_one("#log").display:
                await pilot.press("v")
            if isinstance(frame, FramedScreen):
                frame.focus_pane(name)
            pane: Any = frame.query_one(f"#{name}") if name else frame
            if kind == "trail" and int((re.findall(r"fold\((\d+)\)", does) or ["0"])[0]) > len(pane.page.parts):
                continue  # the trail of this decision has fewer parts than there are keys
            if kind == "page":  # one that is not laid out yet has no end to go to
                await until(pilot, lambda frame=frame: frame.query_one("#page").max_scroll_y > 0)  # type: ignore[misc]
            if undo := FIRST.get(does):
                action, _, argument = undo.rstrip(")").partition("(")
                getattr(pane, action)(*([eval(argument)] if argument else []))
            await settled(pilot)
            before = (state(pilot), inside(pane))
            await pilot.press(key.split(",")[0])
            try:
                await until(pilot, lambda before=before, pane=pane: (state(pilot), inside(pane)) != before)  # type: ignore[misc]
            except AssertionError:
                dead.append(f"{key} changes nothing in a {kind}")
    assert dead == []


def inside(pane: Any) -> object:
    """What of a pane is not drawn."""
    return getattr(pane, "_follows", None), getattr(pane, "scroll_offset", None), pane.app.focused
