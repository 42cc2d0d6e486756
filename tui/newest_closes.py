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
"""Seconds until the second attempt to fetch one, for its bar may take a while; after each that brought nothing twice as
long, up to LONGEST_SECONDS, for a symbol that is halted has none."""
LONGEST_SECONDS = 600.0


async def bring_newest_closes(
    services: OpenDesk, busy: Callable[[], bool], read: Callable[[], Awaitable[None]], warn: Callable[[str], None]
) -> None:
    """Fetch missing closes until it is cancelled, and have the desk read anew with them; not while it is `busy`, for a
    run fetches what it needs by itself. A failure is warned of once, and tried again."""
    warned, again = "", AGAIN_SECONDS
    while True:
        trouble, added = "", None
        try:
            added = None if busy() else await services.bring_closes()
            if added:
                await read()
        except (PaperdeskError, OSError) as error:
            trouble = f"the newest closes are not known: {one_line(str(error))}"
        if trouble and trouble != warned:
            warn(trouble)
        warned = trouble
        if added is None and not trouble:
            again = AGAIN_SECONDS
            await asyncio.sleep(LOOK_SECONDS)
        else:
            await asyncio.sleep(again)
            again = AGAIN_SECONDS if added else min(LONGEST_SECONDS, 2 * again)
