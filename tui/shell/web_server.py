"""The app in a browser: textual-serve's terminal page on loopback, behind a token that every request has to carry."""

from __future__ import annotations

import asyncio
import secrets
import shlex
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from string import Template
from tempfile import NamedTemporaryFile
from typing import ClassVar
from weakref import WeakSet

from aiohttp import web
from textual_serve import server
from textual_serve.app_service import AppService

from engine.errors import ConfigError
from engine.program_files import program_text
from tui.text.plain_text import printable

LOOPBACK = "127.0.0.1"
CLOSE_WITHIN = 3.0
"""Seconds that apps have to end when the server stops and asks them to; an app ends within two."""
REOPEN = "The app has ended: fix the problem, then reload this page."
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


class _App(AppService):
    """An app of a page. What it says as it ends is shown on the page, and here: textual-serve would write it to its own
    terminal, twice where the app could not begin."""

    opened: ClassVar[WeakSet[_App]] = WeakSet()

    async def start(self, width: int, height: int) -> None:
        """Have the app begin, with its standard error in a file."""
        self.opened.add(self)
        with NamedTemporaryFile(delete=False) as said:
            self._said = Path(said.name)
        self.command += f" 2>{shlex.quote(said.name)}"
        await super().start(width, height)

    async def run(self) -> None:
        """Run the app to its end, and close the pipe to it: the server's end would complain of it."""
        await super().run()
        self.stdin.close()
        text = self._said.read_text(encoding="utf-8", errors="replace").strip()
        self._said.unlink()
        if text:
            print(text, file=sys.stderr, flush=True)
            lines = "\r\n".join([*(printable(line) for line in text.splitlines()), "", REOPEN])
            with suppress(ConnectionError, RuntimeError):  # the page was closed before
                await self.remote_write_bytes(f"\r\n{lines}".encode())

    async def end(self) -> None:
        """Have the app end, and its page."""
        await self.stop()
        await self.remote_close()


async def serve(command: Sequence[str], port: int, ready: Callable[[str], None]) -> None:
    """Serve the app that `command` runs on a port of loopback (0: any) until a signal ends it; every page that is
    opened has a process of its own. `ready` gets the address. Raises ConfigError for a port that cannot be opened."""
    token = secrets.token_urlsafe(32)
    server.AppService = _App  # type: ignore[attr-defined]  # it makes them by this name
    guard, apps = Guard(token), server.Server(shlex.join(command), host=LOOPBACK)
    app = web.Application(middlewares=[web.middleware(guard)])
    app.add_routes(
        [
            web.get("/", _page),
            web.get("/ws", apps.handle_websocket),
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
        # A server that shuts down reads nothing more of what pages answer: this comes before.
        if ends := [asyncio.ensure_future(one.end()) for one in _App.opened]:
            await asyncio.wait(ends, timeout=CLOSE_WITHIN)
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
