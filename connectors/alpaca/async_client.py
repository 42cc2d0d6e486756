"""The blocking client behind `await`: one call at a time, each with a time limit, queries retried."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from connectors.alpaca.failures import HttpRefusal, NoAnswer, code_and_message, query_refused, query_unanswered
from connectors.alpaca.settings import AlpacaSettings
from connectors.rate_limited_http import PASSING
from engine.errors import TryAgainLater

if TYPE_CHECKING:
    from alpaca.trading.client import TradingClient

    from connectors.alpaca.rest_client import RestClient

T = TypeVar("T")


class AsyncTradingClient:
    """An account's blocking client in an event loop. One instance belongs to one event loop."""

    def __init__(self, settings: AlpacaSettings, attempts: int, first_pause: float, longest_wait: float) -> None:
        """Set the retries of queries: pauses double from `first_pause`, or follow Retry-After.

        A wait longer than `longest_wait` seconds is left to the user.
        """
        self._settings = settings
        self._attempts = attempts
        self._first_pause = first_pause
        self._longest_wait = longest_wait
        self._client: RestClient | None = None
        self._lock = asyncio.Lock()

    async def send(self, request: Callable[[TradingClient], Any]) -> Any:
        """Send a request once. Raises HttpRefusal, NoAnswer.

        After the settings' timeout NoAnswer too; the connection, on which anything may still arrive, is abandoned.
        """
        settings = self._settings
        async with self._lock:
            client = self._client
            if client is None:
                client = self._client = await _in_thread(lambda: _opened(settings))
            try:
                async with asyncio.timeout(settings.timeout):
                    return await _in_thread(lambda: client.call(request))
            except TimeoutError:
                self._client = None
                raise NoAnswer(f"no answer within {settings.timeout:g} s") from None
            except asyncio.CancelledError:
                self._client = None
                raise

    async def query(self, what: str, request: Callable[[TradingClient], Any], *, may_miss: bool = False) -> Any:
        """Result of a GET, retried after faults; with `may_miss` None where the broker has no such thing.

        Raises CredentialsRefused, TryAgainLater, NetworkError.
        """
        settings, url = self._settings, self._settings.trading_url
        for attempt in count(1):
            pause = self._first_pause * 2 ** (attempt - 1)
            try:
                return await self.send(request)
            except HttpRefusal as refusal:
                # A 404 of anything else on the way says nothing about an order.
                if may_miss and refusal.status == 404 and code_and_message(refusal.text)[0] is not None:
                    return None
                if refusal.wait is not None and refusal.wait > self._longest_wait:
                    raise TryAgainLater(
                        f"{url} asks to wait {refusal.wait:.0f} s (HTTP {refusal.status}): try again then"
                    ) from None
                if refusal.status not in PASSING or attempt == self._attempts:
                    raise query_refused(settings, what, refusal.status, refusal.text) from None
                pause = pause if refusal.wait is None else refusal.wait
            except NoAnswer as fault:
                if attempt == self._attempts:
                    raise query_unanswered(settings, what, fault.problem) from None
            await asyncio.sleep(pause)

    def close(self) -> None:
        """Close the connection; a later call opens a new one."""
        client, self._client = self._client, None
        if client is not None:
            client.close()


def _opened(settings: AlpacaSettings) -> RestClient:
    from connectors.alpaca.rest_client import RestClient

    return RestClient(settings)


async def _in_thread(work: Callable[[], T]) -> T:
    """Result of blocking work in a thread.

    The thread is a daemon: one that hangs does not keep the process alive, as a thread of the loop's own executor
    would.
    """
    result: Future[T] = Future()
    result.set_running_or_notify_cancel()  # a caller that no longer waits does not cancel what runs

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as error:
            result.set_exception(error)

    threading.Thread(target=run, name="alpaca", daemon=True).start()
    return await asyncio.wrap_future(result)
