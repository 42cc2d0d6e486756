"""The sandbox's broker without a socket: books, market, protocol, and answers with their faults, one request at a
time."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from connectors.sandbox.account_api import AccountApi
from connectors.sandbox.book import Book, Store
from connectors.sandbox.control_api import PREFIX, ControlApi
from connectors.sandbox.data_api import DataApi
from connectors.sandbox.exchange import Exchange
from connectors.sandbox.faults import CHANGED, Fault
from connectors.sandbox.http_server import Answer
from connectors.sandbox.market import Load, SandboxMarket
from connectors.sandbox.protocol import ApiError, Request, Router, to_json
from connectors.sandbox.streams import Streams
from connectors.sandbox.trading_api import TradingApi
from engine.domain.run import ExecutionRules
from engine.errors import PaperdeskError

_LOG = logging.getLogger("paperdesk.sandbox")
_AHEAD = timedelta(days=30)
_SOON = timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSettings:
    """Settings of a sandbox.

    start: time (UTC) at which new books begin.
    cash: starting cash, in USD.
    port: 0: any free one.
    state: file of the books; None: in memory.
    speed: simulated seconds per second.
    rules: costs of trading.
    pay_dividends: a real paper account pays none.
    crypto_fee: fraction of a crypto trade that is charged in what it brings, and entered on the day after.
    key, secret: the account's.
    """

    start: datetime
    cash: Decimal = Decimal(100_000)
    port: int = 0
    state: Path | None = None
    speed: float = 0.0
    rules: ExecutionRules = field(default_factory=ExecutionRules)
    pay_dividends: bool = False
    crypto_fee: Decimal = Decimal(0)
    key: str = "PKSANDBOX00000000000"
    secret: str = "sandbox-secret-of-no-account-anywhere"


class LocalBroker:
    """The broker: `await open()`, then `answer` for every request, `close`.

    `advance`, `fault`, `clear_faults` and `state` are for the program that drives it.
    """

    def __init__(self, load: Load, settings: SandboxSettings) -> None:
        """Take `load`, which provides the market."""
        self.settings = settings
        self._load = load
        self.router = Router()

    async def open(self) -> None:
        """Open books and market.

        Raises ConfigError for a state file of another kind, DataError for a market that cannot be loaded.
        """
        settings = self.settings
        self._store = Store(str(settings.state or ":memory:"))
        book = Book(self._store, settings.cash)
        now = datetime.fromisoformat(book.facts.get("now", settings.start.isoformat()))
        market = SandboxMarket(await self._load((now + _AHEAD).date()))
        if book.is_new:
            book.facts["speed"] = settings.speed
        self.exchange = Exchange(
            market, book, settings.rules, now, pay_dividends=settings.pay_dividends, crypto_fee=settings.crypto_fee
        )
        data = DataApi(self.exchange)
        self.streams = Streams(self.exchange, data, (settings.key, settings.secret))
        self.exchange.on_update, self.exchange.on_step = self.streams.on_update, self.streams.on_step
        self.control = ControlApi(self.exchange, self.streams)
        for api in (AccountApi(self.exchange), TradingApi(self.exchange), data, self.control):
            self.router.serve(api)

    def close(self) -> None:
        """Close the books."""
        self._store.close()

    # For the program that drives it

    def control_request(self, method: str, path: str, document: Any = None) -> Any:
        """Response document of one of the sandbox's own requests. Raises ApiError."""
        return self.router.answer(make_request(method, path, document))[1]

    def advance(self, to: str | datetime) -> None:
        """Move the clock: to a time, to the next `open` or `close`, or by a length such as `30m`. Raises ApiError."""
        self.control_request("POST", "/sandbox/clock", {"to": to} if isinstance(to, datetime) else {"advance": to})

    def fault(self, kind: str, **rule: Any) -> int:
        """Add a fault (see faults.py); return the number of its rule. Raises ApiError."""
        added: dict[str, Any] = self.control_request("POST", "/sandbox/faults", {"kind": kind} | rule)
        return int(added["id"])

    def clear_faults(self, rule: int | None = None) -> None:
        """Remove a fault, or all of them."""
        self.control_request("DELETE", "/sandbox/faults" if rule is None else f"/sandbox/faults/{rule}")

    def state(self) -> dict[str, Any]:
        """Book, orders, faults and count."""
        state: dict[str, Any] = self.control_request("GET", "/sandbox/state")
        return state

    # Requests

    async def prepare(self, request: Request) -> None:
        """Load the market as far as a request needs it. Raises ApiError for an invalid one."""
        if request.method == "POST" and request.path == "/sandbox/clock":
            target = self.control.target(request)
            if target is not None:
                await self.load_until(target)

    async def load_until(self, moment: datetime) -> None:
        """Extend the market up to a time, where more data can be made."""
        market = self.exchange.market
        through: date | None = market.data.through
        if through is not None and moment.date() + _SOON > through:
            market.data = await self._load((moment + _AHEAD).date())

    def answer(self, request: Request) -> Answer:
        """Answer any request, faults included."""
        try:
            if request.path.startswith(PREFIX):
                return json_answer(*self.router.answer(request))
            return self._protocol(request)
        except ApiError as error:
            return json_answer(error.status, error.body)
        except PaperdeskError as error:
            return json_answer(422, {"code": 40010001, "message": str(error)})
        except Exception:
            _LOG.exception("%s %s", request.method, request.path)
            return json_answer(500, INTERNAL)

    def match_fault(self, request: Request) -> Fault | None:
        """The fault of a request, which uses it up."""
        symbol, side = _ordered(request)
        fault = self.exchange.faults.for_answer(request.method, request.path, symbol, side)
        if fault is not None:
            self.control.save_faults()
        return fault

    def _protocol(self, request: Request) -> Answer:
        self.control.count(request)
        fault = self.match_fault(request)
        if fault is None or fault.kind == "wrong_key":
            return self._answered(request, fault)
        if fault.kind in CHANGED:
            if fault.then == "repeat":
                first = {name: value for name, value in request.query.items() if name != "page_token"}
                request = replace(request, query=first)
            return changed_answer(fault, self._answered(request, None))
        if fault.after:
            self._answered(request, None)
        return broken_answer(fault)

    def _answered(self, request: Request, fault: Fault | None) -> Answer:
        try:
            self._check_keys(request, fault)
            answer = json_answer(*self.router.answer(request))
        except ApiError as error:
            answer = json_answer(error.status, error.body)
        if self.exchange.faults.rules:
            self.control.save_faults()  # an order may have used one up
        return answer

    def _check_keys(self, request: Request, fault: Fault | None) -> None:
        given = request.headers.get("apca-api-key-id"), request.headers.get("apca-api-secret-key")
        if given == (self.settings.key, self.settings.secret) and fault is None:
            return
        if request.path.startswith(("/v2/stocks/", "/v1")):
            raise ApiError(403, None, "forbidden.")
        raise ApiError(401, 40110000, "request is not authorized")


def _ordered(request: Request) -> tuple[str, str]:
    """Symbol and side of a request for an order; empty for any other."""
    if (request.method, request.path) != ("POST", "/v2/orders"):
        return "", ""
    try:
        order = request.json()
    except ApiError:
        return "", ""
    return str(order.get("symbol", "")), str(order.get("side", ""))


def make_request(method: str, path: str, document: Any) -> Request:
    """One of the sandbox's own requests."""
    return Request(method=method, path=path, body=b"" if document is None else to_json(document))


INTERNAL = {"code": 50010000, "message": "internal server error occurred"}
_PAGE = b"<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>"


def json_answer(status: int, document: Any) -> Answer:
    """A document as an answer."""
    return Answer(status=status, body=b"" if document is None else to_json(document))


def broken_answer(fault: Fault) -> Answer:
    """The answer of a fault that leaves nothing of the right one."""
    match fault.kind:
        case "reset" | "hang":
            return Answer(status=0, broken=True, delay=fault.seconds if fault.kind == "hang" else 0.0)
        case "too_many_requests":
            answer = json_answer(fault.status, {"code": 42910000, "message": "too many requests."})
            return replace(answer, headers={"Retry-After": f"{fault.seconds:.0f}"})
        case "html":
            return Answer(status=fault.status, body=_PAGE, content_type="text/html")
        case "gateway_timeout":
            return Answer(status=fault.status, body=b"upstream request timeout", content_type="text/plain")
        case "redirect":
            return Answer(status=fault.status, headers={"Location": fault.then})
        case "body":
            return Answer(status=fault.status, body=fault.message.encode())
    return json_answer(fault.status, INTERNAL)


def changed_answer(fault: Fault, answer: Answer) -> Answer:
    """The right answer, cut off, dripping, with other fields or with another list."""
    match fault.kind:
        case "cut":
            return replace(answer, cut=True)
        case "drip":
            return replace(answer, drip=fault.seconds)
        case "list":
            return replace(answer, body=to_json(_listed(json.loads(answer.body), fault)))
    kind = fault.then if "/" in fault.then else answer.content_type
    return replace(answer, body=to_json(_edited(json.loads(answer.body), fault.change)), content_type=kind)


def _edited(document: Any, change: Mapping[str, Any]) -> Any:
    """A document with some of its fields changed, or left out (`-name`); every object of a list."""
    if isinstance(document, list):
        return [_edited(one, change) for one in document]
    if not isinstance(document, dict):
        return document
    changed = {**document, **{name: value for name, value in change.items() if not name.startswith("-")}}
    return {name: value for name, value in changed.items() if f"-{name}" not in change}


def _listed(document: Any, fault: Fault) -> Any:
    """A list with its entries twice, in reverse order, or without those of a type."""
    how = fault.then
    if not isinstance(document, list) or how == "repeat":
        return document
    if how == "without":
        return [one for one in document if not fnmatchcase(str(one.get("activity_type")), fault.event)]
    return document[::-1] if how == "reverse" else [one for one in document for _ in range(2)]
