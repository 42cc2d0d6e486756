"""The tour of the desk: six steps over its real screens, which end at the trail of a decision."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from tui.desk.tour_steps import REWIND, STEPS, TRAIL, Step
from tui.desk.visits import keep_tour
from tui.screens.frame import FramedScreen
from tui.widgets.navigation_bars import TimeBar

if TYPE_CHECKING:
    from textual.app import App
    from textual.geometry import Region

    from tui.desk.bridge import Bridge


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
        from tui.screens.tour import TourScreen

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
