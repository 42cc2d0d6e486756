"""The real AlpacaBroker over a LocalBroker without any socket: its requests are answered in memory, at once.

Everything between the port and the bytes is the desk's own: alpaca-py, its doors, reading, retries. What happens on the
wire is the test's: a request may be lost, may arrive later, may be the last that a process makes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any
from unittest import mock
from urllib.parse import parse_qsl, urlsplit

import httpx
import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPResponse

from connectors.alpaca import async_client
from connectors.alpaca.broker import AlpacaBroker
from connectors.alpaca.rest_client import RestClient
from connectors.alpaca.settings import AlpacaSettings
from connectors.sandbox.http_server import Answer
from connectors.sandbox.local_broker import LocalBroker
from connectors.sandbox.protocol import Request

URL = "http://127.0.0.1:1"
"""An address that nobody listens at: nothing is ever sent there."""

Passing = Callable[[Request], None]


@dataclass
class Wire:
    """Carries requests to a LocalBroker. `before` and `after` see every request on its way there and its answer on the
    way back, and may raise; `late` says which requests are taken and kept from arriving, until `deliver`."""

    local: LocalBroker
    before: Passing = lambda request: None
    after: Passing = lambda request: None
    late: Callable[[Request], bool] = lambda request: False
    kept: list[Request] = field(default_factory=list)

    def carry(self, request: Request) -> Answer:
        """What comes back for a request."""
        self.before(request)
        if self.late(request):
            self.kept.append(request)
            return Answer(status=0, broken=True, delay=1.0)
        answer = self.local.answer(request)
        self.after(request)
        return answer

    def deliver(self) -> None:
        """What was kept arrives; nobody waits for its answer any more."""
        while self.kept:
            self.local.answer(self.kept.pop(0))


def _request(method: str, url: str, headers: Any, body: bytes | str | None) -> Request:
    parts = urlsplit(url)
    sent = body.encode() if isinstance(body, str) else body or b""
    names = {name.lower(): value for name, value in dict(headers).items()}
    return Request(method=method, path=parts.path, query=dict(parse_qsl(parts.query)), headers=names, body=sent)


class _Blocking(HTTPAdapter):
    """What alpaca-py sends."""

    def __init__(self, wire: Wire) -> None:
        super().__init__()
        self._wire = wire

    def send(self, request: Any, *args: Any, **kwargs: Any) -> requests.Response:
        answer = self._wire.carry(_request(request.method, request.url, request.headers, request.body))
        if answer.broken:
            raise requests.ReadTimeout if answer.delay else requests.ConnectionError
        headers = answer.headers | {"content-type": answer.content_type}
        return self.build_response(
            request,
            HTTPResponse(body=BytesIO(answer.body), headers=headers, status=answer.status, preload_content=False),
        )


class _Awaited(httpx.AsyncBaseTransport):
    """What httpx sends."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        answer = self._wire.carry(_request(request.method, str(request.url), request.headers, request.content))
        if answer.broken:
            raise httpx.ReadTimeout("") if answer.delay else httpx.ReadError("")
        headers = answer.headers | {"content-type": answer.content_type}
        return httpx.Response(answer.status, headers=headers, content=answer.body)


class _NoPace:
    """Asks as fast as it goes."""

    async def acquire(self) -> None:
        """At once."""


@contextmanager
def broker_on(wire: Wire) -> Iterator[AlpacaBroker]:
    """The desk's own broker for one event loop. No wait between its attempts takes any time."""
    settings = AlpacaSettings(
        key=wire.local.settings.key, secret=wire.local.settings.secret, trading_url=URL, data_url=URL
    )

    def opened(asked: AlpacaSettings) -> RestClient:
        client = RestClient(asked)
        client.trading._session.mount("http://", _Blocking(wire))
        return client

    async def here(work: Callable[[], Any]) -> Any:
        return work()  # nothing blocks

    broker = AlpacaBroker(settings, first_pause=0.0)
    broker._http._client = httpx.AsyncClient(headers=settings.headers, transport=_Awaited(wire), trust_env=False)
    broker._http._pace = _NoPace()  # type: ignore[assignment]
    with mock.patch.object(async_client, "_opened", opened), mock.patch.object(async_client, "_in_thread", here):
        try:
            yield broker
        finally:
            broker._trading.close()
