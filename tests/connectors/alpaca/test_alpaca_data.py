"""Alpaca's market data against a service on loopback that says what the real one was seen to say."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from email.utils import format_datetime
from typing import Any

import pytest

from connectors.alpaca.market_data import AlpacaData
from connectors.alpaca.settings import AlpacaSettings
from connectors.text import plain
from engine.domain.live import MinuteBar
from engine.domain.market import ActionKind, Bar
from engine.errors import ConfigError, CredentialsRefused, MissingData, NetworkError, TryAgainLater
from tests.servers.fake_web import Asked, FakeWeb, Page, fake_web

KEY, SECRET = "PKTESTKEY0123456789A", "a-secret-of-nobody-0123456789"

Answer = Callable[[Asked], Any]


@contextmanager
def service(answer: Answer) -> Iterator[tuple[FakeWeb, AlpacaData]]:
    """A service that answers with JSON documents, or with whole pages."""

    def page(asked: Asked) -> Page:
        said = answer(asked)
        return said if isinstance(said, Page) else Page(body=json.dumps(said).encode())

    with fake_web(page) as web:
        settings = AlpacaSettings(key=KEY, secret=SECRET, trading_url=web.url, data_url=web.url, timeout=600)
        yield web, AlpacaData(settings, first_pause=0.001, longest_wait=3.0)


async def every(asked: Any) -> list[Any]:
    return [one async for one in asked]


def row(at: str, price: float, volume: float = 10) -> dict[str, Any]:
    return {"t": at, "o": price, "h": price + 2, "l": price - 1, "c": price + 1, "v": volume, "n": 1, "vw": price}


def pages_of(*pages: dict[str, Any]) -> Answer:
    """The pages of one answer, by their tokens."""

    def answer(asked: Asked) -> Any:
        at = int(asked.query.get("page_token", "0"))
        return {**pages[at], "next_page_token": str(at + 1) if at + 1 < len(pages) else None}

    return answer


async def test_minutes_come_page_after_page_shares_and_crypto_by_their_own_addresses() -> None:
    first = {"bars": {"AAA": [row("2024-03-01T14:30:00Z", 10.25), row("2024-03-01T14:31:00Z", 10.5)]}}
    second = {"bars": {"AAA": [row("2024-03-01T14:32:00Z", 11)], "BTC/USD": [row("2024-03-01T14:30:00Z", 60000)]}}
    begins, ends = datetime(2024, 3, 1, 14, 30, tzinfo=UTC), datetime(2024, 3, 1, 14, 32, 20, tzinfo=UTC)
    with service(pages_of(first, second)) as (web, data):
        minutes = await data.minutes("AAA", begins, ends)
        coins = await data.minutes("BTC-USD", begins, ends)
        await data.aclose()
    assert [bar.begins.minute for bar in minutes] == [30, 31, 32]
    assert minutes[0] == MinuteBar(
        begins=begins,
        open=Decimal("10.25"),
        high=Decimal("12.25"),
        low=Decimal("9.25"),
        close=Decimal("11.25"),
        volume=Decimal(10),
    )
    assert [bar.open for bar in coins] == [60000]
    shares, crypto = web.asked[0], web.asked[-1]
    assert (shares.path, crypto.path) == ("/v2/stocks/bars", "/v1beta3/crypto/us/bars")
    assert shares.query["timeframe"] == crypto.query["timeframe"] == "1Min"
    assert (shares.query["feed"], shares.query["adjustment"]) == ("iex", "raw") and "feed" not in crypto.query
    assert (shares.query["start"], shares.query["end"]) == ("2024-03-01T14:30:00Z", "2024-03-01T14:32:20Z")


async def test_bars_come_page_after_page_with_what_was_asked_for() -> None:
    first = {"bars": {"AAA": [row("2024-01-02T05:00:00Z", 10.25)]}}
    second = {"bars": {"AAA": [row("2024-07-03T04:00:00Z", 11)], "BRK.B": [row("2024-07-03T04:00:00Z", 400)]}}
    with service(pages_of(first, second)) as (web, data):
        found = await every(data.bars(["AAA", "BRK.B"], date(2024, 1, 2), date(2024, 7, 3)))
        await data.aclose()
    assert [(symbol, [bar.session for bar in bars]) for symbol, bars in found] == [
        ("AAA", [date(2024, 1, 2)]),
        ("AAA", [date(2024, 7, 3)]),
        ("BRK.B", [date(2024, 7, 3)]),
    ]
    assert found[0][1][0] == Bar(
        session=date(2024, 1, 2),
        open=Decimal("10.25"),
        high=Decimal("12.25"),
        low=Decimal("9.25"),
        close=Decimal("11.25"),
        adj_close=None,
        volume=Decimal(10),
    )
    asked = web.asked[0]
    assert asked.query == {
        "symbols": "AAA,BRK.B",
        "timeframe": "1Day",
        "start": "2024-01-02T05:00:00Z",
        "end": "2024-07-03T04:00:00Z",
        "adjustment": "raw",
        "feed": "iex",
        "limit": "10000",
        "sort": "asc",
    }
    assert (asked.headers["apca-api-key-id"], asked.headers["apca-api-secret-key"]) == (KEY, SECRET)
    assert [one.query.get("page_token") for one in web.asked] == [None, "1"]


async def test_coins_whose_day_begins_in_chicago_are_put_together_from_hours() -> None:
    def answer(asked: Asked) -> Any:
        if asked.query["timeframe"] == "1Day":
            bars = {"BTC/USD": [row("2022-01-01T06:00:00Z", 47218)], "ETH/USD": [row("2022-01-01T00:00:00Z", 3700)]}
        else:
            assert asked.query["symbols"] == "BTC/USD"
            hours = [row("2022-01-01T00:00:00Z", 100, 0.5), row("2022-01-01T23:00:00Z", 90, 0.25)]
            bars = {"BTC/USD": [*hours, row("2022-01-02T00:00:00Z", 95, 1)]}
        return {"bars": bars, "next_page_token": None}

    with service(answer) as (web, data):
        found = dict(await every(data.bars(["BTC-USD", "ETH-USD"], date(2022, 1, 1), date(2022, 1, 2))))
        await data.aclose()
    day, following = found["BTC-USD"]
    assert (day.session, day.open, day.high, day.low, day.close) == (
        date(2022, 1, 1),
        Decimal(100),
        Decimal(102),
        Decimal(89),
        Decimal(91),
    )
    assert day.volume == Decimal("0.75")
    assert (following.session, following.open) == (date(2022, 1, 2), Decimal(95))
    assert found["ETH-USD"][0].open == Decimal(3700)
    assert web.asked[0].path == "/v1beta3/crypto/us/bars"
    assert (web.asked[0].query["start"], web.asked[0].query["end"]) == ("2022-01-01T00:00:00Z", "2022-01-02T23:59:59Z")


def dated(day: str, **fields: Any) -> dict[str, Any]:
    return {"id": f"{day}{sorted(fields.items())}", "process_date": day, "ex_date": day, **fields}


async def test_actions_by_ex_date_whatever_they_are_called() -> None:
    said = {
        "cash_dividends": [
            dated("2024-05-10", symbol="AAA", rate=0.25, special=False) | {"process_date": "2024-06-20"},
            dated("2024-05-10", symbol="AAA", rate=1.5, special=True),
            dated("2024-05-13", symbol="AAA", rate=3, currency="CAD"),
            dated("2024-06-30", symbol="AAA", rate=0.25),  # after what was asked for
            dated("2024-05-10", symbol="ZZZ", rate=9),
        ],
        "forward_splits": [dated("2024-06-10", symbol="AAA", new_rate=10, old_rate=1)],
        "reverse_splits": [dated("2024-06-11", symbol="BBB", new_rate=1, old_rate=50)],
        "stock_dividends": [dated("2024-06-12", symbol="BBB", rate=0.05)],
        "spin_offs": [dated("2024-06-14", source_symbol="BBB", source_rate=4, new_symbol="NEW", new_rate=1)],
        "name_changes": [{"id": "n", "process_date": "2024-06-01", "old_symbol": "BBB", "new_symbol": "BBBB"}],
    }
    with service(pages_of({"corporate_actions": said}, {"corporate_actions": said})) as (web, data):
        found = await data.actions(["AAA", "BBB", "BTC-USD"], date(2024, 1, 2), date(2024, 6, 28))
        await data.aclose()
    assert [(one.ex_date, one.kind, one.value) for one in found["AAA"].actions] == [
        (date(2024, 5, 10), ActionKind.DIVIDEND, Decimal("1.75")),
        (date(2024, 6, 10), ActionKind.SPLIT, Decimal(10)),
    ]
    assert [(one.ex_date, one.value) for one in found["BBB"].actions] == [
        (date(2024, 6, 11), Decimal("0.02")),
        (date(2024, 6, 12), Decimal("1.05")),
    ]
    assert found["AAA"].unsupported == ((date(2024, 5, 13), "dividend in another currency"),)
    assert found["BBB"].unsupported == ((date(2024, 6, 14), "spin-off"),)
    assert set(found) == {"AAA", "BBB"}
    # The service selects by the day of processing, which for a dividend is weeks after the ex-date.
    assert web.asked[0].query["end"] > "2024-12-31"


def article(number: int, **fields: Any) -> dict[str, Any]:
    at = f"2024-02-01T{number:02d}:00:00Z"
    return {
        "id": number,
        "headline": f"H{number}",
        "summary": "",
        "author": "a",
        "created_at": at,
        "updated_at": at,
        "content": "",
        "images": [],
        "symbols": ["AAA"],
        "source": "benzinga",
        "url": f"https://news.test/{number}",
        **fields,
    }


async def test_news_is_asked_for_with_a_limit_and_is_about_what_was_asked_for() -> None:
    coin = article(2, symbols=["BTCUSD", "AAA", "OTHER"], updated_at="2024-02-03T00:00:00Z", summary="&lt;b&gt; x")
    with service(pages_of({"news": [article(1)]}, {"news": [coin, article(3, symbols=["OTHER"])]})) as (web, data):
        first = datetime(2024, 2, 1, tzinfo=UTC)
        found = await every(data.news(["AAA", "BTC-USD"], first, first + timedelta(days=3)))
        await data.aclose()
    items = [item for page in found for item in page]
    assert [(item.id, item.symbol) for item in items] == [("1", "AAA"), ("2", "BTC-USD"), ("2", "AAA")]
    assert (items[1].published, items[1].available_at) == (
        datetime(2024, 2, 1, 2, tzinfo=UTC),
        datetime(2024, 2, 3, tzinfo=UTC),
    )
    assert (items[1].summary, items[1].url, items[1].source) == ("<b> x", "https://news.test/2", "benzinga")
    assert web.asked[0].query["limit"] == "50"
    assert web.asked[0].query["sort"] == "asc"
    assert web.asked[0].query["symbols"] == "AAA,BTCUSD"


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("<p>One</p>\n<p>two &amp; three</p>", "One two & three"),
        ("5 < 6 and 7 > 6", "5 < 6 and 7 > 6"),
        ("a<style>b { c }</style><!-- d -->e", "a e"),
        ("", ""),
    ],
)
def test_texts_lose_their_markup(text: str, seen: str) -> None:
    assert plain(text) == seen


async def test_pages_that_never_end_are_left() -> None:
    with service(lambda asked: {"news": [article(1)], "next_page_token": "again"}) as (web, data):
        with pytest.raises(NetworkError, match="never reaches the last page"):
            await every(data.news(["AAA"], datetime(2024, 2, 1, tzinfo=UTC), datetime(2024, 2, 2, tzinfo=UTC)))
        await data.aclose()
    assert len(web.asked) == 2


@pytest.mark.parametrize(
    ("status", "message", "error", "said"),
    [
        (401, "unauthorized", CredentialsRefused, "APCA_API_KEY_ID"),
        (403, "forbidden.", CredentialsRefused, "APCA_API_SECRET_KEY"),
        (403, "subscription does not permit querying recent SIP data", ConfigError, 'broker.feed = "iex"'),
        (400, "invalid symbol: AA%A", MissingData, "AA%A"),
        (422, "end should not be before start", NetworkError, "HTTP 422"),
        (404, "Not Found", ConfigError, "broker.data_url"),
        (500, f"{SECRET} broke", NetworkError, "4 times over"),
        (422, f"no {SECRET} here", NetworkError, "no .a key. here"),
    ],
)
async def test_refusals_are_one_line_without_keys(status: int, message: str, error: type[Exception], said: str) -> None:
    body = json.dumps({"message": message}).encode()
    with service(lambda asked: Page(body=body, status=status)) as (_, data):
        with pytest.raises(error, match=said) as raised:
            await every(data.bars(["AAA"], date(2024, 1, 2), date(2024, 1, 3)))
        await data.aclose()
    assert "\n" not in str(raised.value)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    "document",
    [
        {"bars": {"AAA": [{"t": "2024-01-02T05:00:00Z"}]}, "next_page_token": None},
        {"bars": {"AAA": [row("yesterday", 1)]}, "next_page_token": None},
        {"bars": {"AAA": [row("2024-01-02T05:00:00Z", 1) | {"c": "x"}]}, "next_page_token": None},
        {"bars": [1], "next_page_token": None},
        {"bars": {}, "next_page_token": 7},
        ["no object"],
    ],
)
async def test_nonsense_is_asked_for_again_and_then_said(document: Any) -> None:
    with service(lambda asked: document) as (web, data):
        with pytest.raises(NetworkError, match="cannot be read"):
            await every(data.bars(["AAA"], date(2024, 1, 2), date(2024, 1, 3)))
        await data.aclose()
    assert len(web.asked) == 4


NOW = datetime(2024, 2, 1, 12, tzinfo=UTC)


def limited(seconds: float, remaining: int) -> tuple[tuple[str, str], ...]:
    until = int((NOW + timedelta(seconds=seconds)).timestamp())
    return (("X-RateLimit-Remaining", str(remaining)), ("X-RateLimit-Reset", str(until)))


async def test_too_many_requests_wait_as_long_as_they_are_told() -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    document: dict[str, Any] = {"bars": {}, "next_page_token": None}
    with service(lambda asked: document) as (web, data), pytest.MonkeyPatch.context() as patch:
        patch.setattr("connectors.rate_limited_http.asyncio.sleep", sleep)
        patch.setattr(
            "tests.servers.fake_web._Handler.date_time_string", lambda self: format_datetime(NOW, usegmt=True)
        )
        web.fail(
            Page(body=b"", status=429, headers=limited(2, 5)),
            Page(body=b"", status=429, headers=(("Retry-After", "1"),)),
        )
        await every(data.bars(["AAA"], date(2024, 1, 2), date(2024, 1, 3)))
        assert [seconds for seconds in waited if seconds >= 1] == [2.0, 1.0]
        web.fail(Page(body=b"", status=429, headers=limited(60, 0)))
        with pytest.raises(TryAgainLater, match="60 s"):
            await every(data.bars(["AAA"], date(2024, 1, 2), date(2024, 1, 3)))
        await data.aclose()
