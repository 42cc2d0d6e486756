"""A place of the app as a text, SYMBOL@SESSION#PART, and the way there: to its session, then its screen and symbol."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any, cast

from engine.errors import UsageError
from tui.settings.keys import DESK, MEMORY, WHY

if TYPE_CHECKING:
    from textual.app import App

    from tui.desk.desk_app import DeskApp
    from tui.view.desk_port import Source


TRAIL = "why"
PARTS = {TRAIL: DESK, "desk": DESK, "chart": DESK, "agents": WHY, "memory": MEMORY}
"""Parts by their names in a text, each with the mode of the screen that shows it."""
ACTIONS = {TRAIL: "why", "chart": "zoom_pane"}
"""Actions of the screen that follow, by the part."""


@dataclass(frozen=True, slots=True)
class Link:
    """A place: the decision for a symbol after a session, and a part of the app. `source` is the record that holds the
    decision, None before it is looked up."""

    symbol: str
    session: date
    part: str = TRAIL
    source: Source | None = None

    def within(self, source: Source, symbol: str) -> Link:
        """The place in a record, by the symbol as it stands there."""
        return replace(self, source=source, symbol=symbol)


def link_of(text: str) -> Link:
    """The place that a text names. Raises UsageError that says how one is written."""
    place, _, part = text.partition("#")
    symbol, at, session = place.rpartition("@")
    if not at or not symbol:
        raise UsageError(f"{text}: a place is written SYMBOL@SESSION[#PART], such as NVDA@2026-11-20#chart")
    if part and part not in PARTS:
        raise UsageError(f"{text}: unknown part {part}; available: {', '.join(PARTS)}")
    try:
        return Link(symbol, date.fromisoformat(session), part or TRAIL)
    except ValueError:
        raise UsageError(f"{text}: {session or 'nothing'} is not a date; write it as 2026-11-20") from None


class DeepLink:
    """A place that the app goes to as soon as it can."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._begun = False

    def advance(self, app: App[Any]) -> bool:
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
        from tui.screens.frame import FramedScreen

        screen = app.screen_stack[0]
        if not isinstance(screen, FramedScreen) or not screen.is_mounted:
            return False
        screen.show_view(bridge.snapshot())
        screen.show_symbol(link.symbol)
        if action := ACTIONS.get(link.part):
            app.call_later(app.run_action, action, screen)
        return True
