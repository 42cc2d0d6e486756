"""The blocking client behind `await`: one call at a time, each with a time limit."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from connectors.alpaca.failures import NoAnswer
from connectors.alpaca.settings import AlpacaSettings

if TYPE_CHECKING:
    from alpaca.trading.client import TradingClient

    from connectors.alpaca.rest_client import RestClient

T = TypeVar("T")


class AsyncTradingClient:
    """An account's blocking client in an event loop. One instance belongs to one event loop."""

    def __init__(self, settings: AlpacaSettings) -> None:
        self._settings = settings
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
