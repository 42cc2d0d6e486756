"""One websocket that stays connected: it introduces itself, listens, and after any break begins again, more and more
patiently."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import Any

from connectors.alpaca.live.protocols import NotLetIn, StreamProtocol
from engine.domain.live import Delivery, FeedMessage
from engine.errors import CredentialsRefused

Told = Callable[[Delivery, str], None]

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
STEADY = 60.0
"""Seconds that a connection has to last before the next break is met with the first pause again: a service that lets
one in and throws one out at once is not asked every second."""
_ALIVE = 15.0
"""Seconds between signs of life, and how long an answer to one may take."""
_LARGEST = 4 * 2**20


async def stay_connected(
    protocol: StreamProtocol,
    hear: Callable[[FeedMessage], None],
    told: Told,
    *,
    timeout: float,
    local: bool,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Listens until it is cancelled; `told` hears how the feed arrives. Raises CredentialsRefused where the keys are
    refused: nothing that waits changes that."""
    from websockets.exceptions import WebSocketException

    loop = asyncio.get_running_loop()
    pause = FIRST_PAUSE
    while True:
        begun = loop.time()
        try:
            await _listen(protocol, hear, told, timeout, local)
            detail = "the connection was closed"
        except NotLetIn as refused:
            if refused.for_ever:
                raise CredentialsRefused(
                    f"the {protocol.feed} stream refuses the keys: {refused}; check APCA_API_KEY_ID and "
                    "APCA_API_SECRET_KEY"
                ) from None
            detail = str(refused)
        except (OSError, TimeoutError, WebSocketException, ValueError) as error:
            detail = _in_words(error)
        told(Delivery.DOWN, detail)
        if loop.time() - begun >= STEADY:
            pause = FIRST_PAUSE
        await sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


async def _listen(
    protocol: StreamProtocol, hear: Callable[[FeedMessage], None], told: Told, timeout: float, local: bool
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
        told(Delivery.STREAM, "")
        async for raw in socket:
            for heard in protocol.read(_document(raw)):
                hear(heard)


def _document(raw: str | bytes) -> Any:
    return json.loads(raw, parse_float=Decimal)


def _in_words(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ConnectionRefusedError):
        return "no connection can be made"
    return f"the connection broke ({type(error).__name__})"
