"""The closes of sessions that nobody ran the desk for, fetched while the app is open."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from engine.errors import PaperdeskError
from tui.plain_text import one_line

if TYPE_CHECKING:
    from engine.app.open_desk import OpenDesk

LOOK_SECONDS = 1.0
"""Seconds between two looks whether a close is missing."""
AGAIN_SECONDS = 60.0
"""Seconds between two attempts to fetch one: at a close its bar may take a while."""


async def bring_newest_closes(
    services: OpenDesk, busy: Callable[[], bool], read: Callable[[], Awaitable[None]], warn: Callable[[str], None]
) -> None:
    """Fetch missing closes until it is cancelled, and have the desk read anew with them; not while it is `busy`, for a
    run fetches what it needs by itself. A failure is warned of once, and tried again."""
    warned = ""
    while True:
        trouble, brought = "", False
        try:
            brought = not busy() and await services.bring_closes()
            if brought:
                await read()
        except PaperdeskError as error:
            trouble = f"the newest closes are not known: {one_line(str(error))}"
        if trouble and trouble != warned:
            warn(trouble)
        warned = trouble
        await asyncio.sleep(AGAIN_SECONDS if brought or trouble else LOOK_SECONDS)
