"""The keys by which every screen goes through a recorded history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on

from tui.screens.snapshot_screen import SnapshotScreen
from tui.view.desk_port import Source
from tui.widgets.navigation_bars import TimeBar

if TYPE_CHECKING:
    from tui.playback.playback import Playback


class PastKeys(SnapshotScreen):
    """A screen that shows the past of a record, and goes back to the present."""

    def _in_past(self) -> Playback | None:
        """The playback, which begins here where the present was shown, or another record than this screen's that does
        not play; None where there is no history yet."""
        bridge, source = self.desk_app.bridge, self.past_source()
        if (bridge.playback is None or self._is_other(bridge.playback, source)) and (refused := bridge.to_past(source)):
            self.notify(refused, markup=False, timeout=3)
            return None
        return bridge.playback

    @staticmethod
    def _is_other(playback: Playback, source: Source | None) -> bool:
        return source is not None and playback.source.journal != source.journal and not playback.place.speed

    def past_source(self) -> Source | None:
        """The record that goes with this screen; None for the desk's."""
        return None

    def action_past_step(self, by: int) -> None:
        """Go by one event; while it plays, faster or slower."""
        if playback := self._in_past():
            playback.step(by)

    def action_past_session(self, by: int) -> None:
        """Go by one session."""
        if playback := self._in_past():
            playback.step_session(by)

    def action_past_play(self) -> None:
        """Play the record, or stop."""
        if playback := self._in_past():
            playback.play()

    def action_past_date(self) -> None:
        """Ask for a session, and go to it."""
        from tui.screens.ask import AskScreen, session_of

        def answered(text: str | None) -> None:
            if text and (playback := self._in_past()):
                playback.jump_to(session_of(text))

        self.app.push_screen(AskScreen("Go to a session", "YYYY-MM-DD", check=session_of), answered)

    def action_present(self) -> None:
        """Go back to the present."""
        self.desk_app.bridge.to_present()
        self.show_view(self.desk_app.snapshot())

    @on(TimeBar.Chosen)
    def _track_clicked(self, event: TimeBar.Chosen) -> None:
        self.jump_to_part(event.part)

    def jump_to_part(self, part: float) -> None:
        """Go to a part of the record that is shown, between 0 and 1."""
        if playback := self.desk_app.bridge.playback:
            playback.jump(part)
