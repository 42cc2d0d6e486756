"""Work for test_own_process, which another process imports."""

from __future__ import annotations

import asyncio
import os
import time
from datetime import UTC, datetime
from pathlib import Path

from engine.account.disagreement import BooksDisagree
from engine.messages.events import Noticed, Publish

NOW = datetime(2025, 7, 15, tzinfo=UTC)


async def counts(publish: Publish) -> int:
    """Three events, then the id of its process."""
    for number in range(3):
        publish(Noticed("run", NOW, "info", f"{number}"))
        await asyncio.sleep(0)
    return os.getpid()


async def disagrees(publish: Publish) -> None:
    """An error that is made of more than its line."""
    raise BooksDisagree("the books disagree", [])


async def has_a_bug(publish: Publish) -> None:
    """Anything else that goes wrong."""
    raise ValueError("seven")


async def dies(publish: Publish) -> None:
    """Ends its process."""
    os._exit(9)


async def waits(told: Path, publish: Publish) -> None:
    """Waits until it is cancelled, and writes that down."""
    publish(Noticed("run", NOW, "info", "waiting"))
    try:
        await asyncio.sleep(600)
    finally:
        for _ in range(20):  # as who closes connections and writes down how it ended
            await asyncio.sleep(0.005)
        told.write_text("cancelled")


async def deaf(told: Path, publish: Publish) -> None:
    """Computes, and hears nothing."""
    told.write_text(f"{os.getpid()}")
    publish(Noticed("run", NOW, "info", "computing"))
    time.sleep(600)
