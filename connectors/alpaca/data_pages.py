"""Paged responses of Alpaca's data service, and the meaning of its refusals."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from connectors.alpaca.settings import AlpacaSettings
from connectors.rate_limited_http import HttpError, RateLimitedClient, json_object
from engine.errors import ConfigError, CredentialsRefused, MissingData, NetworkError, PaperdeskError

_Page = TypeVar("_Page")

SECONDS_BETWEEN = 0.02
"""Least time between requests; the limit per minute is the service's own, from its headers."""
MOST_PAGES = 20_000
"""Limit of pages, far above any answer that is requested here: a response that never ends is abandoned."""


class AlpacaPages:
    """GET requests with an account's keys. One instance belongs to one event loop; close it with `aclose`."""

    def __init__(self, settings: AlpacaSettings, *, first_pause: float = 0.5, longest_wait: float = 90.0) -> None:
        """Set the pauses, which are those of a RateLimitedClient."""
        self._address = settings.data_url
        self._hide_keys = settings.without_keys
        self._client = RateLimitedClient(
            "Alpaca's data service",
            seconds_between=SECONDS_BETWEEN,
            timeout=settings.timeout,
            headers=settings.headers,
            direct=settings.is_local and settings.data_url == settings.trading_url,
            first_pause=first_pause,
            longest_wait=longest_wait,
        )

    async def aclose(self) -> None:
        """Close connections."""
        await self._client.aclose()

    async def follow(
        self, path: str, params: Mapping[str, str], read: Callable[[dict[str, Any]], _Page]
    ) -> AsyncIterator[_Page]:
        """The result of `read` on every page of a response.

        `read` raises ValueError, KeyError or TypeError for a page of another shape, which is then requested again.
        Raises CredentialsRefused, ConfigError, MissingData, NetworkError, TryAgainLater.
        """
        token: str | None = None
        seen: set[str] = set()
        while True:
            query = {**params, "page_token": token} if token else params
            try:
                result = await self._client.get(f"{self._address}{path}", partial(_page, read=read), params=query)
            except HttpError as refusal:
                raise _error_of(refusal.status, self._hide_keys(_message(refusal.text)), path) from None
            if result is None:
                raise ConfigError(f"there is no {path} at {self._address}; correct broker.data_url")
            page, token = result
            yield page
            if not token:
                return
            if token in seen or len(seen) == MOST_PAGES:
                raise NetworkError(f"Alpaca's data service never comes to the end of {path}; try again later")
            seen.add(token)


def _page(body: bytes, read: Callable[[dict[str, Any]], _Page]) -> tuple[_Page, str | None]:
    """A page and the token of the next one. Raises ValueError for another shape."""
    document = json_object(body)
    token = document.get("next_page_token")
    if token is not None and not isinstance(token, str):
        raise ValueError("next_page_token is no text")
    try:
        return read(document), token
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"another shape: {type(error).__name__} {error}") from None


def _error_of(status: int, message: str, path: str) -> PaperdeskError:
    if "subscription" in message.lower():
        return ConfigError(
            f'Alpaca does not give this account these prices ({message}): set broker.feed = "iex", or subscribe'
        )
    if status in {401, 403}:
        return CredentialsRefused(
            f"Alpaca's data service refused the keys (HTTP {status}); check APCA_API_KEY_ID and "
            "APCA_API_SECRET_KEY, and that they belong to the paper account"
        )
    if "invalid symbol" in message.lower():
        return MissingData(f"Alpaca knows no such symbol ({message}); correct desk.symbols or --symbols")
    return NetworkError(f"Alpaca's data service refused {path} (HTTP {status}): {message or 'no reason given'}")


def _message(text: str) -> str:
    """The message of an error, on one line."""
    try:
        message = str(json.loads(text)["message"])
    except (ValueError, TypeError, KeyError):
        message = text
    return " ".join(message.split())[:200]
