"""What the sandbox shows of its market: never more than has happened, page by page, on the scale that is asked for."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.sandbox import SandboxServer
from connectors.sandbox.bars import scales
from connectors.sandbox.data_api import DataApi
from connectors.sandbox.exchange import Exchange
from connectors.sandbox.protocol import Request, Router, to_json
from engine.domain.market import ActionKind, Bar, CorporateAction, PriceHistory
from engine.domain.run import ExecutionRules
from engine.simulation.price_basis import adjusted_by_actions
from tests.connectors.alpaca.sandbox_markets import FIRST, SPLIT_ON, START, exchange, market_data, order
from tests.examples import examples

SHARES = {"symbols": "AAA,BBB,GONE", "timeframe": "1Day", "start": "2024-01-02"}


def every_page(http: httpx.Client, path: str, **query: str) -> list[Any]:
    """All pages of an answer, in order."""
    pages, token = [], None
    while True:
        answer = http.get(path, params=query | ({"page_token": token} if token else {}))
        assert answer.status_code == 200, answer.text
        pages.append(answer.json())
        token = pages[-1]["next_page_token"]
        if token is None:
            return pages
        assert len(pages) < 200


def stamps(document: Any) -> list[datetime]:
    """Every moment in an answer."""
    if isinstance(document, dict):
        return [moment for value in document.values() for moment in stamps(value)]
    if isinstance(document, list):
        return [moment for value in document for moment in stamps(value)]
    if isinstance(document, datetime):
        return [document]
    return []


QUESTIONS = [
    ("/v2/stocks/bars", SHARES),
    ("/v2/stocks/bars", SHARES | {"adjustment": "all", "sort": "desc"}),
    ("/v2/stocks/bars", {"symbols": "AAA", "timeframe": "30Min", "start": "2024-02-01"}),
    ("/v2/stocks/bars", {"symbols": "AAA", "timeframe": "1Month", "start": "2024-01-01"}),
    ("/v2/stocks/snapshots", {"symbols": "AAA,BBB"}),
    ("/v1beta1/news", {"limit": "50", "end": "2024-03-15"}),
    ("/v1beta3/crypto/us/bars", {"symbols": "BTC/USD", "timeframe": "1Day", "start": "2024-01-02"}),
    ("/v1beta3/crypto/us/snapshots", {"symbols": "BTC/USD"}),
]


@examples(40)
@given(minutes=st.integers(0, 30 * 24 * 60), question=st.sampled_from(QUESTIONS))
def test_nothing_later_than_now_is_shown(minutes: int, question: tuple[str, dict[str, str]]) -> None:
    live = exchange()
    live.advance(START + timedelta(minutes=minutes))
    router = router_of(live)
    path, query = question
    _, now = router.answer(Request(method="GET", path=path, query=query))
    assert all(moment <= live.now for moment in stamps(now))
    without_future = exchange(data=cut_at(live.now))
    without_future.advance(live.now)
    again = router_of(without_future)
    assert to_json(again.answer(Request(method="GET", path=path, query=query))[1]) == to_json(now)


def router_of(live: Exchange) -> Router:
    router = Router()
    router.serve(DataApi(live))
    return router


def cut_at(moment: datetime) -> Any:
    """The market with the future replaced by nonsense."""
    whole = market_data()
    histories = {}
    for symbol, history in whole.histories.items():
        calendar = whole.calendars[symbol]
        bars = [
            bar
            if calendar.opens_at(bar.session) <= moment
            else Bar(
                session=bar.session,
                open=Decimal(9999),
                high=Decimal(9999),
                low=Decimal(9999),
                close=Decimal(9999),
                adj_close=None,
                volume=Decimal(7),
            )
            for bar in history
        ]
        histories[symbol] = PriceHistory.of(symbol, bars)
    news = {s: tuple(item for item in items if item.available_at <= moment) for s, items in whole.news.items()}
    return replace(whole, histories=histories, news=news)


@pytest.mark.parametrize(("limit", "sort"), [("1", "asc"), ("7", "asc"), ("7", "desc"), ("21", "asc"), ("22", "desc")])
def test_pages_of_bars_are_the_whole_in_pieces(http: httpx.Client, limit: str, sort: str) -> None:
    whole = http.get("/v2/stocks/bars", params=SHARES | {"sort": sort}).json()["bars"]
    assert {symbol: len(bars) for symbol, bars in whole.items()} == {"AAA": 21, "BBB": 21, "GONE": 21}
    found: dict[str, list[Any]] = {}
    for page in every_page(http, "/v2/stocks/bars", **SHARES, limit=limit, sort=sort):
        assert sum(map(len, page["bars"].values())) <= int(limit)
        for symbol, bars in page["bars"].items():
            found.setdefault(symbol, []).extend(bars)
    assert found == whole
    times = [bar["t"] for bar in found["AAA"]]
    assert times == sorted(times, reverse=sort == "desc")


@pytest.mark.parametrize("sort", ["asc", "desc"])
def test_pages_of_news_are_the_whole_in_pieces(http: httpx.Client, sort: str) -> None:
    pages = every_page(http, "/v1beta1/news", limit="7", sort=sort)
    headlines = [item["id"] for page in pages for item in page["news"]]
    assert len(headlines) == len(set(headlines)) == 21 * 3 - 1
    times = [item["updated_at"] for page in pages for item in page["news"]]
    assert times == sorted(times, reverse=sort == "desc")
    day = every_page(http, "/v1beta1/news", start="2024-01-30T00:00:00Z", end="2024-01-30", limit="50")
    assert [item["headline"] for item in day[0]["news"]] == ["AAA 19"] * 3
    assert http.get("/v1beta1/news", params={"symbols": "BBB"}).json()["news"] == []


def bars_of_aaa(http: httpx.Client, frame: str, start: str) -> list[dict[str, Any]]:
    query = {"symbols": "AAA", "timeframe": frame, "start": start}
    return list(http.get("/v2/stocks/bars", params=query).json()["bars"]["AAA"])


def test_the_day_that_is_going_on_is_cut_at_now(http: httpx.Client, broker: SandboxServer) -> None:
    broker.advance("open")
    broker.advance("1h")
    (bar,) = bars_of_aaa(http, "1Day", "2024-02-01")
    assert (bar["o"], bar["h"], bar["l"], bar["c"]) == (31.0, 31.0, 30.54, 30.54)
    assert bar["v"] == int(1_000_000 * 60 / 390)
    minute = http.get("/v2/stocks/bars/latest", params={"symbols": "AAA"}).json()["bars"]["AAA"]
    assert minute["t"] == "2024-02-01T15:29:00Z"


def test_quotes_have_the_spread_that_orders_pay(opened: Any, connected: Any) -> None:
    server = opened(rules=ExecutionRules(slippage_bp=Decimal(10)))
    http = connected(server)
    server.advance("open")
    quote = http.get("/v2/stocks/quotes/latest", params={"symbols": "AAA"}).json()["quotes"]["AAA"]
    assert (quote["bp"], quote["ap"]) == (30.969, 31.031)
    for side in ("sell", "buy"):
        http.post("/v2/orders", json=order("AAA", side, qty="1"))
    assert [one["filled_avg_price"] for one in server.state()["orders"]] == ["30.969", "31.031"]


def test_weeks_and_months_are_made_of_days(http: httpx.Client) -> None:
    days = bars_of_aaa(http, "1Day", "2024-01-02")
    for frame, count in (("1Week", 5), ("1Month", 1), ("3Month", 1)):
        bars = bars_of_aaa(http, frame, "2024-01-01")
        assert len(bars) == count, frame
        assert bars[0]["o"] == days[0]["o"] and bars[-1]["c"] == days[-1]["c"]
        assert max(bar["h"] for bar in bars) == max(bar["h"] for bar in days)
        assert sum(bar["v"] for bar in bars) == sum(bar["v"] for bar in days)
        assert bars[0]["t"] == "2024-01-01T05:00:00Z"


def test_wrong_questions_about_data(http: httpx.Client) -> None:
    for wrong in (
        SHARES | {"adjustment": "most"},
        SHARES | {"limit": "10001"},
        SHARES | {"start": "yesterday"},
        SHARES | {"page_token": "%%%"},
        {"timeframe": "1Day"},
        *(SHARES | {"timeframe": one} for one in ("", "1Year", "0Min", "60Min", "24Hour", "2Day", "13Month", "-1Min")),
    ):
        assert http.get("/v2/stocks/bars", params=wrong).status_code == 422, wrong
    assert http.get("/v2/stocks/bars", params=SHARES | {"symbols": "NONE,BTC/USD"}).json()["bars"] == {}
    assert http.get("/v2/stocks/quotes/latest", params={"symbols": "NONE"}).json()["quotes"] == {}


def flat(price: str | int) -> dict[str, Decimal]:
    return dict.fromkeys(("open", "high", "low", "close"), Decimal(price))


def closes(symbol: str, prices: list[str]) -> PriceHistory:
    days = [date(2024, 1, 2) + timedelta(days=n) for n in range(len(prices))]
    return PriceHistory.of(
        symbol,
        [Bar(session=d, **flat(p), adj_close=None, volume=Decimal(100)) for d, p in zip(days, prices, strict=True)],
    )


def test_adjusted_prices_are_those_of_the_backtest() -> None:
    history = closes("X", ["100", "101", "99.50", "49", "50", "50.25"])
    actions = (
        CorporateAction("X", date(2024, 1, 4), ActionKind.DIVIDEND, Decimal("1.25")),
        CorporateAction("X", date(2024, 1, 5), ActionKind.SPLIT, Decimal(2)),
        CorporateAction("X", date(2024, 1, 7), ActionKind.DIVIDEND, Decimal("0.5")),
    )
    ours = [round(c * one.price) for c, one in zip(history.close, scales(history, 6, actions, "all"), strict=True)]
    assert ours == list(adjusted_by_actions(history, actions, date(2024, 1, 7)).adj_close)
    by_split = scales(history, 6, actions, "split")
    assert [float(one.price) for one in by_split] == [0.5, 0.5, 0.5, 1, 1, 1]
    assert [float(one.volume) for one in by_split] == [2, 2, 2, 1, 1, 1]
    dividends = scales(history, 6, actions, "dividend")
    assert [float(one.volume) for one in dividends] == [1] * 6 and dividends[2].price == dividends[3].price


def test_without_actions_dividends_come_from_the_adjusted_close() -> None:
    days = [date(2024, 1, n) for n in range(2, 6)]
    known = [None, Decimal("45"), Decimal("49"), Decimal("49")]
    bars = [Bar(session=d, **flat(50), adj_close=one, volume=None) for d, one in zip(days, known, strict=True)]
    history = PriceHistory.of("X", bars)
    assert [float(one.price) for one in scales(history, 4, None, "all")] == [1, 45 / 49, 1, 1]
    assert [float(one.price) for one in scales(history, 4, None, "split")] == [1, 1, 1, 1]


def test_corporate_actions_are_known_from_their_day_on(http: httpx.Client, broker: SandboxServer) -> None:
    query = {"symbols": "BBB", "start": FIRST.isoformat(), "end": "2024-12-31"}
    assert http.get("/v1/corporate-actions", params=query).json()["corporate_actions"] == {}
    broker.advance(datetime(2024, 2, 12, 15, tzinfo=UTC))
    found = http.get("/v1/corporate-actions", params=query).json()["corporate_actions"]
    assert found["forward_splits"][0]["ex_date"] == SPLIT_ON.isoformat()
    assert found["cash_dividends"][0]["rate"] == 0.25
    only = http.get("/v1/corporate-actions", params=query | {"types": "cash_dividend"}).json()["corporate_actions"]
    assert list(only) == ["cash_dividends"]
    pages = every_page(http, "/v1/corporate-actions", **query, limit="1")
    assert [list(page["corporate_actions"]) for page in pages] == [["forward_splits"], ["cash_dividends"]]
