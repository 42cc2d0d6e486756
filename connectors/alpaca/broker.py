"""A paper account at Alpaca behind the Broker port: alpaca-py places and cancels orders, httpx asks for the rest.

Tested against the sandbox. The live service could not be tested: a person with a paper account checks it with
`paperdesk doctor --connect`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import quote

from connectors.alpaca.account import (
    activity,
    asset,
    broker_account,
    broker_clock,
    broker_order,
    equity_by_session,
    order_body,
    session_hours,
    update_of,
)
from connectors.alpaca.async_client import AsyncTradingClient
from connectors.alpaca.failures import (
    HttpRefusal,
    NoAnswer,
    code_and_message,
    credentials_refused,
    outcome_unknown,
    query_refused,
    refuses_keys,
)
from connectors.alpaca.json_fields import Fields, Raw, json_object, json_objects, text_of, to_wire
from connectors.alpaca.settings import AlpacaSettings
from connectors.rate_limited_http import HttpError, RateLimitedClient, parse_json
from engine.domain.brokerage import Activity, Asset, BrokerAccount, BrokerClock, BrokerOrder, SessionHours
from engine.domain.market import Symbol
from engine.domain.order import ZERO, Order, OrderState, OrderUpdate, is_final
from engine.errors import CredentialsRefused, MalformedData, NetworkError, PaperdeskError, TryAgainLater

_ORDERS_A_PAGE, _ACTIVITIES_A_PAGE = 500, 100
_LATE = timedelta(days=7)
"""Longest delay with which a dividend or a fee is entered: activities are requested from so much earlier on."""
_FIRST = datetime(2010, 1, 1, tzinfo=UTC)
"""Before any order of the service."""
_NOT_TAKEN = frozenset({400, 403, 404, 422})
"""Statuses that refuse an order, with a message."""
_SNAPSHOTS = 3


class AlpacaBroker:
    """The Broker port over HTTP. One instance belongs to one event loop; `aclose` closes its connections."""

    def __init__(
        self,
        settings: AlpacaSettings,
        *,
        attempts: int = 4,
        first_pause: float = 0.5,
        longest_wait: float = 60.0,
    ) -> None:
        """Set the retries of queries: `attempts`, pauses and `longest_wait` (seconds); an order is sent once."""
        self.settings = settings
        self._trading = AsyncTradingClient(settings)
        self._http = RateLimitedClient(
            settings.trading_url,
            seconds_between=0.02,
            timeout=settings.timeout,
            headers=settings.headers,
            attempts=attempts,
            first_pause=first_pause,
            longest_wait=longest_wait,
            direct=settings.is_local,
            missing=lambda text: code_and_message(text)[0] is not None,
        )

    async def aclose(self) -> None:
        """Close connections."""
        self._trading.close()
        await self._http.aclose()

    # Account

    async def account(self) -> BrokerAccount:
        """Cash and positions of one moment: read again where a trade came between the two answers."""
        before = await self._account()
        for _ in range(_SNAPSHOTS):
            positions = await self._get("/v2/positions")
            after = await self._account()
            if after.number("cash") == before.number("cash"):
                return broker_account(after.raw, json_objects(positions, "the broker's positions"))
            before = after
        raise TryAgainLater("the account's cash moves while it is being read: try again when its orders have filled")

    async def activities(self, after: datetime) -> Sequence[Activity]:
        """Implement the port. Entries of the week before come again: a dividend is entered days after its date."""
        query = {
            "after": f"{after - _LATE:%Y-%m-%dT%H:%M:%S}Z",
            "direction": "asc",
            "page_size": str(_ACTIVITIES_A_PAGE),
        }
        found = [activity(raw) async for raw in self._pages("/v2/account/activities", query)]
        return sorted(found, key=lambda one: one.time)

    async def equity_history(self, first: date, last: date) -> Mapping[date, Decimal]:
        """Implement the port; a session that is not over is left out.

        No end is requested, since the service cuts it to a session's close, before the time with which it stamps that
        session.
        """
        # Noon in New York is the same day everywhere that the two sides could mean.
        query = {"timeframe": "1D", "start": f"{first}T17:00:00Z"}
        every = equity_by_session(await self._get("/v2/account/portfolio/history", query))
        clock = await self.clock()
        running = clock.next_close.date() if clock.is_open else None
        return {day: value for day, value in every.items() if first <= day <= last and day != running}

    # Orders

    async def place(self, order: Order) -> OrderUpdate:
        """Implement the port. NetworkError means that no connection was made, or that it was sent elsewhere."""
        body = order_body(order)
        if Decimal(body.get("notional") or body.get("qty") or ZERO) <= 0:
            return OrderUpdate(order.id, OrderState.REJECTED, detail="it does not come to the smallest amount")
        try:
            answer = await self._trading.send(lambda client: client.post("/orders", body))
        except HttpRefusal as refusal:
            return await self._refused(order.id, refusal)
        except NoAnswer as fault:
            if not fault.sent:
                raise NetworkError(
                    f"{self.settings.trading_url}: {fault.problem}: order {order.id} was not sent"
                ) from None
            raise outcome_unknown(self.settings, order.id, fault.problem) from None
        try:
            taken = broker_order(json_object(answer, f"the answer to order {order.id}"))
        except MalformedData as error:
            raise outcome_unknown(self.settings, order.id, str(error)) from None
        if taken.order_id != order.id:
            raise outcome_unknown(self.settings, order.id, "the answer is about another order")
        return update_of(taken)

    async def lookup(self, order_id: str, broker_id: str = "") -> BrokerOrder | None:
        """Implement the port."""
        raw = await self._get("/v2/orders:by_client_order_id", {"client_order_id": order_id}, may_miss=True)
        if raw is None and broker_id:
            raw = await self._get(f"/v2/orders/{quote(broker_id, safe='')}", may_miss=True)
        return None if raw is None else broker_order(json_object(raw, f"the broker's order {order_id}"))

    async def open_orders(self) -> Sequence[BrokerOrder]:
        """All orders that are not final, oldest first, all pages."""
        return [one for one in await self._orders({"status": "open"}) if not is_final(one.state)]

    async def orders_since(self, after: datetime) -> Sequence[BrokerOrder]:
        """Implement the port, oldest first."""
        return await self._orders({"status": "all", "after": f"{max(after, _FIRST):%Y-%m-%dT%H:%M:%S}Z"})

    async def _orders(self, which: Mapping[str, str]) -> list[BrokerOrder]:
        found: dict[str, BrokerOrder] = {}
        query = {**which, "direction": "asc", "limit": str(_ORDERS_A_PAGE)}
        while True:
            page = json_objects(await self._get("/v2/orders", query), "the broker's orders")
            fresh = [one for one in map(broker_order, page) if one.broker_id not in found]
            found |= {one.broker_id: one for one in fresh}
            if len(page) < _ORDERS_A_PAGE:
                return list(found.values())
            if not fresh:
                raise NetworkError(
                    f"{self.settings.trading_url} returned the same page of orders twice: try again later"
                )
            query.pop("after", None)  # the two cannot be combined
            query["after_order_id"] = text_of(page[-1], "id")

    async def last_orders(self) -> Sequence[BrokerOrder]:
        """The orders that were entered last, at most 500, whatever has become of them, the newest first."""
        found = await self._get("/v2/orders", {"status": "all", "direction": "desc", "limit": str(_ORDERS_A_PAGE)})
        return [broker_order(raw) for raw in json_objects(found, "the broker's last orders")]

    async def cancel(self, order_id: str) -> None:
        """Implement the port: an order that the broker has never seen, or cannot cancel any more, stays as it is."""
        order = await self.lookup(order_id)
        if order is None or is_final(order.state):
            return
        try:
            await self._trading.send(lambda client: client.cancel_order_by_id(order.broker_id))
        except HttpRefusal as refusal:
            if refuses_keys(refusal.status, refusal.text):
                raise credentials_refused(self.settings, refusal.status) from None
            if refusal.status not in (404, 422):
                raise outcome_unknown(self.settings, order_id, f"canceling it was answered with {refusal}") from None
        except NoAnswer as fault:
            raise outcome_unknown(self.settings, order_id, f"canceling it: {fault.problem}") from None

    # Exchange

    async def clock(self) -> BrokerClock:
        """The broker's time."""
        return broker_clock(await self._get("/v2/clock"))

    async def session_hours(self, first: date, last: date) -> Sequence[SessionHours]:
        """The sessions of the broker's calendar, both days included."""
        found = await self._get("/v2/calendar", {"start": first.isoformat(), "end": last.isoformat()})
        hours = map(session_hours, json_objects(found, "the broker's calendar"))
        return sorted((one for one in hours if first <= one.session <= last), key=lambda one: one.session)

    async def asset(self, symbol: Symbol) -> Asset | None:
        """Implement the port."""
        found = await self._get(f"/v2/assets/{quote(to_wire(symbol), safe='')}", may_miss=True)
        return None if found is None else asset(json_object(found, f"the broker's instrument {symbol}"))

    # Requests

    async def _account(self) -> Fields:
        return Fields(json_object(await self._get("/v2/account"), "the broker's account"), "the broker's account")

    async def _refused(self, order_id: str, refusal: HttpRefusal) -> OrderUpdate:
        """Result of an error status for an order: refused, placed before, or unknown."""
        status, text = refusal.status, refusal.text
        if refuses_keys(status, text):
            raise credentials_refused(self.settings, status)
        code, message = code_and_message(text)
        if status not in _NOT_TAKEN or code is None or not message:
            raise outcome_unknown(self.settings, order_id, str(refusal))
        if status == 422 and "client_order_id" in message and "unique" in message:
            return await self._existing(order_id)
        return OrderUpdate(order_id, OrderState.REJECTED, detail=self.settings.without_keys(message))

    async def _existing(self, order_id: str) -> OrderUpdate:
        try:
            found = await self.lookup(order_id)
        except CredentialsRefused:
            raise
        except PaperdeskError as error:
            raise outcome_unknown(self.settings, order_id, f"its id is taken, and then {error}") from None
        if found is None:
            raise outcome_unknown(self.settings, order_id, "its id is taken, and the broker does not find it")
        return update_of(found)

    async def _get(self, path: str, query: Mapping[str, str] | None = None, *, may_miss: bool = False) -> Any:
        """JSON at an address; None for a 404 where `may_miss`."""
        settings = self.settings
        try:
            found = await self._http.get(f"{settings.trading_url}{path}", self._readable, params=query)
        except HttpError as refused:
            raise query_refused(settings, path, refused.status, refused.text) from None
        if found is None and not may_miss:
            raise query_refused(settings, path, 404, "")
        return found

    async def _pages(self, path: str, query: Mapping[str, str]) -> AsyncIterator[Raw]:
        """All entries of a list that ends with an empty page."""
        seen: set[str] = set()
        token: dict[str, str] = {}
        while True:
            page = json_objects(await self._get(path, {**query, **token}), f"the broker's list at {path}")
            if not page:
                return
            fresh = [raw for raw in page if text_of(raw, "id") not in seen]
            if not fresh:  # a page again, or in another order: what it leaves out, the comparison of both sides shows
                return
            for raw in fresh:
                seen.add(text_of(raw, "id"))
                yield raw
            token = {"page_token": text_of(page[-1], "id")}

    def _readable(self, body: bytes) -> Any:
        """A body as JSON other than null, without keys. Raises ValueError."""
        found = parse_json(self.settings.without_keys(body.decode("utf-8")).encode())
        if found is None:
            raise ValueError("null")
        return found
