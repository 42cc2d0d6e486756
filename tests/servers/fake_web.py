"""A web service on loopback that answers requests and plays faults before it does."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True, kw_only=True)
class Page:
    """A reply. `cut` sends half of the body that it announces; `slow` sends nothing until the server closes, `drip`
    a byte at a time, and never comes to the end."""

    body: bytes = b""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str = "application/json"
    cut: bool = False
    slow: bool = False
    drip: bool = False


@dataclass(frozen=True)
class Asked:
    """A request as it came."""

    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    method: str = "GET"
    body: bytes = b""


Answer = Callable[[Asked], Page]


@dataclass
class FakeWeb:
    """Plays `faults` one after the other, then answers. `asked` holds every request, faults included; a fault with a
    path waits for a request of that path's ending."""

    answer: Answer
    faults: deque[tuple[str, Page]] = field(default_factory=deque)
    asked: list[Asked] = field(default_factory=list)
    port: int = 0

    def __post_init__(self) -> None:
        self.lock = threading.Lock()
        self.closing = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def paths(self) -> list[str]:
        """Every path that was asked for, in order."""
        return [one.path for one in self.asked]

    def fail(self, *pages: Page, at: str = "") -> None:
        """Plays these before the true answers, to requests whose path ends so."""
        self.faults.extend((at, page) for page in pages)

    def next_page(self, asked: Asked) -> Page:
        with self.lock:
            self.asked.append(asked)
            if self.faults and asked.path.endswith(self.faults[0][0]):
                return self.faults.popleft()[1]
        return self.answer(asked)


@contextmanager
def fake_web(answer: Answer) -> Iterator[FakeWeb]:
    """The server, running on a free port of loopback."""
    state = FakeWeb(answer)

    class Handler(_Handler):
        web = state

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.005}, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        state.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    web: FakeWeb

    def log_message(self, *args: object) -> None:
        pass

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers.get("content-length", 0))))

    def do_GET(self) -> None:
        self._answer()

    do_DELETE = do_GET

    def _answer(self, body: bytes = b"") -> None:
        parts = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(parts.path, dict(parse_qsl(parts.query)), headers, self.command, body)
        page = self.web.next_page(asked)
        if page.slow:
            self.web.closing.wait(30)
            self.close_connection = True
            return
        self.send_response(page.status)
        self.send_header("content-type", page.content_type)
        self.send_header("content-length", str(10**6 if page.drip else len(page.body)))
        for name, value in page.headers:
            self.send_header(name, value)
        self.end_headers()
        if page.drip:
            self.close_connection = True
            with suppress(ConnectionError):
                while not self.web.closing.wait(0.02):
                    self.wfile.write(b" ")
        elif page.cut:
            self.wfile.write(page.body[: len(page.body) // 2])
            self.close_connection = True
        else:
            self.wfile.write(page.body)
