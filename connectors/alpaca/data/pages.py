"""Follows an answer of Alpaca's data service from page to page, and says what a refusal means."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, TypeVar

from connectors.alpaca.settings import AlpacaSettings
from connectors.polite_client import PoliteClient, Refused, json_object
from engine.errors import ConfigError, CredentialsRefused, MissingData, NetworkError, PaperdeskError

_Page = TypeVar("_Page")

SECONDS_BETWEEN = 0.02
"""The pace of requests; how many a minute may have is said by the service, and heeded."""
MOST_PAGES = 20_000
"""Far above any answer that is asked for here: a service that never ends is left."""


class AlpacaPages:
    """GET requests with an account's keys. One instance belongs to one event loop; close it with `aclose`."""

    def __init__(
        self,
        settings: AlpacaSettings,
        *,
        first_pause: float = 0.5,
        longest_wait: float = 90.0,
    ) -> None:
        """The pauses are a PoliteClient's."""
        self._address = settings.data_url
        self._hide_keys = settings.without_keys
        self._client = PoliteClient(
            "Alpaca's data service",
            seconds_between=SECONDS_BETWEEN,
            timeout=settings.timeout,
            headers=settings.headers,
            direct=settings.is_local and settings.data_url == settings.trading_url,
            first_pause=first_pause,
            longest_wait=longest_wait,
        )

    async def aclose(self) -> None:
        """Closes connections."""
        await self._client.aclose()

    async def follow(
        self, path: str, params: Mapping[str, str], read: Callable[[dict[str, Any]], _Page]
    ) -> AsyncIterator[_Page]:
        """What `read` makes of every page of an answer, until there is none left.

        `read` raises ValueError, KeyError or TypeError for a page of another shape, which is then asked for again.
        Raises CredentialsRefused, ConfigError, MissingData, NetworkError, TryAgainLater.
        """

        def checked(body: bytes) -> tuple[_Page, str | None]:
            document = json_object(body)
            token = document.get("next_page_token")
            if token is not None and not isinstance(token, str):
                raise ValueError("next_page_token is no text")
            try:
                return read(document), token
            except (KeyError, TypeError, AttributeError) as error:
                raise ValueError(f"another shape: {type(error).__name__} {error}") from None

        token: str | None = None
        seen: set[str] = set()
        while True:
            asked = {**params, "page_token": token} if token else params
            try:
                found = await self._client.get(f"{self._address}{path}", checked, params=asked)
            except Refused as refusal:
                raise _meant(refusal.status, self._hide_keys(_message(refusal.text)), path) from None
            if found is None:
                raise ConfigError(f"there is no {path} at {self._address}; correct broker.data_url")
            page, token = found
            yield page
            if not token:
                return
            if token in seen or len(seen) == MOST_PAGES:
                raise NetworkError(f"Alpaca's data service never comes to the end of {path}; try again later")
            seen.add(token)


def _meant(status: int, said: str, path: str) -> PaperdeskError:
    if "subscription" in said.lower():
        return ConfigError(
            f'Alpaca does not give this account these prices ({said}): set broker.feed = "iex", or subscribe'
        )
    if status in {401, 403}:
        return CredentialsRefused(
            f"Alpaca's data service refused the keys (HTTP {status}); check APCA_API_KEY_ID and "
            "APCA_API_SECRET_KEY, and that they belong to the paper account"
        )
    if "invalid symbol" in said.lower():
        return MissingData(f"Alpaca knows no such symbol ({said}); correct desk.symbols or --symbols")
    return NetworkError(f"Alpaca's data service refused {path} (HTTP {status}): {said or 'no reason given'}")


def _message(text: str) -> str:
    """The words of an error, on one line."""
    try:
        said = str(json.loads(text)["message"])
    except (ValueError, TypeError, KeyError):
        said = text
    return " ".join(said.split())[:200]
