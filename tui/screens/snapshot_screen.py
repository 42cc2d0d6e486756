"""A screen of the app that shows snapshots of the desk."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual.screen import Screen

from tui.view.snapshot import Snapshot

if TYPE_CHECKING:
    from tui.desk.desk_app import DeskApp


class SnapshotScreen(Screen[None]):
    """A screen that knows its app, and shows snapshots."""

    @property
    def desk_app(self) -> DeskApp:
        """The app, with its bridge."""
        return cast("DeskApp", self.app)

    def show_view(self, view: Snapshot) -> None:
        """Show a snapshot."""
        raise NotImplementedError
