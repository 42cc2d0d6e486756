"""The app as its screens know it: what they ask of it beyond what any Textual app has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tui.desk.bridge import Bridge
    from tui.desk.demo_opening import DemoOpening
    from tui.set_up.set_up_offer import SetUpOffer
    from tui.settings.app_settings import AppSettings
    from tui.settings.pixels import Pixels
    from tui.view.snapshot import Snapshot


class DeskApp(Protocol):
    """The app, as its screens know it."""

    @property
    def bridge(self) -> Bridge:
        """The way to the desk."""

    @property
    def demo(self) -> DemoOpening:
        """The opening of a demo desk."""

    options: Sequence[str]
    last_command: str
    pixels: Pixels
    settings: AppSettings
    set_up: SetUpOffer | None

    def snapshot(self) -> Snapshot:
        """Everything that screens show now."""

    def reopen(self, *, cycle: bool) -> None:
        """End, and start again with the configuration as it is now; with `cycle` a cycle runs as soon as it is open."""

    def keep_image(self, name: str, image: bytes) -> Path:
        """Write a picture; return its path. Raises OSError."""

    def switch_mode(self, mode: str) -> object:
        """Show another of the screens."""
