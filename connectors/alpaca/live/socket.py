"""One websocket that stays connected: authenticate, listen, and reconnect after any break with growing pauses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import Any

from connectors.alpaca.live.protocols import StreamProtocol, StreamRefused
from engine.domain.live import Delivery, FeedMessage
from engine.errors import CredentialsRefused

OnDelivery = Callable[[Delivery, str], None]

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
STEADY = 60.0
"""Seconds that a connection has to last to reset the pause.

A service that accepts a connection and closes it at once is not called every second.
"""
_ALIVE = 15.0
"""Seconds between pings, and the time limit of their answers."""
_LARGEST = 4 * 2**20


async def stay_connected(
    protocol: StreamProtocol,
    on_message: Callable[[FeedMessage], None],
    on_delivery: OnDelivery,
    *,
    timeout: float,
    local: bool,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Listen until cancelled; `on_delivery` gets the state of the feed.

    Raises CredentialsRefused where the keys are refused, which no wait changes.
    """
    from websockets.exceptions import WebSocketException

    loop = asyncio.get_running_loop()
    pause = FIRST_PAUSE
    while True:
        begun = loop.time()
        try:
            await _listen(protocol, on_message, on_delivery, timeout, local)
            detail = "the connection was closed"
        except StreamRefused as refused:
            if refused.permanent:
                raise CredentialsRefused(
                    f"the {protocol.feed} stream refuses the keys: {refused}; check APCA_API_KEY_ID and "
                    "APCA_API_SECRET_KEY"
                ) from None
            detail = str(refused)
        except (OSError, TimeoutError, WebSocketException, ValueError) as error:
            detail = _describe(error)
        on_delivery(Delivery.DOWN, detail)
        if loop.time() - begun >= STEADY:
            pause = FIRST_PAUSE
        await sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


async def _listen(
    protocol: StreamProtocol,
    on_message: Callable[[FeedMessage], None],
    on_delivery: OnDelivery,
    timeout: float,
    local: bool,
) -> None:
    from websockets.asyncio.client import connect

    async with connect(
        protocol.url,
        open_timeout=timeout,
        close_timeout=1,
        ping_interval=_ALIVE,
        ping_timeout=_ALIVE,
        max_size=_LARGEST,
        proxy=None if local else True,
    ) as socket:

        async def send(message: Any) -> None:
            await socket.send(json.dumps(message))

        async def receive() -> Any:
            return _document(await socket.recv())

        async with asyncio.timeout(timeout):
            await protocol.introduce(send, receive)
        on_delivery(Delivery.STREAM, "")
        async for raw in socket:
            for message in protocol.read(_document(raw)):
                on_message(message)


def _document(raw: str | bytes) -> Any:
    return json.loads(raw, parse_float=Decimal)


def _describe(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ConnectionRefusedError):
        return "no connection can be made"
    return f"the connection broke ({type(error).__name__})"
