"""The app in a browser: textual-serve's terminal page on loopback, behind a token that every request has to carry."""

from __future__ import annotations

import asyncio
import secrets
import shlex
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from string import Template
from typing import ClassVar

from aiohttp import web
from textual_serve import server
from textual_serve.app_service import AppService

from engine.errors import ConfigError
from engine.program_files import program_text
from tui.plain_text import printable

LOOPBACK = "127.0.0.1"
CLOSE_WITHIN = 3.0
"""Seconds that apps have to end when the server stops and asks them to; an app ends within two."""
REOPEN = "The app has ended: once that is mended, reload this page to open it again."
PAGE = Path(__file__).with_name("web_page.html")
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Guard:
    """Middleware that answers a request only if its host (and its origin, where it states one) is this server on
    loopback, which a page of another site cannot say, not even under a name of its own that resolves to loopback; and
    if it carries the token: as `?token=` in the address of the page, which a cookie then replaces, or as that cookie.
    """

    def __init__(self, token: str) -> None:
        self._token = token
        self.port = 0
        """The port of the server; nobody can ask before that is known."""

    async def __call__(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer a request, or raise HTTPForbidden."""
        hosts = {f"{LOOPBACK}:{self.port}", f"localhost:{self.port}"}
        origin = request.headers.get("Origin")
        if request.host not in hosts or (origin is not None and origin.removeprefix("http://") not in hosts):
            raise web.HTTPForbidden(text="403: this page is served to its own address on this machine alone\n")
        cookie = f"paperdesk-{self.port}"  # browsers send cookies to all ports of a host
        if self._is_token(request.cookies.get(cookie, "")):
            return await handler(request)
        if request.path == "/" and self._is_token(request.query.get("token", "")):
            response = web.HTTPSeeOther("/")  # the token leaves the address, and with it the history
            response.set_cookie(cookie, self._token, httponly=True, samesite="Strict")
            raise response
        raise web.HTTPForbidden(text="403: open the address that `paperdesk serve` printed, with its token\n")

    def _is_token(self, text: str) -> bool:
        return secrets.compare_digest(text.encode(errors="replace"), self._token.encode())


class _Said(asyncio.StreamReader):
    """The standard error of an app, which is kept here: textual-serve would write it to its own terminal, twice where
    the app could not begin."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        super().__init__()
        self._reader = reader
        self.text = ""

    async def read(self, n: int = -1) -> bytes:
        """Wait for the end, and return nothing."""
        self.text = (await self._reader.read()).decode(errors="replace").strip()
        return b""


class _App(AppService):
    """An app of a page. Its process has ended, and the pipes to it are closed, once it is stopped: what is still open
    when the server ends would complain of that. What it says as it ends is shown on the page, and here.

    ending: the ends of apps that are not over. They go on where the wait for one is cut short, as by the server's end
        just after that of a page.
    """

    ending: ClassVar[set[asyncio.Future[None]]] = set()
    _said: _Said | None = None

    async def stop(self) -> None:
        """Have the app end, and wait until it has."""
        end = asyncio.ensure_future(self._stop())
        self.ending.add(end)
        end.add_done_callback(self.ending.discard)
        await asyncio.shield(end)

    async def _open_app_process(self, width: int = 80, height: int = 24) -> Process:
        process = await super()._open_app_process(width, height)
        assert process.stderr is not None
        process.stderr = self._said = _Said(process.stderr)
        return process

    async def run(self) -> None:
        """Run the app to its end."""
        await super().run()
        if self._process is not None and self._said is not None:
            await self._process.wait()
            if text := self._said.text:
                print(text, file=sys.stderr, flush=True)
                lines = "\r\n".join([*(printable(line) for line in text.splitlines()), "", REOPEN])
                with suppress(ConnectionError, RuntimeError):  # the page was closed before
                    await self.remote_write_bytes(f"\r\n{lines}".encode())

    async def _stop(self) -> None:
        await super().stop()
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            await self._process.wait()
            with suppress(ConnectionError):  # the app was first
                await self._process.stdin.wait_closed()


class Terminals:
    """Handler of the websockets of open pages, each of which has an app; the server's end is the end of all of them."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._open: set[asyncio.Task[web.StreamResponse]] = set()

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        """Serve a page until it is closed, its app ends, or the server does."""
        page = asyncio.ensure_future(self._handler(request))
        self._open.add(page)
        try:
            return await page
        finally:
            self._open.discard(page)

    async def end(self) -> None:
        """Have every app end, and wait for that. A server that shuts down reads nothing more of what pages answer: this
        comes before."""
        for page in self._open:
            page.cancel()
        for tasks in (self._open, _App.ending):
            if tasks:
                await asyncio.wait(tasks, timeout=CLOSE_WITHIN)


async def serve(command: Sequence[str], port: int, ready: Callable[[str], None]) -> None:
    """Serve the app that `command` runs on a port of loopback (0: any) until a signal ends it; every page that is
    opened has a process of its own. `ready` gets the address. Raises ConfigError for a port that cannot be opened."""
    token = secrets.token_urlsafe(32)
    server.AppService = _App  # type: ignore[attr-defined]  # it makes them by this name
    guard, apps = Guard(token), server.Server(shlex.join(command), host=LOOPBACK)
    terminals = Terminals(apps.handle_websocket)
    app = web.Application(middlewares=[web.middleware(guard)])
    app.add_routes(
        [
            web.get("/", _page),
            web.get("/ws", terminals),
            web.get("/download/{key}", apps.handle_download),
            web.static("/static", apps.statics_path),
        ]
    )
    ended = asyncio.Event()
    for number in ENDING:
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=CLOSE_WITHIN)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, LOOPBACK, port).start()
        except OSError as error:
            raise ConfigError(f"port {port} cannot be opened ({error.strerror}): choose another --port") from None
        guard.port = runner.addresses[0][1]
        ready(f"http://{LOOPBACK}:{guard.port}/?token={token}")
        await ended.wait()
    finally:
        await terminals.end()
        await runner.cleanup()


async def _page(request: web.Request) -> web.StreamResponse:
    """The page with the terminal, which loads nothing from elsewhere."""
    nonce = secrets.token_urlsafe()
    policy = (
        f"default-src 'self'; script-src 'self' 'nonce-{nonce}'; style-src 'self' 'unsafe-inline'; "
        f"img-src 'self' data:; connect-src 'self' ws://{request.host}; frame-ancestors 'none'"
    )
    headers = {"Content-Security-Policy": policy, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
    text = Template(program_text(PAGE)).substitute(host=request.host, nonce=nonce)
    return web.Response(text=text, content_type="text/html", headers=headers)
