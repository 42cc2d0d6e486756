"""The sandbox's broker as a server on 127.0.0.1, in a running loop or in a thread of its own."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from datetime import timedelta
from typing import Any

from connectors.sandbox.http_server import LOOPBACK, Answer, Connection, HttpServer
from connectors.sandbox.local_broker import LocalBroker, SandboxSettings, broken_answer, make_request
from connectors.sandbox.market import Load
from connectors.sandbox.protocol import ApiError, Request
from engine.errors import ConfigError, PaperdeskError

_LOG = logging.getLogger("paperdesk.sandbox")
_TICK = 0.2
"""Seconds between two steps of a running clock."""


class SandboxServer(LocalBroker):
    """A server: `await start()`, `await stop()` in a running loop; elsewhere a context manager that runs in a
    thread."""

    def __init__(self, load: Load, settings: SandboxSettings) -> None:
        """Take the arguments of a LocalBroker."""
        super().__init__(load, settings)
        self.port = 0
        self._http = HttpServer(self._respond, self._upgrade)
        self._loop: asyncio.AbstractEventLoop | None = None
        """The loop of the thread, where there is one."""

    @property
    def url(self) -> str:
        """The base URL of trading and of data."""
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def stream_url(self) -> str:
        """The base URL of the websockets: add `/stream`, `/v2/iex`, `/v1beta3/crypto/us` or `/v1beta1/news`."""
        return f"ws://{LOOPBACK}:{self.port}"

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment variables that point a client here."""
        return {
            "APCA_API_BASE_URL": self.url,
            "APCA_API_DATA_URL": self.url,
            "APCA_API_KEY_ID": self.settings.key,
            "APCA_API_SECRET_KEY": self.settings.secret,
        }

    async def start(self) -> None:
        """Open books and market and start listening. Raises as `open`, and ConfigError for a port in use."""
        await self.open()
        try:
            self.port = await self._http.start(self.settings.port)
        except OSError as error:
            self.close()
            raise ConfigError(f"port {self.settings.port} cannot be opened ({error}): choose another --port") from None
        self._runner = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """End all connections and close the books."""
        self._runner.cancel()
        await asyncio.gather(self._runner, return_exceptions=True)
        await self._http.stop()
        self.close()

    def __enter__(self) -> SandboxServer:
        started: Future[None] = Future()

        async def live() -> None:
            self._loop, self._stopped = asyncio.get_running_loop(), asyncio.Event()
            try:
                await self.start()
            except BaseException as error:
                started.set_exception(error)
                return
            started.set_result(None)
            await self._stopped.wait()
            await self.stop()

        self._thread = threading.Thread(target=lambda: asyncio.run(live()), name="sandbox", daemon=True)
        self._thread.start()
        started.result()
        return self

    def __exit__(self, *error: object) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stopped.set)
            self._thread.join()
            self._loop = None

    def control_request(self, method: str, path: str, document: Any = None) -> Any:
        """Response document of a LocalBroker's own request, from any thread but the server's own."""
        if self._loop is None:
            return super().control_request(method, path, document)
        request = make_request(method, path, document)

        async def answer() -> Any:
            await self.prepare(request)
            return self.router.answer(request)[1]

        return asyncio.run_coroutine_threadsafe(answer(), self._loop).result()

    async def _respond(self, request: Request) -> Answer:
        with suppress(ApiError, PaperdeskError):  # the answer has the same error
            await self.prepare(request)
        return self.answer(request)

    async def _upgrade(self, request: Request, connection: Connection) -> None:
        fault = self.match_fault(request)
        if fault is None or fault.kind == "wrong_key":
            await self.streams.serve(request, connection, keys_work=fault is None)
        else:
            await connection.answer(broken_answer(fault), request.method)

    async def _run(self) -> None:
        """Advance a running clock."""
        clock = asyncio.get_running_loop().time
        before = clock()
        while True:
            await asyncio.sleep(_TICK)
            now = clock()
            passed, before = now - before, now
            if not self.control.speed:
                continue
            target = self.exchange.now + timedelta(seconds=passed * self.control.speed)
            try:
                await self.load_until(target)
                self.exchange.advance(target)
            except (ApiError, PaperdeskError) as error:
                _LOG.warning("the clock stops: %s", error)
                self.control.set_speed(0.0)
