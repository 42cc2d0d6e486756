"""`paperdesk serve`: the app in a browser, and nothing without the token, from another host name or another origin."""

from __future__ import annotations

import base64
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosedOK, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from tests.conftest import REPO

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
WITHIN = 60.0
"""Seconds after which a wait has failed."""
OPEN = "next session"
"""A hint of a demo desk that is open: one that still opens cannot always be left in time."""


def command(*arguments: str) -> subprocess.Popen[str]:
    code = f"import sys, tui.shell.web_server as server; server.CLOSE_WITHIN = {10 * WITHIN}; "
    code += "from tui.cli import main; main(sys.argv[1:])"
    return subprocess.Popen(
        [sys.executable, "-c", code, "serve", *arguments],
        cwd=REPO,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def served() -> Iterator[httpx.URL]:
    """The address that a server of its own prints; it ends at SIGTERM, without a word, and long before the time that
    its apps have runs out."""
    process = command("--port", "0", "--json")
    assert process.stdout is not None
    try:
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line == "}\n":
                break
        document = json.loads("".join(lines))
        assert document["schema"] == 1
        yield httpx.URL(document["url"])
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=WITHIN)
        assert (process.returncode, out, err) == (0, "", "")
    finally:
        process.kill()
        process.communicate()


def read_until(shows: Callable[[str], bool], receive: Callable[[], bytes]) -> None:
    """Reads what the app paints until that shows something."""
    painted = ""
    while not shows(painted):
        painted += receive().decode(errors="replace")


def closes_well(page: ClientConnection) -> None:
    """Reads a page to its end, which its app has said."""
    with pytest.raises(ConnectionClosedOK):
        read_until(lambda text: False, partial(page.recv, timeout=WITHIN))


def until(holds: Callable[[], Any]) -> None:
    """Polls until something holds."""
    deadline = time.monotonic() + WITHIN
    while not holds():
        assert time.monotonic() < deadline, "it never came about"
        time.sleep(0.05)


def keys(text: str) -> str:
    """A message of the page: keys pressed in its terminal."""
    return json.dumps(["stdin", text])


@pytest.mark.slow
def test_the_app_is_served_to_who_has_the_token_and_from_its_own_address_alone() -> None:
    with ExitStack() as left_open, served() as url:
        token, here = url.params["token"], f"http://127.0.0.1:{url.port}"
        assert url.host == "127.0.0.1" and len(token) >= 40
        with httpx.Client(base_url=here) as http:
            for path in ("/", "/ws", "/static/js/textual.js", "/download/x", "/nothing", f"/ws?token={token}"):
                assert http.get(path).status_code == 403, path
            for wrong in (token[:-1], "", token + "x", "\N{SNOWMAN}"):
                assert http.get("/", params={"token": wrong}).status_code == 403
            for headers in (
                {"Host": f"rebound.example:{url.port}"},
                {"Host": f"127.0.0.1:{url.port + 1}"},
                {"Origin": "http://elsewhere.example"},
                {"Origin": f"https://127.0.0.1:{url.port}"},
                {"Origin": "null"},
            ):
                refused = http.get("/", params={"token": token}, headers=headers)
                assert refused.status_code == 403 and "set-cookie" not in refused.headers, headers
            first = http.get("/", params={"token": token})
            assert first.status_code == 303 and first.headers["location"] == "/"
            kept = first.headers["set-cookie"]
            assert "HttpOnly" in kept and "SameSite=Strict" in kept
            shown = http.get("/")
            assert shown.status_code == 200 and f"ws://127.0.0.1:{url.port}/ws" in shown.text
            assert "https://" not in shown.text and token not in shown.text
            assert "default-src 'self'" in shown.headers["content-security-policy"]
            for part in ("js/textual.js", "css/xterm.css", "fonts/RobotoMono-VariableFont_wght.ttf"):
                assert f"/static/{part}" in shown.text and http.get(f"/static/{part}").status_code == 200
            cookie = {"Cookie": "; ".join(f"{name}={value}" for name, value in http.cookies.items())}
        for arguments, code, message in (
            (("--port", str(url.port)), 78, f"port {url.port} cannot be opened"),
            (("--run", "x"), 2, "--run"),
        ):
            process = command(*arguments)
            out, err = process.communicate(timeout=WITHIN)
            assert (process.returncode, out, err.count("\n")) == (code, "", 1) and message in err
        address = f"ws://127.0.0.1:{url.port}/ws?width=120&height=40"
        for headers, origin in (({}, here), (cookie, "http://elsewhere.example"), ({"Cookie": "paperdesk=x"}, None)):
            with pytest.raises(InvalidStatus, match="403"), connect(address, additional_headers=headers, origin=origin):
                pass
        with connect(address, additional_headers=cookie, origin=here, max_size=None) as page:
            paint = partial(page.recv, timeout=WITHIN)
            read_until(lambda text: "ORVL" in text and "PAPER" in text and OPEN in text, paint)
            page.send(keys("4"))
            read_until(lambda text: "Decides" in text, paint)
            page.send(keys("q"))
            closes_well(page)
        page = left_open.enter_context(connect(address, additional_headers=cookie, origin=here, max_size=None))
        read_until(lambda text: OPEN in text, partial(page.recv, timeout=WITHIN))
        left_open.callback(closes_well, page)  # once the server has ended


@pytest.mark.slow
def test_a_page_says_why_its_app_cannot_open(paperdesk_home: Path) -> None:
    config = paperdesk_home / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("", encoding="utf-8")
    process = command("--port", "0", "--json", "--config", str(config))
    assert process.stdout is not None and process.stderr is not None
    try:
        lines = list(iter(process.stdout.readline, "}\n"))
        url = httpx.URL(json.loads("".join([*lines, "}"]))["url"])
        config.write_text('[app]\ntheme = "pink"\n', encoding="utf-8")
        with httpx.Client(base_url=f"http://127.0.0.1:{url.port}") as http:
            http.get("/", params={"token": url.params["token"]})
            cookie = {"Cookie": "; ".join(f"{name}={value}" for name, value in http.cookies.items())}
        address = f"ws://127.0.0.1:{url.port}/ws?width=120&height=40"
        with connect(address, additional_headers=cookie, max_size=None) as page:
            read_until(
                lambda text: "unknown theme pink" in text and "reload this page" in text,
                partial(page.recv, timeout=WITHIN),
            )
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=WITHIN)
        assert (process.returncode, out) == (0, "") and err.count("unknown theme pink") == 1
        assert "unknown theme pink" in err.splitlines()[-1]
    finally:
        process.kill()
        process.communicate()


class Page:
    """A page in headless Chromium, driven by its DevTools protocol. No name but loopback resolves in it."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._numbers = count(1)
        self.requested: list[str] = []
        """Addresses that the page asked for."""
        self._painted: list[bytes] = []
        for domain in ("Page", "Network", "Runtime"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method and return its result."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while (message := self._receive()).get("id") != number:
            pass
        assert "error" not in message, message
        return dict(message["result"])

    def value(self, expression: str) -> Any:
        """The value of an expression of the page."""
        return self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)[
            "result"
        ].get("value")

    def text(self) -> str:
        """The text of the page."""
        return str(self.value("document.body ? document.body.innerText : ''"))

    def painted(self) -> bytes:
        """The next piece that the app sent to the page's terminal."""
        while not self._painted:
            self._receive()
        return self._painted.pop(0)

    def press(self, key: str) -> None:
        """Press a key."""
        self.call("Input.dispatchKeyEvent", type="keyDown", text=key, key=key)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def _receive(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self._socket.recv(timeout=WITHIN))
        if message.get("method") == "Network.requestWillBeSent":
            self.requested.append(message["params"]["request"]["url"])
        if message.get("method") == "Network.webSocketFrameReceived":
            frame = message["params"]["response"]
            self._painted.append(base64.b64decode(frame["payloadData"]) if frame["opcode"] == 2 else b"")
        return message


@contextmanager
def browser(folder: Path) -> Iterator[Page]:
    """Chromium with one empty page."""
    assert CHROMIUM is not None
    process = subprocess.Popen(
        [
            *(CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--mute-audio"),
            *("--remote-debugging-port=0", f"--user-data-dir={folder}", "--window-size=1280,800"),
            *("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "about:blank"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        port = folder / "DevToolsActivePort"
        until(lambda: port.exists() and "\n" in port.read_text())
        pages = httpx.get(f"http://127.0.0.1:{port.read_text().splitlines()[0]}/json").json()
        address = next(one["webSocketDebuggerUrl"] for one in pages if one["type"] == "page")
        with connect(address, max_size=None) as socket:
            yield Page(socket)
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_a_browser_shows_the_desk_and_takes_keys(tmp_path: Path) -> None:
    with served() as url, browser(tmp_path / "browser") as page:
        page.call("Page.navigate", url=str(url.copy_with(params={})))
        until(lambda: page.text().startswith("403"))
        page.call("Page.navigate", url=str(url))
        read_until(lambda text: "ORVL" in text and "PAPER" in text and OPEN in text, page.painted)
        assert page.value("location.href") == f"http://127.0.0.1:{url.port}/"
        assert page.value("document.cookie") == "", "no script may read the token"
        assert page.value("[...document.fonts].filter(font => font.status == 'loaded').length") >= 1
        page.press("4")
        read_until(lambda text: "Decides" in text, page.painted)
        page.press("q")
        until(lambda: "Open it again" in page.text())
        outside = [one for one in page.requested if not one.startswith((f"http://127.0.0.1:{url.port}/", "data:"))]
        assert outside == []
