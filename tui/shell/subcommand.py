"""A command of ours in a process of its own, with a lower priority than the app: what it computes starves no key."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

from engine.errors import PaperdeskError
from engine.program_files import own_command

LOWER = 10
"""Steps of niceness."""
ENDS_WITHIN = 1.0
"""Seconds in which a process that was killed is gone."""


class CommandFailed(PaperdeskError):
    """A command did not end with 0; its message is what it said."""


async def run_command(
    options: Sequence[str], *arguments: str, keys: Mapping[str, str] | None = None, answers: Collection[int] = (0,)
) -> Mapping[str, Any]:
    """Run `paperdesk` with global options and arguments, and return the JSON document that it prints. Raises
    CommandFailed for an exit code that is none of its `answers`, and where it prints none. `keys` are added to its
    environment. The process ends with the task that waits for it."""
    process = await asyncio.create_subprocess_exec(
        *(*own_command(), *options, *arguments, "--json"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **(keys or {})},
    )
    if hasattr(os, "setpriority"):
        with suppress(ProcessLookupError):  # it has ended already
            os.setpriority(os.PRIO_PROCESS, process.pid, LOWER)
    try:
        out, said = await process.communicate()
    except asyncio.CancelledError:
        with suppress(ProcessLookupError):
            process.kill()
        with suppress(TimeoutError):  # to the end of its pipes, unless a process of its own still has them
            await asyncio.wait_for(process.communicate(), ENDS_WITHIN)
        raise
    document: Mapping[str, Any] | None = None
    with suppress(ValueError):  # an interpreter that breaks down ends with an answer's code, 1
        document = json.loads(out) if process.returncode in answers else None
    if document is None:
        lines = said.decode(errors="replace").strip().splitlines()
        raise CommandFailed(lines[-1].removeprefix("paperdesk: ") if lines else f"it ended with {process.returncode}")
    return document
