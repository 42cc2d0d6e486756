"""The command line that does what an action of the app did: shown beside the result, and there to be copied."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from textual.app import App

from engine.domain.text import counted

if TYPE_CHECKING:
    from engine.messages.commands import Command
    from tui.desk.desk_app import DeskApp

LOW = 12
"""Rows of the lowest terminal that shows commands."""


def report_action(app: App[str], text: str, *arguments: str) -> None:
    """Say what was done, and by which command, without markup, in place of what was said before: `paused` is wrong as
    soon as the pause is over."""
    desk_app = cast("DeskApp", app)
    desk_app.last_command = shlex.join(("paperdesk", *desk_app.options, *arguments))
    app.clear_notifications()
    # A command would hide all of a low terminal; the palette has it.
    twin = f"\nsame as: {desk_app.last_command}" if app.size.height >= LOW else ""
    app.notify(f"{text}{twin}", markup=False, timeout=6)


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
            report_action(app, "a cancellation is asked for", "cancel", *orders)
        case [Undo(), *_]:
            report_action(app, "the last answer is taken back", "undo", *orders)
