"""Notifications of ended runs: a program of the user's own, a webhook."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Mapping, Sequence
from json import dumps
from typing import Any
from urllib.parse import urlsplit

from engine.errors import ConfigError, NotificationFailed

PROGRAM_SECONDS = 30.0
"""Time limit of the program: an ended run waits for it."""
KEYS = frozenset({"APCA_API_KEY_ID", "APCA_API_SECRET_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "FRED_API_KEY"})
"""Variables that the program does not inherit: it is notified of a run and trades nothing."""
WEBHOOK_SECONDS = 10.0
"""Time limit of one attempt."""
PAUSES = (1.0, 4.0)
"""Seconds before the second attempt and the third."""
_PASSING = frozenset({408, 429, 500, 502, 503, 504})


class CommandNotifier:
    """A Notifier that starts a program directly, without a shell."""

    def __init__(self, command: Sequence[str]) -> None:
        """Raise ConfigError for an empty command."""
        if not command or not command[0].strip():
            raise ConfigError("notify.command names no program: write the program, then its arguments")
        self.name = f"the program {os.path.basename(command[0])}"  # noqa: PTH119 (either system's way of writing)
        self._command = tuple(command)

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
            async with asyncio.timeout(PROGRAM_SECONDS):
                _, errors = await process.communicate(dumps(summary, allow_nan=False).encode())
        except TimeoutError:
            process.kill()
            await process.wait()
            raise NotificationFailed(f"{self.name} was ended after {PROGRAM_SECONDS:.0f} seconds") from None
        if process.returncode:
            detail = " ".join(errors.decode(errors="replace").split())[-200:]
            raise NotificationFailed(
                f"{self.name} ended with status {process.returncode}{f': {detail}' if detail else ''}"
            )


class WebhookNotifier:
    """A Notifier that posts to an address, which may hold a secret and is never written anywhere."""

    def __init__(self, url: str) -> None:
        """Raise ConfigError for an invalid address."""
        parts = urlsplit(url.strip())
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError("notify.webhook is no address: it has to begin with https:// or http://")
        self.name = f"the webhook at {parts.hostname}"
        self._url = url.strip()

    async def notify(self, summary: Mapping[str, Any]) -> None:
        """Post the summary as JSON, again after a fault that may pass. The recipient may get it twice, with the same
        `run`.

        Raises NotificationFailed.
        """
        import httpx

        body = dumps(summary, allow_nan=False).encode()
        trouble = ""
        async with httpx.AsyncClient(timeout=WEBHOOK_SECONDS) as client:
            for pause in (*PAUSES, None):
                try:
                    response = await client.post(self._url, content=body, headers={"Content-Type": "application/json"})
                except (httpx.HTTPError, httpx.InvalidURL) as error:
                    trouble = "gave no answer in time" if isinstance(error, httpx.TimeoutException) else "is not there"
                else:
                    if response.status_code < 400:
                        return
                    trouble = f"answered with {response.status_code}"
                    if response.status_code not in _PASSING:
                        break
                if pause is not None:
                    await asyncio.sleep(pause)
        raise NotificationFailed(f"{self.name} {trouble}: check notify.webhook")
