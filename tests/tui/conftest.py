"""Apps on a desk of the tests' own."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.screen import Screen
from textual.scroll_view import ScrollView

from engine.settings import places
from tui.app.app import PaperdeskApp
from tui.commands.app import open_desk, run_in_process
from tui.settings.invocation import Invocation
from tui.view.snapshot import Snapshot
from tui.widgets.screen_bars import StatusBar
from tui.widgets.table import Table
from tui.widgets.text_lines import TextLines, TextPane

sys.path.insert(0, str(Path(__file__).parent))

TICK = 1 / 60
"""How soon a screen paints what has changed."""

Running = Callable[..., AbstractAsyncContextManager[Pilot[Any]]]


async def until(pilot: Pilot[Any], holds: Callable[[], bool], seconds: float = 300) -> None:
    """Waits until something holds, a twentieth of a second at a time. The bound is there to end a failing test."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it never came about"
        await pilot.pause(0.05)


async def shown(pilot: Pilot[Any]) -> None:
    """Waits until the screen shows how the engine stands now, and paints the same three times."""
    painted: list[Any] = []
    while len(painted) < 3 or painted[-1] != painted[-2] or painted[-1] != painted[-3] or _to_paint(pilot.app.screen):
        pilot.app.screen_stack[0].on_screen_resume()  # type: ignore[attr-defined]
        await until(pilot, lambda: all(worker.is_finished for worker in pilot.app.workers))
        await pilot.pause(0)
        painted.append(pilot.app.screen._compositor.render_strips())


async def arrived(pilot: Pilot[Any]) -> Snapshot:
    """The snapshot of the place of a record that is wanted, once it was read."""
    playback = pilot.app.bridge.playback  # type: ignore[attr-defined]
    await until(pilot, lambda: playback.arrived)
    found: Snapshot = pilot.app.bridge.snapshot()  # type: ignore[attr-defined]
    return found


def drawn(pilot: Pilot[Any]) -> str:
    """What the screen shows, as lines of text."""
    return "\n".join(strip.text for strip in pilot.app.screen._compositor.render_strips())


def bar(pilot: Pilot[Any]) -> str:
    """The status bar, whatever lies over the screen."""
    return pilot.app.screen_stack[0].query_one(StatusBar).render_line(0).text


def cells(pilot: Pilot[Any], table: str) -> list[list[str]]:
    """The texts of a table of the screen."""
    return [[cell.text for cell in row.cells] for row in pilot.app.screen.query_one(f"#{table}", Table).rows]


def pane_text(pilot: Pilot[Any], pane: str) -> str:
    """The text of a pane of the screen."""
    return pilot.app.screen.query_one(f"#{pane}", TextPane).as_text()


def _to_paint(screen: Screen[Any]) -> bool:
    """True where a screen has something to lay out or to paint, which it does with its next tick, or to wrap."""
    # A text is wrapped piece by piece, and its scroll bar drawn by the whole with the layout after that.
    wraps = any(len(text._starts) < len(text._lines) for text in screen.query(TextLines) if text._width and text.size)
    scrolled = [view for view in screen.query(ScrollView) if view.size and view.show_vertical_scrollbar]
    bars = [(view.vertical_scrollbar.window_virtual_size, view.virtual_size.height) for view in scrolled]
    wraps = wraps or any(drawn != whole for drawn, whole in bars)
    paints = screen._repaint_required or bool(screen._dirty_widgets)
    return screen._layout_required or screen._scroll_required or paints or wraps


@pytest.fixture(scope="session", autouse=True)
def styles_parsed_once() -> Iterator[None]:
    """Apps of this process share the rules that Textual parses from the same style sheets and colours; each has the
    hash that every object has, which Textual writes in Python and asks for a hundred thousand times for a screen."""
    from textual.css import stylesheet
    from textual.css.model import RuleSet

    parse, parsed = stylesheet.parse, dict[Any, Any]()

    def once(scope: str, css: str, read_from: Any, variable_tokens: Any = None, **how: Any) -> Any:
        colours = tuple((name, *(token.value for token in tokens)) for name, tokens in (variable_tokens or {}).items())
        key = (scope, css, read_from, colours, *sorted(how.items()))
        if key not in parsed:
            parsed[key] = list(parse(scope, css, read_from, variable_tokens=variable_tokens, **how))
        return parsed[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stylesheet, "parse", once)
        patch.setattr(RuleSet, "__hash__", object.__hash__)
        yield


@pytest.fixture(scope="session", autouse=True)
def painted_where_it_is_read() -> Iterator[None]:
    """An app without a terminal paints for nobody; what a test reads from the screen is painted then, as it stands."""
    from textual.screen import Screen

    refresh = Screen._compositor_refresh

    def noted(screen: Screen[Any]) -> None:
        # Below a dialog others are painted with it.
        if not screen.app.is_headless or screen is not screen.app.screen or screen.app._background_screens:
            refresh(screen)
            return
        screen._compositor._dirty_regions.clear()
        screen._dirty_widgets.clear()
        screen.app._update_mouse_over(screen)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Screen, "_compositor_refresh", noted)
        yield


@pytest.fixture(scope="session", autouse=True)
def keys_are_answered_at_once() -> Iterator[None]:
    """A key has been answered when the event loop has nothing left to run, nor anything due within a tick. Textual
    waits for the processor to be idle instead: two seconds a key where a thread works beside the app."""

    async def nothing_left(min_sleep: float = 0, max_sleep: float = 0) -> None:
        loop: Any = asyncio.get_running_loop()
        for _ in range(8):
            quiet = 0
            while quiet < 3:
                await asyncio.sleep(0)
                quiet = 0 if loop._ready else quiet + 1
            due = [one.when() for one in loop._scheduled if not one.cancelled()]
            rest = min(due, default=loop.time() + 1) - loop.time()
            if rest > TICK:
                return
            await asyncio.sleep(max(rest, 0))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("textual.app.wait_for_idle", nothing_left)
        patch.setattr("textual.pilot.wait_for_idle", nothing_left)
        yield


@pytest.fixture(scope="session", autouse=True)
def processes_of_equal_priority() -> Iterator[None]:
    """What an app runs beside itself yields the processor to its keys; beside other tests it would wait for them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tui.desk.backtest_process.NICENESS", 0)
        patch.setattr("tui.shell.subcommand.LOWER", 0)
        yield


@pytest.fixture(scope="session", autouse=True)
def cycles_run_within_the_app() -> Iterator[None]:
    """The process that an opened app begins for a cycle would first load what is loaded here: its tests make theirs."""
    from engine.app.desk.notification import run_here

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("engine.app.desk.notification.CycleProcess", lambda open_services: run_here)
        yield


@pytest.fixture
def asking(tmp_path: Path) -> Any:
    """A FakeDesk in mode ask with two orders that wait and one that was sent."""
    from fake_desk import asking_desk

    return asking_desk(tmp_path)


def _bug(app: PaperdeskApp) -> str:
    """What an app that cannot open says of itself where that is a bug; else empty."""
    trouble = app.bridge.snapshot().trouble
    return trouble if trouble.startswith("a bug: ") else ""


def _without_bugs(app: PaperdeskApp) -> None:
    """Fails where the app has said that it has a bug: a worker that breaks ends no app, and no test by itself."""
    assert [line.text for line in app.bridge.snapshot().desk.lines if "a bug: " in line.text] == []


@asynccontextmanager
async def opened(
    size: tuple[int, int] = (120, 40), *, link: Any = None, settings: Any = None, plays: bool = False
) -> AsyncIterator[Pilot[Any]]:
    """Opens the app on the configured desk, at a place where one is given, and waits until that is open. Nothing of a
    first start moves by itself, but with `plays`."""
    invocation = Invocation()
    target = partial(run_in_process, invocation=invocation)

    app = PaperdeskApp(
        partial(open_desk, invocation),
        target,
        images=places.data_dir() / "screenshots",
        link=link,
        settings=settings,
    )
    app._plays = app._plays and plays
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app.bridge.snapshot().opened is not None)
        yield pilot
        app.bridge.stop()
        assert app.bridge.wait(600)
        _without_bugs(app)


@pytest.fixture
def running(tmp_path: Path) -> Running:
    """Runs the app at a size and waits until the desk is open; by default on a FakeDesk without a pause."""
    import backtest_targets
    from fake_desk import FakeDesk, opens

    @asynccontextmanager
    async def run(
        size: tuple[int, int] = (120, 40),
        desk: Any = None,
        target: Any = None,
        plain: bool = False,
        open_desk: Any = None,
        settings: Any = None,
        set_up: Any = None,
        notifications: bool = False,
    ) -> AsyncIterator[Pilot[Any]]:
        given = desk or FakeDesk(tmp_path)
        app = PaperdeskApp(
            open_desk or opens(given),
            target or backtest_targets.short,
            plain=plain,
            images=tmp_path / "images",
            settings=settings,
            set_up=set_up,
        )
        async with app.run_test(size=size, notifications=notifications) as pilot:
            if open_desk is None:
                await until(pilot, lambda: app.bridge.snapshot().opened is not None or _bug(app))
                assert not _bug(app), _bug(app)
                await shown(pilot)
            yield pilot
            app.bridge.stop()
            assert app.bridge.wait(600)
            _without_bugs(app)

    return run
