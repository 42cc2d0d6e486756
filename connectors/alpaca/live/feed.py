"""The live feed of a desk: one websocket per kind, and, while one is down, requests in its place."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from connectors.alpaca.data.pages import AlpacaPages
from connectors.alpaca.live.polling import latest
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
    """Fills LiveFeed. News and orders that a broken stream does not tell are found by the next cycle, which asks."""

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
        """Tells of everything until it is cancelled."""
        settings, prices = self._settings, _by_feed(symbols)
        streams: list[StreamProtocol] = [TradingStream(settings), DataStream(settings, "news", symbols)]
        streams += [DataStream(settings, feed, some) for feed, some in prices.items()]
        board = _Board(self._clock, on_message)
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
        """The latest quotes and trades, asked for at this moment."""
        pages = AlpacaPages(self._settings)
        try:
            found = [await latest(pages, feed, s, self._settings.feed) for feed, s in _by_feed(symbols).items()]
        finally:
            await pages.aclose()
        return [heard for some in found for heard in some]

    async def _stream(self, stream: StreamProtocol, on_message: Callable[[FeedMessage], None], board: _Board) -> None:
        settings = self._settings

        def told(delivery: Delivery, detail: str) -> None:
            board.streamed(stream.feed, delivery, detail)

        await stay_connected(
            stream, on_message, told, timeout=settings.timeout, local=settings.is_local, sleep=self._sleep
        )

    async def _poll(
        self,
        feed: str,
        symbols: Sequence[Symbol],
        on_message: Callable[[FeedMessage], None],
        board: _Board,
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
                board.polled(feed, str(error))
                continue
            if board.streams(feed):
                continue  # it came back while we asked
            board.polled(feed, "")
            for heard in found:
                on_message(heard)


def _by_feed(symbols: Sequence[Symbol]) -> dict[str, Sequence[Symbol]]:
    """Which feed of prices tells of which symbols; none that has nothing to tell."""
    coins = tuple(symbol for symbol in symbols if is_crypto(symbol))
    shares = tuple(symbol for symbol in symbols if not is_crypto(symbol))
    return {feed: some for feed, some in zip(PRICES, (shares, coins), strict=True) if some}


class _Board:
    """How every feed arrives: by its stream, else by requests, else not at all. A change is told once."""

    def __init__(self, clock: Clock, on_message: Callable[[FeedMessage], None]) -> None:
        self._clock = clock
        self._hear = on_message
        self._streaming: set[str] = set()
        self._answered: set[str] = set()
        self._summary: dict[str, Delivery] = {}

    def streams(self, feed: str) -> bool:
        """Whether a feed's stream is up."""
        return feed in self._streaming

    def streamed(self, feed: str, delivery: Delivery, detail: str) -> None:
        """A feed's stream is up, or down; what stood in for it is over when it is up."""
        if delivery is Delivery.STREAM:
            self._streaming.add(feed)
            self._answered.discard(feed)
        else:
            self._streaming.discard(feed)
        self._tell(feed, detail)

    def polled(self, feed: str, detail: str) -> None:
        """A request in place of the stream was answered, or, for a reason in words, was not."""
        if detail:
            self._answered.discard(feed)
        else:
            self._answered.add(feed)
        self._tell(feed, detail or "the stream is down: asked for instead")

    def _tell(self, feed: str, detail: str) -> None:
        delivery = Delivery.DOWN
        if feed in self._streaming:
            delivery, detail = Delivery.STREAM, ""
        elif feed in self._answered:
            delivery = Delivery.POLLING
        if self._summary.get(feed) is not delivery:
            self._summary[feed] = delivery
            self._hear(FeedState(feed, delivery, self._clock.now(), detail))
