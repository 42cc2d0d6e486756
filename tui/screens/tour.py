"""The tour of the desk: six steps over its real screens, which end at the trail of a decision; each a box with a few
words, away from the pane that it is about and that has the focus. They are in `tour.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from engine.program_files import program_text
from tui.screens.confirm import Confirmation, ConfirmScreen
from tui.screens.frame import FramedScreen
from tui.widgets.navigation_bars import TimeBar

if TYPE_CHECKING:
    from textual.app import App
    from textual.widget import Widget

    from tui.desk.bridge import Bridge

REWIND, TRAIL = "rewind", "trail"
"""Actions of the desk for a step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step.

    mode: the screen that is shown.
    title, text: what is to be seen there.
    pane: the id of the pane that has the focus; empty for none.
    does: REWIND, TRAIL or nothing.
    """

    mode: str
    title: str
    text: str
    pane: str = ""
    does: str = ""


STEPS = tuple(Step(**row) for row in tomllib.loads(program_text(Path(__file__).with_name("tour.toml")))["step"])


class TourScreen(ConfirmScreen):
    """One step over the screen that it is about, away from its pane. Ends with the key of the next step, or of the one
    before."""

    def __init__(self, number: int, pane: Widget | None) -> None:
        """`pane` is what the step is about; None where the whole page is meant."""
        step, last = STEPS[number], number == len(STEPS) - 1
        keys = (("enter", "ends it" if last else "next"), *((("p", "back"),) if number else ()))
        super().__init__(Confirmation(f"Tour {number + 1}/{len(STEPS)}  {step.title}", step.text, keys, "leave"))
        self.number, self._pane = number, pane

    def on_resize(self) -> None:
        """Keep away from the pane, wherever it is now."""
        self.call_after_refresh(self._keep_away)

    def _keep_away(self) -> None:
        low = self._pane is not None and self._pane.region.center[1] >= self.size.height / 2
        self.set_class(low, "-above")


class Tour:
    """The place in the tour; a step's box is a page over the screen that it is about."""

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
        pane: Widget | None = screen.query_one(f"#{step.pane}") if step.pane else screen.query_one(TimeBar)
        if step.does == TRAIL:
            view, pane = self._bridge.present(), None
            traded = () if view.market is None else tuple(quote.symbol for quote in view.market.quotes)
            screen.open_trail(next(iter((*view.desk.decisions, *traded)), ""))
        elif step.pane:
            screen.focus_pane(step.pane)
        self._app.push_screen(TourScreen(self._number, pane), self._answered)

    async def _answered(self, key: str | None) -> None:
        """Go on, or back; the trail of the last step stays open."""
        by = {"enter": 1, "p": -1}.get(key or "", 0)
        if STEPS[self._number].does == TRAIL and by == -1:
            self._app.pop_screen()
        if by and self._number + by < len(STEPS):
            await self._show(self._number + by)
            return
        self._bridge.to_present()
