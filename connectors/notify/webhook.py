"""Notification of a webhook. Its address may hold a secret and is never written anywhere."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from json import dumps
from typing import Any
from urllib.parse import urlsplit

from engine.errors import ConfigError, NotificationFailed

SECONDS = 10.0
PAUSES = (1.0, 4.0)
"""Seconds before the second attempt and the third."""
_PASSING = frozenset({408, 429, 500, 502, 503, 504})


class WebhookNotifier:
    """A Notifier that posts to an address."""

    def __init__(
        self, url: str, seconds: float = SECONDS, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        """Raise ConfigError for an invalid address."""
        parts = urlsplit(url.strip())
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError("notify.webhook is no address: it has to begin with https:// or http://")
        self.name = f"the webhook at {parts.hostname}"
        self._url = url.strip()
        self._seconds = seconds
        self._sleep = sleep

    async def notify(self, summary: Mapping[str, Any]) -> None:
        """Post the summary as JSON, again after a fault that may pass. The recipient may get it twice, with the same
        `run`.

        Raises NotificationFailed.
        """
        import httpx

        body = dumps(summary, allow_nan=False).encode()
        trouble = ""
        async with httpx.AsyncClient(timeout=self._seconds) as client:
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
                    await self._sleep(pause)
        raise NotificationFailed(f"{self.name} {trouble}: check notify.webhook")
