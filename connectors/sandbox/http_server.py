"""A small HTTP/1.1 server on loopback: h11 parses, asyncio transports, a connection may become a websocket.

Websockets use the protocol of `websockets` without its server, so that one port serves all.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from http.client import responses
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import h11
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame, Opcode
from websockets.http11 import Request as Handshake
from websockets.protocol import OPEN
from websockets.server import ServerProtocol

from connectors.sandbox.protocol import Request

LOOPBACK = "127.0.0.1"
_LARGEST_BODY = 1_000_000
_PIECE = 65_536
_NAMES = ("127.0.0.1", "localhost")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A response's bytes with its headers.

    status: HTTP.
    broken: True to break the connection instead.
    delay: seconds before either.
    cut: True where the connection breaks in the middle of the body.
    drip: seconds before every byte of the body.
    """

    status: int
    body: bytes = b""
    content_type: str = "application/json; charset=UTF-8"
    headers: dict[str, str] = field(default_factory=dict)
    broken: bool = False
    delay: float = 0.0
    cut: bool = False
    drip: float = 0.0


class Connection:
    """One client's connection: HTTP requests, one after another."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._h11 = h11.Connection(h11.SERVER)

    async def request(self) -> Request | None:
        """The next request with its body; None where the client is gone. Raises h11.RemoteProtocolError."""
        request: Request | None = None
        while True:
            event = await self._event()
            if isinstance(event, h11.Request):
                request = _request(event)
                if _is_upgrade(request):
                    return request
            elif isinstance(event, h11.Data) and request is not None:
                request = replace(request, body=request.body + bytes(event.data))
                if len(request.body) > _LARGEST_BODY:
                    raise h11.RemoteProtocolError("the body is too large", error_status_hint=413)
            elif isinstance(event, h11.EndOfMessage):
                return request
            else:  # the connection was closed, or a request was cut off
                return None

    async def _event(self) -> Any:
        while (event := self._h11.next_event()) is h11.NEED_DATA:
            if self._h11.they_are_waiting_for_100_continue:
                await self._send(h11.InformationalResponse(status_code=100, headers=[]))
            self._h11.receive_data(await self.reader.read(_PIECE))
        return event

    async def answer(self, answer: Answer, method: str = "GET") -> bool:
        """Carry out an answer, faults included; False where the connection ends."""
        if answer.delay:
            await asyncio.sleep(answer.delay)
        if answer.broken:
            self.reset()
            return False
        headers = answer.headers
        if answer.status != 204:
            headers = {"content-type": answer.content_type, "content-length": str(len(answer.body)), **headers}
        reason = responses.get(answer.status, "").encode()
        await self._send(h11.Response(status_code=answer.status, headers=list(headers.items()), reason=reason))
        if answer.body and method != "HEAD":
            await self._send_body(answer)
        if answer.cut:
            return False
        await self._send(h11.EndOfMessage())
        if self._h11.our_state is not h11.DONE or self._h11.their_state is not h11.DONE:
            return False
        self._h11.start_next_cycle()
        return True

    async def _send_body(self, answer: Answer) -> None:
        body = answer.body[: len(answer.body) // 2] if answer.cut else answer.body
        if not answer.drip:
            await self._send(h11.Data(data=body))
            return
        for byte in body:
            await asyncio.sleep(answer.drip)
            await self._send(h11.Data(data=bytes([byte])))

    def trailing_data(self) -> bytes:
        """Bytes received after the request for a websocket."""
        data, _ = self._h11.trailing_data
        return bytes(data)

    def reset(self) -> None:
        """Break the connection so that the other side sees a reset."""
        carrier = self.writer.get_extra_info("socket")
        if carrier is not None:
            linger = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)
            carrier.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.writer.transport.abort()

    async def _send(self, event: h11.Event) -> None:
        data = self._h11.send(event)
        if data:
            self.writer.write(data)
            await self.writer.drain()


class Websocket:
    """A connection after its handshake; messages in and out are bytes."""

    def __init__(self, request: Request, connection: Connection) -> None:
        self.request = request
        self._connection = connection
        self._protocol = ServerProtocol()

    async def accept(self) -> bool:
        """Answer the handshake; False where it was none."""
        # The parser wants to see the handshake itself before what follows it.
        lines = [f"GET {quote(self.request.path)} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in self.request.headers.items()]
        self._protocol.receive_data("\r\n".join([*lines, "", ""]).encode("latin-1") + self._connection.trailing_data())
        for event in self._protocol.events_received():
            if isinstance(event, Handshake):
                self._protocol.send_response(self._protocol.accept(event))
        await self._flush()
        return self._protocol.state is OPEN

    async def receive(self) -> bytes | None:
        """The next message, in one frame as clients of small messages send it; None where the connection has ended."""
        while True:
            for event in self._protocol.events_received():
                if isinstance(event, Frame) and event.opcode in (Opcode.TEXT, Opcode.BINARY):
                    return bytes(event.data)
            if self._protocol.close_expected():
                return None
            data = await self._connection.reader.read(_PIECE)
            if data:
                self._protocol.receive_data(data)
            else:
                self._protocol.receive_eof()
            await self._flush()
            if not data:
                return None

    async def send(self, message: bytes) -> None:
        """Send a binary message; does nothing where the connection has ended."""
        if self._protocol.state is OPEN:
            self._protocol.send_binary(message)
            await self._flush()

    async def close(self) -> None:
        """Send a closing frame."""
        if self._protocol.state is OPEN:
            self._protocol.send_close(1000)
            await self._flush()

    def reset(self) -> None:
        """Break the connection."""
        self._connection.reset()

    async def _flush(self) -> None:
        for data in self._protocol.data_to_send():
            if data:
                self._connection.writer.write(data)
        try:
            await self._connection.writer.drain()
        except ConnectionError:
            raise ConnectionClosed(None, None) from None


Respond = Callable[[Request], Awaitable[Answer]]
Upgrade = Callable[[Request, Connection], Awaitable[None]]


class HttpServer:
    """A server on 127.0.0.1 alone. `respond` must not raise."""

    def __init__(self, respond: Respond, upgrade: Upgrade) -> None:
        self._respond = respond
        self._upgrade = upgrade
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, port: int) -> int:
        """Start listening; return the port. Raises OSError."""
        self._server = await asyncio.start_server(self._serve, LOOPBACK, port)
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Stop listening and end every connection, waiting ones too."""
        self._server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._serve_requests(Connection(reader, writer))
        except (ConnectionError, h11.LocalProtocolError):
            pass  # the client went away in the middle
        except asyncio.CancelledError:
            writer.transport.abort()  # the server stops, and no caller waits for this task
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve_requests(self, connection: Connection) -> None:
        while True:
            try:
                request = await connection.request()
            except h11.RemoteProtocolError as error:
                await connection.answer(_text_answer(error.error_status_hint, b"bad request"))
                return
            if request is None:
                return
            if request.headers.get("host", "").rsplit(":", 1)[0] not in _NAMES:
                # A page in a browser must not reach this server under a name that it made to point here.
                await connection.answer(_text_answer(403, b"this server answers to 127.0.0.1 only"))
                return
            if _is_upgrade(request):
                await self._upgrade(request, connection)
                return
            if not await connection.answer(await self._respond(request), request.method):
                return


def _text_answer(status: int, text: bytes) -> Answer:
    return Answer(status=status, body=text, content_type="text/plain")


def _is_upgrade(request: Request) -> bool:
    return request.headers.get("upgrade", "").lower() == "websocket"


def _request(head: h11.Request) -> Request:
    parts = urlsplit(head.target.decode("latin-1"))
    return Request(
        method=head.method.decode("latin-1"),
        path=unquote(parts.path),
        query=dict(parse_qsl(parts.query, keep_blank_values=True)),
        headers={key.decode("latin-1"): value.decode("latin-1") for key, value in head.headers},
    )
