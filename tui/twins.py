"""The command line that does what an action of the app did: shown beside the result, and there to be copied."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, cast

from textual.app import App

if TYPE_CHECKING:
    from tui.desk_app import DeskApp


def report_action(app: App[str], text: str, *arguments: str) -> None:
    """Say what was done, and by which command, without markup."""
    desk_app = cast("DeskApp", app)
    desk_app.last_command = shlex.join(("paperdesk", *desk_app.options, *arguments))
    app.notify(f"{text}\nsame as: {desk_app.last_command}", markup=False, timeout=6)
