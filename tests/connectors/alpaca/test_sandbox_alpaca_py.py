"""The real alpaca-py clients, unpatched, against the sandbox."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from alpaca.common.exceptions import APIError
from alpaca.data.historical import CryptoHistoricalDataClient, NewsClient, StockHistoricalDataClient
from alpaca.data.historical.corporate_actions import CorporateActionsClient
from alpaca.data.live import CryptoDataStream, NewsDataStream, StockDataStream
from alpaca.data.requests import (
    CorporateActionsRequest,
    CryptoBarsRequest,
    CryptoLatestQuoteRequest,
    NewsRequest,
    StockBarsRequest,
    StockLatestBarRequest,
    StockLatestQuoteRequest,
    StockLatestTradeRequest,
    StockSnapshotRequest,
)
from alpaca.data.timeframe import TimeFrame
from alpaca.trading.client import TradingClient
from alpaca.trading.enums import OrderSide, QueryOrderStatus, TimeInForce
from alpaca.trading.requests import (
    GetAssetsRequest,
    GetCalendarRequest,
    GetOrdersRequest,
    GetPortfolioHistoryRequest,
    LimitOrderRequest,
    MarketOrderRequest,
    ReplaceOrderRequest,
)
from alpaca.trading.stream import TradingStream

from connectors.sandbox import SandboxServer

DAY = TimeInForce.DAY


def client_of(server: SandboxServer, kind: Any, **options: Any) -> Any:
    return kind(server.settings.key, server.settings.secret, url_override=server.url, **options)


@pytest.fixture
def trading(broker: SandboxServer) -> TradingClient:
    client: TradingClient = client_of(broker, TradingClient)
    return client


def market(symbol: str, **fields: Any) -> MarketOrderRequest:
    return MarketOrderRequest(**{"symbol": symbol, "side": OrderSide.BUY, "time_in_force": DAY} | fields)


def test_an_order_lives_and_the_account_follows(broker: SandboxServer, trading: TradingClient) -> None:
    placed = trading.submit_order(market("AAA", notional=310, client_order_id="desk-1"))
    assert (placed.status, placed.client_order_id) == ("accepted", "desk-1")
    broker.advance("open")
    filled = trading.get_order_by_client_id("desk-1")
    assert (filled.status, filled.filled_qty, filled.filled_avg_price) == ("filled", "10", "31")
    assert trading.get_order_by_id(placed.id).filled_at == datetime(2024, 2, 1, 14, 30, tzinfo=UTC)
    (position,) = trading.get_all_positions()
    assert (position.symbol, position.qty, position.cost_basis) == ("AAA", "10", "310")
    assert trading.get_open_position("AAA").asset_id == trading.get_asset("AAA").id
    account = trading.get_account()
    assert (account.cash, account.equity) == ("99690", "100000")
    trading.close_position("AAA")
    assert trading.get_all_positions() == []


def test_open_orders_are_changed_and_withdrawn(broker: SandboxServer, trading: TradingClient) -> None:
    order = trading.submit_order(
        LimitOrderRequest(symbol="AAA", qty=2, side=OrderSide.BUY, time_in_force=TimeInForce.GTC, limit_price=12)
    )
    changed = trading.replace_order_by_id(order.id, ReplaceOrderRequest(qty=3, limit_price=13))
    assert (changed.qty, changed.limit_price, changed.replaces) == ("3", "13", order.id)
    assert trading.get_order_by_id(order.id).replaced_by == changed.id
    assert [one.id for one in trading.get_orders()] == [changed.id]
    trading.cancel_order_by_id(changed.id)
    everything = trading.get_orders(GetOrdersRequest(status=QueryOrderStatus.ALL))
    assert {one.status for one in everything} == {"replaced", "canceled"}
    with pytest.raises(APIError) as error:
        trading.cancel_order_by_id(changed.id)
    assert error.value.status_code == 422
    assert error.value.message == 'order is already in "canceled" state'


def test_the_clock_the_calendar_and_the_history(broker: SandboxServer, trading: TradingClient) -> None:
    assert not trading.get_clock().is_open
    broker.advance("open")
    clock = trading.get_clock()
    assert clock.is_open and clock.timestamp == datetime(2024, 2, 1, 14, 30, tzinfo=UTC)
    (day,) = trading.get_calendar(GetCalendarRequest(start="2024-07-03", end="2024-07-03"))
    assert [f"{moment:%Y-%m-%d %H:%M}" for moment in (day.open, day.close)] == ["2024-07-03 09:30", "2024-07-03 13:00"]
    assert {asset.symbol for asset in trading.get_all_assets(GetAssetsRequest(asset_class="crypto"))} == {"BTC/USD"}
    history = trading.get_portfolio_history(GetPortfolioHistoryRequest(period="1W"))
    assert history.equity == [100000.0]
    assert trading.get_account_configurations().no_shorting is False


def test_what_the_clients_do_with_errors(broker: SandboxServer, trading: TradingClient) -> None:
    trading.submit_order(market("AAA", qty=1, client_order_id="one"))
    with pytest.raises(APIError) as twice:
        trading.submit_order(market("AAA", qty=1, client_order_id="one"))
    assert (twice.value.code, twice.value.message) == (40010001, "client_order_id must be unique")
    with pytest.raises(APIError) as poor:
        trading.submit_order(market("AAA", qty=1_000_000))
    assert (poor.value.status_code, poor.value.code) == (403, 40310000)
    with pytest.raises(APIError) as unknown:
        trading.get_order_by_client_id("never")
    assert (unknown.value.status_code, unknown.value.code) == (404, 40410000)
    stranger = TradingClient("other", "keys", url_override=broker.url)
    with pytest.raises(APIError) as refused:
        stranger.get_account()
    assert (refused.value.status_code, refused.value.code) == (401, 40110000)


@pytest.mark.parametrize("tail", ["/", "/v2"])
def test_the_base_url_takes_no_slash_and_no_version(broker: SandboxServer, tail: str) -> None:
    client = TradingClient(broker.settings.key, broker.settings.secret, url_override=broker.url + tail)
    with pytest.raises(APIError) as error:
        client.get_account()
    assert error.value.status_code == 404


def test_a_timeout_after_acceptance_is_sent_again_and_refused_although_the_order_lives(
    broker: SandboxServer, trading: TradingClient
) -> None:
    broker.fault("gateway_timeout", method="POST", path="/v2/orders")
    trading._retry_wait = 0  # the client's own pause; what it does after it stays its own
    with pytest.raises(APIError) as error:
        trading.submit_order(market("AAA", qty=1, client_order_id="lives"))
    assert error.value.message == "client_order_id must be unique"
    assert trading.get_order_by_client_id("lives").status == "accepted"
    assert broker.state()["posts"] == {"lives": 2}
    broker.fault("gateway_timeout", method="POST", path="/v2/orders")
    trading.submit_order(market("BBB", qty=1))
    assert len([order for order in broker.state()["orders"] if order["symbol"] == "BBB"]) == 2


def test_the_data_clients_read_every_kind_of_answer_page_by_page(broker: SandboxServer) -> None:
    data, start = client_of(broker, StockHistoricalDataClient), datetime(2024, 1, 2, tzinfo=UTC)
    paged = StockBarsRequest(symbol_or_symbols=["AAA", "BBB"], timeframe=TimeFrame.Day, start=start, limit=25)
    assert {symbol: len(found) for symbol, found in data.get_stock_bars(paged).data.items()} == {"AAA": 21, "BBB": 4}
    assert data.get_stock_latest_quote(StockLatestQuoteRequest(symbol_or_symbols="AAA"))["AAA"].ask_price == 30.5
    assert data.get_stock_latest_trade(StockLatestTradeRequest(symbol_or_symbols="AAA"))["AAA"].price == 30.5
    assert data.get_stock_latest_bar(StockLatestBarRequest(symbol_or_symbols="AAA"))["AAA"].close == 30.5
    snapshot = data.get_stock_snapshot(StockSnapshotRequest(symbol_or_symbols="AAA"))["AAA"]
    assert (snapshot.daily_bar.close, snapshot.previous_daily_bar.close) == (30.5, 29.5)
    coins = client_of(broker, CryptoHistoricalDataClient)
    bars = coins.get_crypto_bars(CryptoBarsRequest(symbol_or_symbols="BTC/USD", timeframe=TimeFrame.Day, start=start))
    assert len(bars.data["BTC/USD"]) == 30
    quote = CryptoLatestQuoteRequest(symbol_or_symbols="BTC/USD")
    assert coins.get_crypto_latest_quote(quote)["BTC/USD"].ask_price > 40_000
    every = client_of(broker, NewsClient).get_news(NewsRequest(symbols="AAA", start=start, sort="asc")).data["news"]
    assert len({item.id for item in every}) == len(every) == 21 * 3 - 1, "the item of 22:00 is not out yet"
    broker.advance(datetime(2024, 2, 5, 22, tzinfo=UTC))
    asked = CorporateActionsRequest(symbols=["BBB"], start="2024-01-01")
    (split,) = client_of(broker, CorporateActionsClient).get_corporate_actions(asked).data["forward_splits"]
    assert (split.new_rate, split.old_rate) == (2, 1)


@contextmanager
def running(stream: Any) -> Iterator[None]:
    """Runs a stream in a thread of its own, as its users do."""
    thread = threading.Thread(target=lambda: asyncio.run(stream._run_forever()), daemon=True)
    thread.start()
    try:
        yield
    finally:
        if stream._loop is not None and stream._loop.is_running():
            asyncio.run_coroutine_threadsafe(stream.stop_ws(), stream._loop).result(60)
            asyncio.run_coroutine_threadsafe(stream.close(), stream._loop).result(60)
        thread.join(60)
        assert not thread.is_alive()


class Heard(list[Any]):
    """What a stream brought."""

    def __init__(self) -> None:
        super().__init__()
        self._more = threading.Condition()

    async def take(self, message: Any) -> None:
        with self._more:
            self.append(message)
            self._more.notify_all()

    def wait(self, enough: Callable[[list[Any]], bool]) -> None:
        with self._more:
            assert self._more.wait_for(lambda: enough(self), timeout=600), list(self)


def listening(server: SandboxServer, path: str) -> None:
    """Waits until a client of a stream has subscribed."""
    for _ in range(6000):
        if any(client.path == path and any(client.subscriptions.values()) for client in list(server.streams.clients)):
            return
        threading.Event().wait(0.01)
    raise AssertionError(f"nobody listens to {path}")


def test_trade_updates_arrive(broker: SandboxServer, trading: TradingClient) -> None:
    heard = Heard()
    stream = TradingStream(broker.settings.key, broker.settings.secret, url_override=broker.stream_url + "/stream")
    stream.subscribe_trade_updates(heard.take)
    with running(stream):
        listening(broker, "/stream")
        trading.submit_order(market("AAA", qty=10, client_order_id="seen"))
        broker.advance("open")
        heard.wait(lambda events: len(events) == 3)
    assert [update.event for update in heard] == ["accepted", "new", "fill"]
    assert (heard[2].price, heard[2].qty, heard[2].position_qty) == (31.0, 10.0, 10.0)
    assert {update.order.client_order_id for update in heard} == {"seen"}
    assert heard[2].execution_id != heard[1].execution_id


def test_live_quotes_bars_and_news_arrive(broker: SandboxServer) -> None:
    quotes, bars, coins, news = Heard(), Heard(), Heard(), Heard()
    key = broker.settings.key, broker.settings.secret
    shares = StockDataStream(*key, url_override=broker.stream_url + "/v2/iex")
    shares.subscribe_quotes(quotes.take, "AAA")
    shares.subscribe_bars(bars.take, "*")
    crypto = CryptoDataStream(*key, url_override=broker.stream_url + "/v1beta3/crypto/us")
    crypto.subscribe_quotes(coins.take, "BTC/USD")
    reader = NewsDataStream(*key, url_override=broker.stream_url + "/v1beta1/news")
    reader.subscribe_news(news.take, "*")
    with running(shares), running(crypto), running(reader):
        for path in ("/v2/iex", "/v1beta3/crypto/us", "/v1beta1/news"):
            listening(broker, path)
        broker.advance(datetime(2024, 2, 1, 15, 0, tzinfo=UTC))
        quotes.wait(lambda found: len(found) == 2)
        bars.wait(lambda found: len(found) == 3)
        coins.wait(lambda found: len(found) >= 1)
        news.wait(lambda found: len(found) == 3)
    assert [quote.timestamp.hour for quote in quotes] == [14, 15]
    assert quotes[0].bid_price == 31.0
    assert {bar.symbol for bar in bars} == {"AAA", "BBB", "GONE"}
    assert {bar.timestamp for bar in bars} == {datetime(2024, 2, 1, 14, 59, tzinfo=UTC)}
    assert [item.headline for item in news] == ["AAA 20", "AAA 21", "AAA 21"]


def test_one_connection_per_feed_and_the_right_key(broker: SandboxServer) -> None:
    """As the service: a second client of a feed is refused, and so is a wrong key."""

    def attempt(key: str) -> str:
        stream = StockDataStream(key, broker.settings.secret, url_override=broker.stream_url + "/v2/iex")

        async def connect() -> str:
            try:
                await stream._start_ws()
                return "authenticated"
            except ValueError as error:
                return str(error)
            finally:
                await stream.close()

        return asyncio.run(connect())

    first = StockDataStream(broker.settings.key, broker.settings.secret, url_override=broker.stream_url + "/v2/iex")
    first.subscribe_quotes(Heard().take, "AAA")
    with running(first):
        listening(broker, "/v2/iex")
        assert attempt(broker.settings.key) == "connection limit exceeded"
    assert attempt("stranger") == "auth failed"
    assert attempt(broker.settings.key) == "authenticated"
