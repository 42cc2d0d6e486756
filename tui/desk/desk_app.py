"""The app as its screens know it: what they ask of it beyond what any Textual app has."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, cast

from textual.app import App
from textual.worker import Worker, WorkerState

from engine.domain.text import counted
from engine.errors import PaperdeskError
from tui.text.plain_text import one_line

if TYPE_CHECKING:
    from pathlib import Path

    from engine.messages.commands import Command
    from tui.desk.bridge import Bridge
    from tui.desk.demo_opening import DemoOpening
    from tui.set_up.set_up_offer import SetUpOffer
    from tui.settings.app_settings import AppSettings
    from tui.settings.configuration_file import ConfigurationFile
    from tui.settings.invocation import Invocation
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

    invocation: Invocation
    options: Sequence[str]
    last_command: str
    pixels: Pixels
    settings: AppSettings
    set_up: SetUpOffer | None

    def snapshot(self) -> Snapshot:
        """Everything that screens show now."""

    def reopen(self, *, cycle: bool) -> None:
        """End, and start again with the configuration as it is now; with `cycle` a cycle runs as soon as it is open."""

    @property
    def configuration(self) -> ConfigurationFile:
        """The configuration's file."""

    def take_settings(self, settings: AppSettings) -> None:
        """Take the colours and keys of a configuration that was changed just now."""

    def keep_image(self, name: str, image: bytes) -> Path:
        """Write a picture; return its path. Raises OSError."""

    def switch_mode(self, mode: str) -> object:
        """Show another of the screens."""


class ShowsFailures:
    """A screen or widget with workers: what one of them fails with, and did not say itself, is shown. Textual sends the
    state of a worker to the screen or widget that began it, and to no other."""

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Show the exception of a worker."""
        error = event.worker.error
        if event.state is WorkerState.ERROR and error is not None:
            known = isinstance(error, PaperdeskError)
            text = one_line(str(error) if known else f"a bug: {type(error).__name__}: {error}")
            app = event.worker.node.app
            app.notify(text, severity="error", markup=False, timeout=8)
            cast("DeskApp", app).bridge.log_failure(text)


LOW = 12
"""Rows of the lowest terminal that shows commands."""


def report_action(app: App[str], text: str, *arguments: str) -> None:
    """Say what was done, and by which command, without markup, in place of what was said before: `paused` is wrong as
    soon as the pause is over."""
    desk_app = cast("DeskApp", app)
    desk_app.last_command = shlex.join(("paperdesk", *desk_app.options, *arguments))
    app.clear_notifications()
    # A command would hide all of a low terminal; the palette has it.
    cli_equivalent = f"\nsame as: {desk_app.last_command}" if app.size.height >= LOW else ""
    app.notify(f"{text}{cli_equivalent}", markup=False, timeout=6)


def report_answers(app: App[str], commands: Sequence[Command]) -> None:
    """Say which orders were answered, all of them alike, and by which command; of an edit alone there is none."""
    from engine.messages.commands import Approve, CancelOrder, Undo, Veto

    orders = [command.order_id for command in commands if isinstance(command, Approve | Undo | Veto | CancelOrder)]
    count = counted(len(orders), "order")
    match commands:
        case [Approve(), *_]:
            report_action(app, f"{count} approved", "approve", *orders)
        case [Veto(reason=reason), *_]:
            report_action(app, f"{count} vetoed", "veto", *orders, *(("--reason", reason) if reason else ()))
        case [CancelOrder(), *_]:
            report_action(app, "cancellation requested", "cancel", *orders)
        case [Undo(), *_]:
            report_action(app, "last answer undone", "undo", *orders)
