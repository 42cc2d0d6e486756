"""Commands that open the app where a document speaks of something."""

from __future__ import annotations

from collections.abc import Mapping
from shlex import join
from typing import Any


def open_command(decision: Mapping[str, Any], *, run: str | None = None, desk: str | None = None) -> str:
    """The command that opens the app at a decision's trail, in a backtest by its id or in a desk by its name."""
    named = (("--run", run), ("--desk", desk))
    options = [text for flag, value in named if value is not None for text in (flag, value)]
    return join(["paperdesk", "open", f"{decision['symbol']}@{decision['session']}", *options])
