"""The live feed against the sandbox's websockets: what arrives, what breaks, what stands in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import httpx
import pytest

from connectors.alpaca.live_feed import POLL_EVERY, AlpacaLive, DataStream, TradingStream, stream_address
from connectors.alpaca.settings import AlpacaSettings
from connectors.sandbox import SandboxServer
from engine.clock import BacktestClock
from engine.domain.live import Delivery, FeedMessage, FeedState, Headline, LastTrade, OrderHint, Quote
from engine.errors import CredentialsRefused
from tests.connectors.alpaca.sandbox_markets import START, order

SYMBOLS = ("AAA", "BTC-USD")
Open = Callable[..., SandboxServer]


def settings_of(server: SandboxServer) -> AlpacaSettings:
    return AlpacaSettings(
        key=server.settings.key, secret=server.settings.secret, trading_url=server.url, data_url=server.url, timeout=20
    )


class Ear:
    """What was heard, and a way to wait for more."""

    def __init__(self) -> None:
        self.heard: list[FeedMessage] = []
        self._more = asyncio.Event()

    def take(self, heard: FeedMessage) -> None:
        self.heard.append(heard)
        self._more.set()

    async def wait(
        self, kind: type[FeedMessage], enough: Callable[[list[FeedMessage]], bool] = bool
    ) -> list[FeedMessage]:
        def received() -> list[FeedMessage]:
            return [one for one in self.heard if isinstance(one, kind)]

        async with asyncio.timeout(600):
            while not enough(received()):
                self._more.clear()
                await self._more.wait()
        return received()

    async def wait_for(self, feed: str, delivery: Delivery) -> FeedState:
        def there(found: list[FeedMessage]) -> bool:
            return any(isinstance(one, FeedState) and (one.feed, one.delivery) == (feed, delivery) for one in found)

        found = await self.wait(FeedState, there)
        return [one for one in found if isinstance(one, FeedState) and (one.feed, one.delivery) == (feed, delivery)][-1]


@asynccontextmanager
async def following(
    settings: AlpacaSettings, ear: Ear, quick: bool = True, *, polls_after: tuple[str, Delivery] | None = None
) -> AsyncIterator[asyncio.Task[None]]:
    async def sleep(seconds: float) -> None:
        if seconds == POLL_EVERY and polls_after is not None:
            await ear.wait_for(*polls_after)
        await asyncio.sleep(min(seconds, 0.05) if quick else seconds)

    live = AlpacaLive(settings, BacktestClock(START), sleep=sleep)
    task = asyncio.create_task(live.follow(SYMBOLS, ear.take))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def all_up(ear: Ear) -> None:
    for feed in ("shares", "coins", "news", "orders"):
        await ear.wait_for(feed, Delivery.STREAM)


async def test_prices_news_and_orders_arrive_as_they_happen(broker: SandboxServer, http: httpx.Client) -> None:
    ear = Ear()
    async with following(settings_of(broker), ear):
        await all_up(ear)
        body = order("AAA", qty="10", client_order_id="demo-20240131-1-AAA-B-1")
        await asyncio.to_thread(http.post, "/v2/orders", json=body)
        await asyncio.to_thread(broker.advance, datetime(2024, 2, 1, 15, 0, tzinfo=UTC))
        quotes = await ear.wait(Quote, lambda found: len({one.symbol for one in found}) == 2)
        trades = await ear.wait(LastTrade, lambda found: len({one.symbol for one in found}) == 2)
        news = await ear.wait(Headline, lambda found: len(found) >= 3)
        hints = await ear.wait(OrderHint, lambda found: len(found) >= 3)
    assert Quote("AAA", Decimal(31), Decimal(31), datetime(2024, 2, 1, 14, 30, tzinfo=UTC)) in quotes
    assert {one.symbol for one in trades if isinstance(one, LastTrade)} == set(SYMBOLS)
    assert [one.headline for one in news if isinstance(one, Headline)] == ["AAA 20", "AAA 21", "AAA 21"]
    assert all(one.symbols == ("AAA",) for one in news if isinstance(one, Headline))
    assert [(one.order_id, one.event) for one in hints if isinstance(one, OrderHint)][-1] == (
        "demo-20240131-1-AAA-B-1",
        "fill",
    )


async def test_a_stream_that_breaks_is_connected_again(broker: SandboxServer) -> None:
    ear = Ear()
    async with following(settings_of(broker), ear):
        await all_up(ear)
        await asyncio.to_thread(broker.fault, "disconnect", path="/v2/iex", event="q")
        await asyncio.to_thread(broker.advance, datetime(2024, 2, 1, 14, 45, tzinfo=UTC))
        await ear.wait_for("shares", Delivery.DOWN)

        def twice(found: list[FeedMessage]) -> bool:
            up = [one for one in found if isinstance(one, FeedState)]
            return [one.delivery for one in up if one.feed == "shares"].count(Delivery.STREAM) == 2

        await ear.wait(FeedState, twice)
        ear.heard.clear()
        await asyncio.to_thread(broker.advance, datetime(2024, 2, 1, 15, 0, tzinfo=UTC))
        await ear.wait(Quote, lambda found: any(isinstance(one, Quote) and one.symbol == "AAA" for one in found))


async def test_prices_are_asked_for_while_another_program_has_the_stream(broker: SandboxServer) -> None:
    """The service lets one connection of an account listen to a feed."""
    first, second = Ear(), Ear()
    settings = settings_of(broker)
    await asyncio.to_thread(broker.advance, datetime(2024, 2, 1, 15, 0, tzinfo=UTC))
    async with following(settings, first):
        await all_up(first)
        # A request that is answered before the stream was refused would hide why it is down.
        async with following(settings, second, polls_after=("shares", Delivery.DOWN)):
            down = await second.wait_for("shares", Delivery.DOWN)
            assert "connection limit exceeded" in down.detail
            await second.wait_for("shares", Delivery.POLLING)
            quotes = await second.wait(Quote, lambda found: len({one.symbol for one in found}) == 2)
            share = next(one for one in quotes if isinstance(one, Quote) and one.symbol == "AAA")
            assert Decimal(30) <= share.bid <= share.ask <= Decimal(34)  # the day's bar
            assert not any(
                isinstance(one, FeedState) and one.delivery is Delivery.STREAM and one.feed == "shares"
                for one in second.heard
            )


async def test_orders_are_asked_for_while_their_stream_is_down(broker: SandboxServer, http: httpx.Client) -> None:
    name, ear = "demo-20240131-1-AAA-B-1", Ear()
    rule = await asyncio.to_thread(broker.fault, "server_error", path="/stream", count=0)
    async with following(settings_of(broker), ear):
        await ear.wait_for("orders", Delivery.POLLING)
        body = order("AAA", qty="10", client_order_id=name)
        await asyncio.to_thread(http.post, "/v2/orders", json=body)
        await asyncio.to_thread(broker.advance, datetime(2024, 2, 1, 15, 0, tzinfo=UTC))
        hints = await ear.wait(OrderHint)
        assert hints == [OrderHint(name, "fill", START)]
        await asyncio.to_thread(broker.fault, "server_error", path="/v2/orders", method="GET")
        await ear.wait_for("orders", Delivery.DOWN)

        def polls_again(found: list[FeedMessage]) -> bool:
            states = [one.delivery for one in found if isinstance(one, FeedState) and one.feed == "orders"]
            return Delivery.POLLING in states[states.index(Delivery.DOWN) :]

        await ear.wait(FeedState, polls_again)
        await asyncio.to_thread(broker.clear_faults, rule)
        await ear.wait_for("orders", Delivery.STREAM)
    assert sum(isinstance(one, OrderHint) for one in ear.heard) == 1, "a change comes once"


async def test_refused_keys_end_the_feed(broker: SandboxServer) -> None:
    stranger = replace(settings_of(broker), key="PKNOBODY")
    async with following(stranger, Ear()) as task:
        with pytest.raises(CredentialsRefused, match=r"refuse[sd] the keys.*APCA_API_KEY_ID") as refused:
            await asyncio.wait_for(task, 600)
    assert "PKNOBODY" not in str(refused.value)


async def test_a_service_that_is_not_there_is_said_and_asked_again(broker: SandboxServer) -> None:
    settings = replace(settings_of(broker), trading_url="http://127.0.0.1:9", data_url="http://127.0.0.1:9")
    ear = Ear()
    async with following(settings, ear) as task:
        for feed in ("shares", "coins", "news", "orders"):
            assert (await ear.wait_for(feed, Delivery.DOWN)).detail == "no connection can be made"
        assert not task.done()


def test_the_addresses_of_the_services_own_streams() -> None:
    assert stream_address("https://data.alpaca.markets") == "wss://stream.data.alpaca.markets"
    settings = AlpacaSettings(key="k", secret="s")
    assert DataStream(settings, "shares", ["AAPL"]).url == "wss://stream.data.alpaca.markets/v2/iex"
    assert TradingStream(settings).url == "wss://paper-api.alpaca.markets/stream"


@pytest.mark.parametrize(
    "message",
    [
        {"T": "q", "S": "AAA", "bp": 1, "ap": 2},
        {"T": "q", "S": "AAA", "bp": "1", "ap": 2, "t": "2024-02-01T15:00:00Z"},
        {"T": "q", "S": "AAA", "bp": 0, "ap": 2, "t": "2024-02-01T15:00:00Z"},
        {"T": "t", "S": "AAA", "p": -1, "t": "2024-02-01T15:00:00Z"},
        {"T": "t", "S": "AAA", "p": 1, "t": "yesterday"},
        {"T": "n", "symbols": None, "headline": "x"},
        {"T": "something new", "S": "AAA"},
    ],
)
def test_a_message_of_another_shape_is_left_out(message: dict[str, object]) -> None:
    stream = DataStream(AlpacaSettings(key="k", secret="s"), "shares", ["AAA"])
    good = {"T": "t", "S": "AAA", "p": Decimal("1.5"), "t": "2024-02-01T15:00:00.123456789Z"}
    assert list(stream.read([message, good])) == [
        LastTrade("AAA", Decimal("1.5"), datetime(2024, 2, 1, 15, 0, 0, 123456, tzinfo=UTC))
    ]
    assert list(stream.read(message)) == []
