"""The way of an opened app to a place in a record: to its session, then to its screen and symbol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from textual.app import App

from tui.app.deep_link import PARTS, TRAIL, Link
from tui.screens.frame import FramedScreen

if TYPE_CHECKING:
    from tui.desk.desk_app import DeskApp


class Arrival:
    """A place that the app goes to as soon as it can."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._begun = False

    def goes_on(self, app: App[Any]) -> bool:
        """Do what can be done by now; True once the place is shown, or cannot be."""
        desk_app, link = cast("DeskApp", app), self._link
        bridge = desk_app.bridge
        if not self._begun:
            if bridge.present().opened is None:
                return False
            if refused := bridge.to_past(link.source):
                app.notify(refused, markup=False, severity="error")
                return True
            self._begun = True
            assert bridge.playback is not None
            bridge.playback.jump_to(link.session)
            desk_app.switch_mode(PARTS[link.part])
            return False
        playback = bridge.playback
        if playback is None:
            return True  # somebody went back to the present
        if not playback.arrived or playback.place.session is None:
            return bool(playback.trouble)
        screen = app.screen_stack[0]
        if not isinstance(screen, FramedScreen) or not screen.is_mounted:
            return False
        screen.show_view(bridge.snapshot())
        screen.show_symbol(link.symbol)
        if link.part == TRAIL:
            app.call_later(app.run_action, "why", screen)
        return True
