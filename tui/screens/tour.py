"""The tour of the desk: six steps over its real screens, which end at the trail of a decision; each a box with a few
words, away from the pane that it points at. They are in `tour.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Offset, Region
from textual.widgets import Static

from engine.program_files import program_text
from tui.desk.last_seen import keep_tour
from tui.screens.dialog import Dialog
from tui.screens.frame import FramedScreen
from tui.settings.keys import pane_bindings
from tui.widgets.clickable import clickable_keys
from tui.widgets.navigation_bars import TimeBar

if TYPE_CHECKING:
    from textual.app import App

    from tui.desk.bridge import Bridge

REWIND, TRAIL = "rewind", "trail"
"""Actions of the desk for a step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step.

    mode: the screen that is shown.
    title, text: what is to be seen there.
    pane: the id of the pane that it points at; empty for none.
    does: REWIND, TRAIL or nothing.
    """

    mode: str
    title: str
    text: str
    pane: str = ""
    does: str = ""


STEPS = tuple(Step(**row) for row in tomllib.loads(program_text(Path(__file__).with_name("tour.toml")))["step"])

FOLLOWS = 0.25
"""Seconds between two looks at where the pane is: it moves with the size of the terminal."""


class TourScreen(Dialog[int]):
    """One step over the screen that it is about. Ends with 1 for the next step, -1 for the one before, 0 to leave."""

    AUTO_FOCUS: ClassVar[str] = ""
    BINDINGS: ClassVar[list[BindingType]] = [*pane_bindings("tour")]

    def __init__(self, step: Step, number: int, count: int, place: Callable[[], Region] | None) -> None:
        """`place` is where the pane is on the screen; None where the whole page is meant."""
        super().__init__()
        self._step, self._number, self._count, self._place = step, number, count, place

    def compose(self) -> ComposeResult:
        """Mount the box, and a mark at the pane."""
        with Vertical(id="step") as box:
            box.border_title = Content(f"Tour {self._number}/{self._count}  {self._step.title}")
            yield Static(self._step.text, markup=False)
            following = "enter ends it" if self._number == self._count else "enter next"
            back = [] if self._number == 1 else [("p back", "answer(-1)")]
            keys = clickable_keys([(following, "answer(1)"), *back, ("esc leave", "answer(0)")])
            yield Static(keys, id="keys", markup=False)
        if self._place is not None:
            yield Static(
                f" {'v' if self.app.has_class('-plain') else '▼'} {self._step.title} ", id="mark", markup=False
            )

    def on_mount(self) -> None:
        """Point at the pane, wherever it goes."""
        self._point()
        self.set_interval(FOLLOWS, self._point)

    def on_resize(self) -> None:
        """Point at the pane where it is now."""
        self.call_after_refresh(self._point)

    def _point(self) -> None:
        if self._place is None:
            return
        region = self._place()
        mark, low = self.query_one("#mark"), region.y + region.height / 2 < self.size.height / 2
        text = len(str(mark.render()))
        if region.height == 1:  # the bar of the past at the foot: above it, where the events leave room
            mark.styles.width = text
            mark.styles.offset = Offset(max(0, self.size.width - text - 2), max(0, region.y - 1))
        else:  # in the border of the pane, over its own title
            mark.styles.width = max(text, region.width - 4)
            mark.styles.offset = Offset(min(region.x + 2, max(0, self.size.width - 30)), max(0, region.y))
        self.set_class(not low, "-above")

    def action_answer(self, by: int) -> None:
        """Go on (1), back (-1), or leave (0)."""
        if by != -1 or self._number > 1:
            self.dismiss(by)


class Tour:
    """The place in the tour; a step's box is a page over the screen that it points at."""

    def __init__(self, app: App[str], bridge: Bridge) -> None:
        self._app, self._bridge = app, bridge
        self._number = 0

    async def begin(self) -> None:
        """Show the first step."""
        await self._show(0)

    async def _show(self, number: int) -> None:
        self._number, step = number, STEPS[number]
        self._to_its_time(step)
        await self._app.switch_mode(step.mode)
        screen = cast("FramedScreen", self._app.screen_stack[0])
        screen.call_after_refresh(self._point, screen, step)

    def _to_its_time(self, step: Step) -> None:
        """Show the moment of a step: the present, or a session before it where it rewinds."""
        bridge = self._bridge
        bridge.to_present()
        if step.does != REWIND:
            return
        if (refused := bridge.to_past()) or bridge.playback is None:
            self._app.notify(refused, markup=False, timeout=4)
            return
        bridge.playback.step_session(-1)

    def _point(self, screen: FramedScreen, step: Step) -> None:

        if step.does == TRAIL:
            self._open_trail()
        elif step.pane:
            screen.focus_pane(step.pane)

        def place() -> Region:
            target = screen.query_one(f"#{step.pane}") if step.pane else screen.query_one(TimeBar)
            return target.region

        shown = None if step.does == TRAIL else place
        self._app.push_screen(TourScreen(step, self._number + 1, len(STEPS), shown), self._answered)

    def _open_trail(self) -> None:
        from tui.screens.trail import TrailScreen

        view = self._bridge.present()
        source = view.sources[0] if view.sources else None
        traded = () if view.market is None else tuple(quote.symbol for quote in view.market.quotes)
        symbol = next(iter((*view.desk.decisions, *traded)), "")
        if source is not None and symbol:
            self._app.push_screen(TrailScreen(source, symbol))

    async def _answered(self, by: int | None) -> None:
        """Go on, or back; the trail of the last step stays open."""
        if STEPS[self._number].does == TRAIL and by == -1:
            self._app.pop_screen()
        if by and 0 <= self._number + by < len(STEPS):
            await self._show(self._number + by)
            return
        keep_tour()
        self._bridge.to_present()
