"""Notifications of ended runs: a program of the user's own, a webhook, an address that is called after each."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Collection, Mapping, Sequence
from json import dumps
from typing import Any
from urllib.parse import urlsplit

from connectors.rate_limited_http import PASSING
from engine.errors import ConfigError, NotificationFailed

PROGRAM_SECONDS = 30.0
"""Time limit of the program: an ended run waits for it."""
WEBHOOK_SECONDS = 10.0
"""Time limit of one attempt."""
PAUSES = (1.0, 4.0)
"""Seconds before the second attempt and the third."""


class CommandNotifier:
    """A Notifier that starts a program directly, without a shell."""

    def __init__(self, command: Sequence[str], keys: Collection[str] = ()) -> None:
        """Set the program, and the `keys`, environment variables that it does not inherit: it is notified of a run and
        neither trades nor asks models. Raise ConfigError for an empty command."""
        if not command or not command[0].strip():
            raise ConfigError("notify.command names no program: write the program, then its arguments")
        self.name = f"the program {os.path.basename(command[0])}"  # noqa: PTH119 (either system's way of writing)
        self._command = tuple(command)
        self._keys = frozenset(keys)

    async def notify(self, summary: Mapping[str, Any]) -> None:
        """Start the program and wait for its end. Raises NotificationFailed."""
        environment = {name: value for name, value in os.environ.items() if name not in self._keys}
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
            raise NotificationFailed(f"{self.name} was killed after {PROGRAM_SECONDS:.0f} seconds") from None
        if process.returncode:
            detail = " ".join(errors.decode(errors="replace").split())[-200:]
            raise NotificationFailed(
                f"{self.name} ended with status {process.returncode}{f': {detail}' if detail else ''}"
            )


class WebhookNotifier:
    """A Notifier that posts to an address, which may hold a secret and is never written anywhere."""

    method, setting, what = "POST", "notify.webhook", "webhook"

    def __init__(self, url: str) -> None:
        """Raise ConfigError for an invalid address."""
        self._url = url.strip()
        parts = urlsplit(self._url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"{self.setting} is not an address: it must begin with https:// or http://")
        self.name = f"the {self.what} at {parts.hostname}"

    async def notify(self, summary: Mapping[str, Any]) -> None:
        """Send the summary as JSON, again after a fault that may pass. The recipient may get it twice, with the same
        `run`.

        Raises NotificationFailed.
        """
        body = dumps(summary, allow_nan=False).encode() if self.method == "POST" else None
        trouble = await _delivered(self.method, self._url, body)
        if trouble:
            raise NotificationFailed(f"{self.name} {trouble}: check {self.setting}")


class Ping(WebhookNotifier):
    """A Notifier that calls an address and says nothing: a service there raises the alarm when no call comes."""

    method, setting, what = "GET", "notify.ping", "ping address"


async def _delivered(method: str, url: str, body: bytes | None = None) -> str:
    """Send a request until it is taken; return the trouble, empty where it was. A redirect is one: followed, a POST
    would become a GET, and the body or a secret in the address might go to another host."""
    import httpx

    trouble, headers = "", {} if body is None else {"Content-Type": "application/json"}
    async with httpx.AsyncClient(timeout=WEBHOOK_SECONDS, follow_redirects=False) as client:
        for pause in (*PAUSES, None):
            try:
                response = await client.request(method, url, content=body, headers=headers)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                trouble = "gave no answer in time" if isinstance(error, httpx.TimeoutException) else "is not there"
            else:
                if response.is_success:
                    return ""
                redirect = " (a redirect, which is not followed)" if response.has_redirect_location else ""
                trouble = f"answered with {response.status_code}{redirect}"
                if response.status_code not in PASSING:
                    return trouble
            if pause is not None:
                await asyncio.sleep(pause)
    return trouble
