"""The sandbox's websockets: trade updates, and live data of shares, crypto and news, in Alpaca's form."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import msgpack  # type: ignore[import-untyped]
from websockets.exceptions import ConnectionClosed

from connectors.sandbox.bars import Timeframe, bars
from connectors.sandbox.data_api import DataApi
from connectors.sandbox.exchange import Exchange
from connectors.sandbox.http_server import Connection, Websocket
from connectors.sandbox.market import Listing
from connectors.sandbox.protocol import Request, json_value, to_json

TRADING = "/stream"
SHARES = ("/v2/iex", "/v2/sip", "/v2/delayed_sip")
CRYPTO = ("/v1beta3/crypto/us",)
NEWS = ("/v1beta1/news",)

_CHANNELS = {"trades": "t", "quotes": "q", "bars": "b", "dailyBars": "d", "statuses": "s", "news": "n"}
_SILENT = ("updatedBars", "lulds", "corrections", "cancelErrors", "orderbooks")
_QUEUED = 10_000
_MINUTE = timedelta(minutes=1)


class Client:
    """One websocket with its subscriptions; messages wait in a queue, so that a slow client delays nothing.

    A client too far behind is disconnected, as by the real service.
    """

    def __init__(self, path: str, websocket: Websocket, *, packed: bool, keys_work: bool) -> None:
        self.path = path
        self.websocket = websocket
        self.authorized = False
        self.keys_work = keys_work
        self.subscriptions: dict[str, set[str]] = {}
        self._packed = packed
        self._queue: asyncio.Queue[Any] = asyncio.Queue(_QUEUED)

    def send_later(self, message: Any) -> None:
        """Queue a message."""
        try:
            self._queue.put_nowait(message)
        except asyncio.QueueFull:
            self.websocket.reset()

    def read(self, message: bytes) -> dict[str, Any]:
        """A message of the client; empty where it cannot be read."""
        try:
            document = msgpack.unpackb(message) if self._packed else json.loads(message)
        except ValueError:
            return {}
        return document if isinstance(document, dict) else {}

    async def send(self) -> None:
        """Send queued messages until the connection ends."""
        while True:
            message = await self._queue.get()
            if message is None:
                await self.websocket.close()
                return
            if self._packed:
                await self.websocket.send(msgpack.packb(message, default=json_value, datetime=True))
            else:
                await self.websocket.send(to_json(message))


class Streams:
    """All websockets. The exchange calls `on_update` and `on_step`."""

    def __init__(self, exchange: Exchange, data: DataApi, keys: tuple[str, str]) -> None:
        self._exchange = exchange
        self._data = data
        self._keys = keys
        self.clients: list[Client] = []

    async def serve(self, request: Request, connection: Connection, *, keys_work: bool = True) -> None:
        """Serve one websocket from its handshake to its end; with `keys_work` off the right keys are refused."""
        websocket = Websocket(request, connection)
        if not await websocket.accept():
            return
        packed = request.headers.get("content-type", "") == "application/msgpack"
        client = Client(request.path, websocket, packed=packed and request.path != TRADING, keys_work=keys_work)
        self.clients.append(client)
        sender = asyncio.create_task(client.send())
        try:
            await self._listen(client)
        except (ConnectionClosed, ConnectionError):
            pass
        finally:
            self.clients.remove(client)
            sender.cancel()
            await asyncio.gather(sender, return_exceptions=True)

    async def _listen(self, client: Client) -> None:
        if client.path not in (TRADING, *SHARES, *CRYPTO, *NEWS):
            client.send_later([{"T": "error", "code": 404, "msg": "not found"}])
            client.send_later(None)
        elif client.path != TRADING:
            client.send_later([{"T": "success", "msg": "connected"}])
        while (message := await client.websocket.receive()) is not None:
            document = client.read(message)
            if client.path == TRADING:
                self._trading_request(client, document)
            else:
                self._data_request(client, document)

    def _keys_match(self, client: Client, key: object, secret: object) -> bool:
        return client.keys_work and (key, secret) == self._keys

    # Trade updates

    def _trading_request(self, client: Client, document: dict[str, Any]) -> None:
        action, data = document.get("action"), document.get("data")
        given = data if isinstance(data, dict) else {}
        if action in ("authenticate", "auth"):
            key, secret = given.get("key_id", document.get("key")), given.get("secret_key", document.get("secret"))
            client.authorized = self._keys_match(client, key, secret)
            status = "authorized" if client.authorized else "unauthorized"
            client.send_later({"stream": "authorization", "data": {"status": status, "action": "authenticate"}})
            if not client.authorized:
                client.send_later(None)
        elif action == "listen" and client.authorized:
            streams = [name for name in given.get("streams") or () if name == "trade_updates"][:1]
            client.subscriptions = {"streams": set(streams)}
            client.send_later({"stream": "listening", "data": {"streams": streams}})
        else:
            client.send_later({"stream": "listening", "data": {"error": "access key verification failed"}})

    def on_update(self, update: dict[str, Any]) -> None:
        """Publish a trade update."""
        listeners = self._subscribers((TRADING,), "streams", "trade_updates")
        self._publish(listeners, update["event"], {"stream": "trade_updates", "data": update})

    def _subscribers(self, paths: Iterable[str], channel: str, *names: str) -> list[Client]:
        """Clients of some websockets that have subscribed to one of the names, or to all."""
        wanted = {"*", *names}
        return [c for c in self.clients if c.path in paths and c.subscriptions.get(channel, set()) & wanted]

    def _publish(self, clients: Iterable[Client], event: str, message: Any) -> None:
        for client in list(clients):
            fault = self._exchange.faults.for_event(client.path, event)
            kind = None if fault is None else fault.kind
            if kind == "disconnect":
                client.websocket.reset()
            elif kind != "lost_event":
                client.send_later(message)
                if kind == "duplicate_event":
                    client.send_later(message)

    # Data

    def _data_request(self, client: Client, document: dict[str, Any]) -> None:
        action = document.get("action")
        if action == "auth":
            if not self._keys_match(client, document.get("key"), document.get("secret")):
                client.send_later([{"T": "error", "code": 402, "msg": "auth failed"}])
            elif any(other.authorized and other.path == client.path for other in self.clients):
                client.send_later([{"T": "error", "code": 406, "msg": "connection limit exceeded"}])
            else:
                client.authorized = True
                client.send_later([{"T": "success", "msg": "authenticated"}])
        elif not client.authorized:
            client.send_later([{"T": "error", "code": 401, "msg": "not authenticated"}])
        elif action in ("subscribe", "unsubscribe"):
            for channel in (*_CHANNELS, *_SILENT):
                names = set(document.get(channel) or ())
                before = client.subscriptions.get(channel, set())
                client.subscriptions[channel] = before | names if action == "subscribe" else before - names
            client.send_later([self._subscription(client)])
        else:
            client.send_later([{"T": "error", "code": 400, "msg": "invalid syntax"}])

    def _subscription(self, client: Client) -> dict[str, Any]:
        channels = ["news"] if client.path in NEWS else [c for c in (*_CHANNELS, *_SILENT) if c != "news"]
        return {"T": "subscription"} | {channel: sorted(client.subscriptions[channel]) for channel in channels}

    def on_step(self, before: datetime, now: datetime) -> None:
        """Publish the data of a clock step to its subscribers."""
        market, followed = self._exchange.market, {client.path for client in self.clients if client.authorized}
        for symbol in market.symbols if followed.intersection(SHARES + CRYPTO) else ():
            listing = market.listing(symbol)
            if followed.intersection(_paths(listing)) and self._exchange.faults.halted_since(symbol) is None:
                self._send_symbol(listing, before, now)
        for item in market.news(market.symbols, before, now) if followed.intersection(NEWS) else ():
            body = self._data.news_item(item)
            readers = self._subscribers(NEWS, "news", *body["symbols"])
            self._publish(readers, "n", [{"T": "n"} | {k: v for k, v in body.items() if k != "images"}])

    def halted(self, symbol: str, *, halted: bool) -> None:
        """Publish that trading in a symbol is halted, or resumes."""
        code, text = ("H", "Trading Halt") if halted else ("T", "Trading Resumption")
        reason = {"rc": "T1", "rm": "News Pending", "t": self._exchange.now, "z": "C"}
        self._send_channel(self._exchange.market.listing(symbol), "statuses", {"sc": code, "sm": text} | reason)

    def _send_symbol(self, listing: Listing, before: datetime, now: datetime) -> None:
        market, symbol = self._exchange.market, listing.symbol
        rows = market.rows(symbol, now)
        if not rows:
            return
        closes = market.calendar(symbol).closes_at(market.history(symbol).session(rows - 1))
        if before >= closes:
            return  # nothing traded since
        for channel, body in (("quotes", self._data.quote(listing)), ("trades", self._data.trade(listing))):
            if body is not None:
                self._send_channel(listing, channel, body)
        minute = min(now, closes).replace(second=0, microsecond=0) - _MINUTE
        if minute + _MINUTE > before:
            for bar in bars(market, symbol, Timeframe(1, "m"), start=minute, end=minute, moment=now):
                self._send_channel(listing, "bars", bar)
        for day in self._data.daily_bars(listing)[:1] if closes <= now else ():
            self._send_channel(listing, "dailyBars", day)

    def _send_channel(self, listing: Listing, channel: str, body: dict[str, Any]) -> None:
        message = {"T": _CHANNELS[channel], "S": listing.wire} | body
        self._publish(self._subscribers(_paths(listing), channel, listing.wire), _CHANNELS[channel], [message])


def _paths(listing: Listing) -> tuple[str, ...]:
    return CRYPTO if listing.crypto else SHARES
