"""Notification of a program of the user's own, on its standard input."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Mapping, Sequence
from json import dumps
from typing import Any

from engine.errors import ConfigError, NotificationFailed

SECONDS = 30.0
"""Time limit of the program: an ended run waits for it."""
KEYS = frozenset({"APCA_API_KEY_ID", "APCA_API_SECRET_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "FRED_API_KEY"})
"""Variables that the program does not inherit: it is notified of a run and trades nothing."""


class CommandNotifier:
    """A Notifier that starts a program directly, without a shell."""

    def __init__(self, command: Sequence[str], seconds: float = SECONDS) -> None:
        """Raise ConfigError for an empty command."""
        if not command or not command[0].strip():
            raise ConfigError("notify.command names no program: write the program, then its arguments")
        self.name = f"the program {os.path.basename(command[0])}"  # noqa: PTH119 (either system's way of writing)
        self._command = tuple(command)
        self._seconds = seconds

    async def notify(self, summary: Mapping[str, Any]) -> None:
        """Start the program and wait for its end. Raises NotificationFailed."""
        environment = {name: value for name, value in os.environ.items() if name not in KEYS}
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=environment,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise NotificationFailed(f"{self.name} cannot be started ({reason}): correct notify.command") from None
        try:
            async with asyncio.timeout(self._seconds):
                _, errors = await process.communicate(dumps(summary, allow_nan=False).encode())
        except TimeoutError:
            process.kill()
            await process.wait()
            raise NotificationFailed(f"{self.name} was ended after {self._seconds:.0f} seconds") from None
        if process.returncode:
            detail = " ".join(errors.decode(errors="replace").split())[-200:]
            raise NotificationFailed(
                f"{self.name} ended with status {process.returncode}{f': {detail}' if detail else ''}"
            )
