"""One websocket of the sandbox: the protocol of `websockets` without its server, so that one port serves all."""

from __future__ import annotations

from urllib.parse import quote

from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame, Opcode
from websockets.http11 import Request as Handshake
from websockets.protocol import OPEN
from websockets.server import ServerProtocol

from connectors.sandbox.http_server import Connection
from connectors.sandbox.protocol import Request

_PIECE = 65_536


class Websocket:
    """A connection after its handshake; messages in and out are bytes."""

    def __init__(self, request: Request, connection: Connection) -> None:
        self.request = request
        self._connection = connection
        self._protocol = ServerProtocol()
        self._parts: list[bytes] = []

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
        """The next complete message; None where the connection has ended."""
        while True:
            for event in self._protocol.events_received():
                message = self._assembled(event) if isinstance(event, Frame) else None
                if message is not None:
                    return message
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

    def _assembled(self, frame: Frame) -> bytes | None:
        if frame.opcode not in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
            return None
        self._parts.append(bytes(frame.data))
        if not frame.fin:
            return None
        message, self._parts = b"".join(self._parts), []
        return message

    async def _flush(self) -> None:
        for data in self._protocol.data_to_send():
            if data:
                self._connection.writer.write(data)
        try:
            await self._connection.writer.drain()
        except ConnectionError:
            raise ConnectionClosed(None, None) from None
