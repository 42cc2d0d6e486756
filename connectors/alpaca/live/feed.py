"""The live feed of a desk: one websocket per kind, and polling while one is down."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from connectors.alpaca.data.pages import AlpacaPages
from connectors.alpaca.live.latest_prices import latest
from connectors.alpaca.live.protocols import DataStream, StreamProtocol, TradingStream
from connectors.alpaca.live.socket import stay_connected
from connectors.alpaca.settings import AlpacaSettings
from engine.domain.live import Delivery, FeedMessage, FeedState
from engine.domain.market import Symbol, is_crypto
from engine.errors import CredentialsRefused, PaperdeskError
from engine.ports import Clock

POLL_EVERY = 15.0
"""Seconds between two requests in place of a stream."""
PRICES = ("shares", "coins")


class AlpacaLive:
    """The LiveFeed port. News and orders missed by a broken stream are requested by the next cycle."""

    def __init__(
        self,
        settings: AlpacaSettings,
        clock: Clock,
        *,
        poll_every: float = POLL_EVERY,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._poll_every = poll_every
        self._sleep = sleep

    async def follow(self, symbols: Sequence[Symbol], on_message: Callable[[FeedMessage], None]) -> None:
        """Implement the port."""
        settings, prices = self._settings, _by_feed(symbols)
        streams: list[StreamProtocol] = [TradingStream(settings), DataStream(settings, "news", symbols)]
        streams += [DataStream(settings, feed, some) for feed, some in prices.items()]
        board = _FeedStates(self._clock, on_message)
        pages = AlpacaPages(settings)
        tasks = [asyncio.create_task(self._stream(stream, on_message, board)) for stream in streams]
        tasks += [
            asyncio.create_task(self._poll(feed, some, on_message, board, pages)) for feed, some in prices.items()
        ]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await pages.aclose()

    async def latest(self, symbols: Sequence[Symbol]) -> Sequence[FeedMessage]:
        """The latest quotes and trades, requested now."""
        pages = AlpacaPages(self._settings)
        try:
            found = [await latest(pages, feed, s, self._settings.feed) for feed, s in _by_feed(symbols).items()]
        finally:
            await pages.aclose()
        return [message for some in found for message in some]

    async def _stream(
        self, stream: StreamProtocol, on_message: Callable[[FeedMessage], None], board: _FeedStates
    ) -> None:
        settings = self._settings

        def on_delivery(delivery: Delivery, detail: str) -> None:
            board.stream_changed(stream.feed, delivery, detail)

        await stay_connected(
            stream, on_message, on_delivery, timeout=settings.timeout, local=settings.is_local, sleep=self._sleep
        )

    async def _poll(
        self,
        feed: str,
        symbols: Sequence[Symbol],
        on_message: Callable[[FeedMessage], None],
        board: _FeedStates,
        pages: AlpacaPages,
    ) -> None:
        while True:
            await self._sleep(self._poll_every)
            if board.streams(feed):
                continue
            try:
                found = await latest(pages, feed, symbols, self._settings.feed)
            except CredentialsRefused:
                raise
            except PaperdeskError as error:
                board.poll_changed(feed, str(error))
                continue
            if board.streams(feed):
                continue  # it came back while we asked
            board.poll_changed(feed, "")
            for message in found:
                on_message(message)


def _by_feed(symbols: Sequence[Symbol]) -> dict[str, Sequence[Symbol]]:
    """Symbols by price feed; feeds without symbols are left out."""
    coins = tuple(symbol for symbol in symbols if is_crypto(symbol))
    shares = tuple(symbol for symbol in symbols if not is_crypto(symbol))
    return {feed: some for feed, some in zip(PRICES, (shares, coins), strict=True) if some}


class _FeedStates:
    """Delivery of every feed: by its stream, else by polling, else down. A change is reported once."""

    def __init__(self, clock: Clock, on_message: Callable[[FeedMessage], None]) -> None:
        self._clock = clock
        self._on_message = on_message
        self._streaming: set[str] = set()
        self._answered: set[str] = set()
        self._reported: dict[str, Delivery] = {}

    def streams(self, feed: str) -> bool:
        """True while a feed's stream is up."""
        return feed in self._streaming

    def stream_changed(self, feed: str, delivery: Delivery, detail: str) -> None:
        """Note that a feed's stream is up, which ends its polling, or down."""
        if delivery is Delivery.STREAM:
            self._streaming.add(feed)
            self._answered.discard(feed)
        else:
            self._streaming.discard(feed)
        self._report(feed, detail)

    def poll_changed(self, feed: str, detail: str) -> None:
        """Note that a polling request was answered, or, with a reason, was not."""
        if detail:
            self._answered.discard(feed)
        else:
            self._answered.add(feed)
        self._report(feed, detail or "the stream is down: asked for instead")

    def _report(self, feed: str, detail: str) -> None:
        delivery = Delivery.DOWN
        if feed in self._streaming:
            delivery, detail = Delivery.STREAM, ""
        elif feed in self._answered:
            delivery = Delivery.POLLING
        if self._reported.get(feed) is not delivery:
            self._reported[feed] = delivery
            self._on_message(FeedState(feed, delivery, self._clock.now(), detail))
