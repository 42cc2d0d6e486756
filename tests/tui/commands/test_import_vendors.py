"""`paperdesk import` on files as their vendors deliver them: column names, stamps and shapes of each."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.tui.commands.conftest import Run, Said

Import = Callable[..., Said]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def bring(run: Run, fresh: Path, tmp_path: Path, folder: Path) -> Import:
    """Imports kinds of data from a file with this content: text, or what becomes JSON."""

    def called(kinds: str, name: str, content: Any, *more: str) -> Said:
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return run("import", kinds, str(path), "--data", str(folder), "--json", *more)

    return called


def brought(bring: Import, kinds: str, name: str, content: Any, *more: str) -> Any:
    """The document of an import that works, and the same import again changes nothing."""
    said = bring(kinds, name, content, *more)
    assert said.code == 0, said.err
    again = bring(kinds, name, content, *more)
    assert (again.json["added"], again.json["replaced"]) == (0, 0)
    return said.json


def rows(folder: Path, kind: str, symbol: str) -> list[str]:
    """The rows of a file; figures of actions without the zeros at their end, which are kept as they came."""
    lines = (folder / kind / f"{symbol}.csv").read_text().splitlines()[1:]
    return [re.sub(r"\.?0+$", "", line) if kind == "actions" and "." in line else line for line in lines]


def records(folder: Path, kind: str, symbol: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / kind / f"{symbol}.jsonl").read_text().splitlines()]


AAPL = ["2024-01-02,187,188,183,185,,82488700", "2024-01-03,184,185.5,183,184,,58414500"]


# yfinance


def test_yfinance_download_with_two_lines_of_header(bring: Import, folder: Path) -> None:
    text = (
        "Price,Close,Close,High,High,Low,Low,Open,Open,Volume,Volume\n"
        "Ticker,AAPL,MSFT,AAPL,MSFT,AAPL,MSFT,AAPL,MSFT,AAPL,MSFT\n"
        "Date,,,,,,,,,,\n"
        "2024-01-02,185,370,188,375,183,366,187,373,82488700,25258600\n"
        "2024-01-03,184,,185.5,,183,,184,,58414500,\n"
    )
    document = brought(bring, "prices", "yf.csv", text)
    assert [Path(one["path"]).stem for one in document["files"]] == ["AAPL", "MSFT"]
    assert rows(folder, "prices", "AAPL") == AAPL
    assert rows(folder, "prices", "MSFT") == ["2024-01-02,373,375,366,370,,25258600"]
    grouped = (
        "Ticker,AAPL,AAPL,AAPL,AAPL,AAPL\nPrice,Open,High,Low,Close,Volume\nDate,,,,,\n"
        "2024-01-02,187,188,183,185,82488700\n"
    )
    assert bring("prices", "grouped.csv", grouped, "--symbol", "AAPL").json["unchanged"] == 1


def test_yfinance_history_brings_prices_and_actions_in_one_call(bring: Import, folder: Path) -> None:
    text = (
        "Date,Open,High,Low,Close,Volume,Dividends,Stock Splits\n"
        "2024-02-08 00:00:00-05:00,189,190,187,188,40962000,0.0,0.0\n"
        "2024-02-09 00:00:00-05:00,188,190,187,189,45155200,0.24,0.0\n"
        "2024-02-12 00:00:00-05:00,94,95,93,94,90310400,0.0,2.0\n"
    )
    document = brought(bring, "prices,actions", "history.csv", text, "--symbol", "AAPL")
    assert [one["added"] for one in document["files"]] == [3, 2]
    assert rows(folder, "actions", "AAPL") == ["2024-02-09,dividend,0.24", "2024-02-12,split,2"]
    assert rows(folder, "prices", "AAPL")[0] == "2024-02-08,189,190,187,188,,40962000"


def test_yfinance_adjusts_its_bars_so_that_its_splits_are_left_out_or_refused(bring: Import, folder: Path) -> None:
    text = (
        "Date,Open,High,Low,Close,Volume,Dividends,Stock Splits\n"
        "2024-02-09,94,95,93.5,94.5,45155200,0.12,0.0\n2024-02-12,94,95,93,94,90310400,0.0,2.0\n"
    )
    said = bring("prices,actions", "history.csv", text, "--symbol", "AAPL")
    assert (said.code, "adjusted already" in said.err) == (65, True)
    assert not folder.exists()
    assert bring("prices,actions", "history.csv", text, "--symbol", "AAPL", "--map", "split=").code == 0
    assert rows(folder, "actions", "AAPL") == ["2024-02-09,dividend,0.12"]


def test_yfinance_news_and_filings(bring: Import, folder: Path) -> None:
    news = [
        {
            "id": "b3f2",
            "content": {
                "title": "Apple ships",
                "summary": "It ships.",
                "pubDate": "2024-02-08T14:30:00Z",
                "provider": {"displayName": "Wire"},
            },
        },
        {"title": "Old form", "publisher": "Paper", "providerPublishTime": 1707402600, "relatedTickers": ["AAPL"]},
    ]
    brought(bring, "news", "news.json", news, "--symbol", "AAPL")
    first, second = records(folder, "news", "AAPL")
    assert (first["headline"], first["source"], first["created"]) == ("Apple ships", "Wire", "2024-02-08T14:30:00Z")
    assert (second["source"], second["created"]) == ("Paper", "2024-02-08T14:30:00Z")
    filings = [{"date": "2024-02-02", "epochDate": 1706832000, "type": "10-Q", "title": "Quarterly report"}]
    brought(bring, "filings", "filings.json", filings, "--symbol", "AAPL")
    assert records(folder, "filings", "AAPL")[0]["form"] == "10-Q"


# Alpaca


def test_alpaca(bring: Import, folder: Path) -> None:
    answer = {
        "bars": {
            "AAPL": [
                {
                    "t": "2024-01-02T05:00:00Z",
                    "o": 187,
                    "h": 188,
                    "l": 183,
                    "c": 185,
                    "v": 82488700,
                    "n": 9,
                    "vw": 185.5,
                },
                {
                    "t": "2024-01-03T05:00:00Z",
                    "o": 184,
                    "h": 185.5,
                    "l": 183,
                    "c": 184,
                    "v": 58414500,
                    "n": 9,
                    "vw": 184,
                },
            ],
            "MSFT": [{"t": "2024-07-02T04:00:00Z", "o": 453, "h": 459, "l": 453, "c": 459, "v": 1, "n": 9, "vw": 456}],
        },
        "next_page_token": None,
    }
    brought(bring, "prices", "bars.json", answer)
    assert rows(folder, "prices", "AAPL") == AAPL
    assert rows(folder, "prices", "MSFT")[0].startswith("2024-07-02,")
    frame = (
        "symbol,timestamp,open,high,low,close,volume,trade_count,vwap\n"
        "AAPL,2024-01-02 05:00:00+00:00,187,188,183,185,82488700,9,185.5\n"
    )
    assert bring("prices", "frame.csv", frame).json["unchanged"] == 1
    actions = {
        "corporate_actions": {
            "cash_dividends": [{"symbol": "AAPL", "rate": 0.24, "ex_date": "2024-02-09", "process_date": "2024-02-15"}],
            "forward_splits": [{"symbol": "AAPL", "new_rate": 4, "old_rate": 1, "ex_date": "2020-08-31"}],
            "stock_dividends": [{"symbol": "MSFT", "rate": 0.05, "ex_date": "2024-03-01"}],
            "spin_offs": [{"source_symbol": "AAPL", "symbol": "AAPL", "ex_date": "2024-04-01", "source_rate": 1}],
        }
    }
    document = brought(bring, "actions", "actions.json", actions)
    assert rows(folder, "actions", "AAPL") == ["2020-08-31,split,4", "2024-02-09,dividend,0.24"]
    assert rows(folder, "actions", "MSFT") == ["2024-03-01,split,1.05"]
    assert document["dropped"][0]["reason"] == "neither a split nor a cash dividend"
    news = {
        "news": [
            {
                "id": 1,
                "headline": "Two companies",
                "summary": "",
                "author": "A",
                "created_at": "2024-01-02T12:00:00Z",
                "updated_at": "2024-01-02T13:00:00Z",
                "symbols": ["AAPL", "MSFT"],
                "source": "benzinga",
            }
        ]
    }
    brought(bring, "news", "news.json", news)
    assert [records(folder, "news", one)[0]["updated"] for one in ("AAPL", "MSFT")] == ["2024-01-02T13:00:00Z"] * 2


# Polygon


def test_polygon(bring: Import, folder: Path) -> None:
    bars = {
        "ticker": "AAPL",
        "adjusted": False,
        "results": [
            {"v": 82488700, "vw": 185.5, "o": 187, "c": 185, "h": 188, "l": 183, "t": 1704171600000, "n": 9},
            {"v": 58414500, "vw": 184.3, "o": 184, "c": 184, "h": 185.5, "l": 183, "t": 1704258000000, "n": 9},
        ],
        "status": "OK",
    }
    brought(bring, "prices", "aggs.json", bars)
    assert rows(folder, "prices", "AAPL") == AAPL
    flat = (
        "ticker,volume,open,close,high,low,window_start,transactions\n"
        "AAPL,82488700,187,185,188,183,1704171600000000000,9\nMSFT,5,370,371,372,369,1704171600000000000,9\n"
    )
    assert bring("prices", "day.csv", flat, "--symbol", "AAPL").json["unchanged"] == 1
    splits = {"results": [{"execution_date": "2020-08-31", "split_from": 1, "split_to": 4, "ticker": "AAPL"}]}
    brought(bring, "actions", "splits.json", splits)
    paid = {
        "results": [{"cash_amount": 0.24, "ex_dividend_date": "2024-02-09", "pay_date": "2024-02-15", "ticker": "AAPL"}]
    }
    brought(bring, "actions", "dividends.json", paid)
    assert rows(folder, "actions", "AAPL") == ["2020-08-31,split,4", "2024-02-09,dividend,0.24"]
    news = {
        "results": [
            {
                "publisher": {"name": "The Paper", "homepage_url": "https://example.com"},
                "title": "Up",
                "author": "A",
                "published_utc": "2024-01-02T12:00:00Z",
                "tickers": ["AAPL"],
                "description": "It went up.",
                "insights": [{"ticker": "AAPL", "sentiment": "positive"}],
            }
        ]
    }
    brought(bring, "news", "news.json", news)
    assert records(folder, "news", "AAPL")[0]["source"] == "The Paper"


# Finnhub


def test_finnhub(bring: Import, folder: Path) -> None:
    candles = {
        "c": [185, 184],
        "h": [188, 185.5],
        "l": [183, 183],
        "o": [187, 184],
        "s": "ok",
        "t": [1704153600, 1704240000],
        "v": [82488700, 58414500],
    }
    brought(bring, "prices", "candles.json", candles, "--symbol", "AAPL")
    assert rows(folder, "prices", "AAPL") == AAPL
    splits = [{"symbol": "AAPL", "date": "2020-08-31", "fromFactor": 1, "toFactor": 4}]
    brought(bring, "actions", "splits.json", splits)
    dividends = [{"symbol": "AAPL", "date": "2024-02-09", "amount": 0.24, "payDate": "2024-02-15", "currency": "USD"}]
    brought(bring, "actions", "dividends.json", dividends)
    assert rows(folder, "actions", "AAPL") == ["2020-08-31,split,4", "2024-02-09,dividend,0.24"]
    news = [
        {
            "category": "company",
            "datetime": 1704196800,
            "headline": "Up",
            "id": 5,
            "related": "AAPL",
            "source": "Wire",
            "summary": "It went up.",
        }
    ]
    brought(bring, "news", "news.json", news)
    assert records(folder, "news", "AAPL")[0]["created"] == "2024-01-02T12:00:00Z"
    filing = {
        "accessNumber": "1",
        "symbol": "AAPL",
        "form": "8-K",
        "filedDate": "2024-02-01 00:00:00",
        "acceptedDate": "2024-02-01 16:30:26",
        "description": "Results",
    }
    said = bring("filings", "filings.json", [filing])
    assert (said.code, "--tz ZONE" in said.err) == (65, True), said.err
    brought(bring, "filings", "filings.json", [filing], "--tz", "America/New_York")
    assert records(folder, "filings", "AAPL")[0]["accepted"] == "2024-02-01T21:30:26Z"


# Alpha Vantage


def test_alpha_vantage(bring: Import, folder: Path) -> None:
    text = (
        "timestamp,open,high,low,close,adjusted_close,volume,dividend_amount,split_coefficient\n"
        "2024-02-12,47,47.5,46.5,47,47,90310400,0.0000,4.0\n"
        "2024-02-09,188,190,187,189,47.1,45155200,0.2400,1.0\n"
        "2024-02-08,189,190,187,188,46.9,40962000,0.0000,1.0\n"
    )
    brought(bring, "prices,actions", "daily.csv", text, "--symbol", "AAPL")
    assert rows(folder, "prices", "AAPL")[0] == "2024-02-08,189,190,187,188,46.9,40962000"
    assert rows(folder, "actions", "AAPL") == ["2024-02-09,dividend,0.24", "2024-02-12,split,4"]
    answer = {
        "Meta Data": {"1. Information": "Daily Prices", "2. Symbol": "IBM", "5. Time Zone": "US/Eastern"},
        "Time Series (Daily)": {
            "2024-01-02": {
                "1. open": "162",
                "2. high": "163",
                "3. low": "160",
                "4. close": "161",
                "5. volume": "3825000",
            }
        },
    }
    brought(bring, "prices", "ibm.json", answer)
    assert rows(folder, "prices", "IBM") == ["2024-01-02,162,163,160,161,,3825000"]
    paid = {"symbol": "IBM", "data": [{"ex_dividend_date": "2024-02-08", "payment_date": "None", "amount": "1.66"}]}
    brought(bring, "actions", "paid.json", paid)
    splits = {"symbol": "IBM", "data": [{"effective_date": "1999-05-27", "split_factor": "2.0000"}]}
    brought(bring, "actions", "splits.json", splits)
    assert rows(folder, "actions", "IBM") == ["1999-05-27,split,2", "2024-02-08,dividend,1.66"]
    feed = {
        "items": "1",
        "feed": [
            {
                "title": "Up",
                "time_published": "20240102T093000",
                "summary": "It went up.",
                "source": "Wire",
                "overall_sentiment_label": "Bullish",
                "ticker_sentiment": [{"ticker": "IBM", "ticker_sentiment_label": "Bullish"}],
            }
        ],
    }
    said = bring("news", "feed.json", feed, "--symbol", "IBM")
    assert (said.code, "a time without a time zone" in said.err) == (65, True), said.err
    brought(bring, "news", "feed.json", feed, "--symbol", "IBM", "--tz", "UTC")
    item = records(folder, "news", "IBM")[0]
    assert (item["created"], item["sentiment"]) == ("2024-01-02T09:30:00Z", "Bullish")


# Tiingo


def test_tiingo(bring: Import, folder: Path) -> None:
    def day(stamp: str, close: float, split: float = 1.0, paid: float = 0.0) -> dict[str, Any]:
        prices = {"close": close, "high": close + 1, "low": close - 1, "open": close, "volume": 1000}
        return {"date": stamp, **prices, "adjClose": 46.5, "adjOpen": 46, "divCash": paid, "splitFactor": split}

    answer = [
        day("2024-02-08T00:00:00.000Z", 188),
        day("2024-02-09T00:00:00.000Z", 188, paid=0.24),
        day("2024-02-12T00:00:00.000Z", 47, 4.0),
    ]
    brought(bring, "prices,actions", "prices.json", answer, "--symbol", "AAPL")
    assert rows(folder, "prices", "AAPL")[0] == "2024-02-08,188,189,187,188,46.5,1000"
    assert rows(folder, "actions", "AAPL") == ["2024-02-09,dividend,0.24", "2024-02-12,split,4"]
    news = [
        {
            "id": 1,
            "publishedDate": "2024-02-08T12:00:00Z",
            "crawlDate": "2024-02-08T12:05:00.500000Z",
            "title": "Up",
            "description": "It went up.",
            "source": "wire.example",
            "tickers": ["aapl"],
        }
    ]
    brought(bring, "news", "news.json", news)
    item = records(folder, "news", "AAPL")[0]
    assert (item["created"], item["updated"]) == ("2024-02-08T12:00:00Z", "2024-02-08T12:05:00.500000Z")


# tushare


def test_tushare(bring: Import, folder: Path) -> None:
    text = (
        ",ts_code,trade_date,open,high,low,close,pre_close,change,pct_chg,vol,amount\n"
        "0,600000.SH,20250106,10.2,10.3,10.1,10.2,10.2,0,0,4000.5,408.0\n"
        "1,600000.SH,20250103,10.1,10.3,10.0,10.2,10.1,0.1,0.99,3000,306.0\n"
        "2,000001.SZ,20250103,11.3,11.5,11.3,11.4,11.3,0.1,0.88,1000,114.0\n"
    )
    brought(bring, "prices", "daily.csv", text)
    assert rows(folder, "prices", "600000.SS") == [
        "2025-01-03,10.1,10.3,10,10.2,,300000",
        "2025-01-06,10.2,10.3,10.1,10.2,,400050",
    ]
    assert rows(folder, "prices", "000001.SZ") == ["2025-01-03,11.3,11.5,11.3,11.4,,100000"]
    answer = {
        "code": 0,
        "data": {
            "fields": ["ts_code", "trade_date", "open", "high", "low", "close", "vol"],
            "items": [["000001.SZ", "20250106", 11.4, 11.6, 11.3, 11.4, 10]],
        },
    }
    brought(bring, "prices", "daily.json", answer)
    assert len(rows(folder, "prices", "000001.SZ")) == 2
    paid = (
        "ts_code,end_date,ann_date,div_proc,stk_div,cash_div,cash_div_tax,record_date,ex_date\n"
        "600000.SH,20231231,20240430,实施,0.1,0.321,0.321,20240717,20240718\n"
        "600000.SH,20241231,20250430,预案,0.0,0.41,0.41,,\n"
    )
    document = brought(bring, "actions", "dividend.csv", paid)
    assert rows(folder, "actions", "600000.SS") == ["2024-07-18,dividend,0.321", "2024-07-18,split,1.1"]
    assert document["dropped"][0]["reason"] == "no ex-date"
    news = "datetime,content,title,channels\n2025-01-03 09:30:00,Rates stay.,Rates,a\n"
    said = bring("news", "news.csv", news, "--symbol", "600000.SS")
    assert (said.code, "--tz ZONE" in said.err) == (65, True)
    brought(bring, "news", "news.csv", news, "--symbol", "600000.SS", "--tz", "Asia/Shanghai")
    assert records(folder, "news", "600000.SS")[0]["created"] == "2025-01-03T01:30:00Z"


# What any file may be


def test_a_stamp_at_local_midnight_east_of_utc_is_that_day(bring: Import, folder: Path) -> None:
    bar = {"o": 1, "h": 1, "l": 1, "c": 1, "v": 1}
    tokyo = [{"t": stamp, **bar} for stamp in (1704294000, "2024-01-04T15:00:00Z", "2024-01-09 00:00:00+09:00")]
    brought(bring, "prices", "tokyo.json", tokyo, "--symbol", "7203.T")
    days = [line[:10] for line in rows(folder, "prices", "7203.T")]
    assert days == ["2024-01-04", "2024-01-05", "2024-01-09"]
    brought(bring, "prices", "zone.json", [{"t": 1704294000000, **bar}], "--symbol", "TOYO", "--tz", "Asia/Tokyo")
    assert rows(folder, "prices", "TOYO")[0].startswith("2024-01-04,")
    brought(bring, "prices", "coin.json", [{"t": "2024-01-04T00:00:00Z", **bar}], "--symbol", "BTC-USD")
    assert rows(folder, "prices", "BTC-USD")[0].startswith("2024-01-04,")


def test_semicolons_decimal_commas_an_unnamed_index_and_chosen_columns(bring: Import, folder: Path) -> None:
    text = (
        ";Erster;Hoch;Tief;Schluss;Volumen\n"
        "2024-01-02;1.187,5;1.188;1.183,25;1.185;82.488.700\n"
        "2024-01-03;1.184,0;1.185,5;1.183,0;1.184,0;100\n"
    )
    chosen = [f"--map={pair}" for pair in ("open=Erster", "high=Hoch", "low=Tief", "close=Schluss", "volume=Volumen")]
    brought(bring, "prices", "kurse.csv", text, "--symbol", "SAP.DE", *chosen)
    assert rows(folder, "prices", "SAP.DE") == [
        "2024-01-02,1187.5,1188,1183.25,1185,,82488700",
        "2024-01-03,1184,1185.5,1183,1184,,100",
    ]
    said = bring("prices", "kurse.csv", text, "--symbol", "SAP.DE", "--map", "open=Anfang")
    assert (said.code, "no such column" in said.err) == (2, True), said.err
    said = bring("prices", "kurse.csv", text, "--symbol", "SAP.DE", "--map", "opened=Erster")
    assert (said.code, "unknown field" in said.err) == (2, True)


@pytest.mark.parametrize("orient", ["columns", "index"])
def test_frames_that_pandas_has_written_as_json(bring: Import, folder: Path, orient: str) -> None:
    stamps, bars = ("1704153600000", "1704240000000"), ((187, 188, 183, 185), (184, 185.5, 183, 184))
    names = ("Open", "High", "Low", "Close")
    frame: dict[str, Any] = {stamp: dict(zip(names, bar, strict=True)) for stamp, bar in zip(stamps, bars, strict=True)}
    if orient == "columns":
        frame = {name: {stamp: bar[name] for stamp, bar in frame.items()} for name in names}
    brought(bring, "prices", "frame.json", frame, "--symbol", "AAPL")
    assert rows(folder, "prices", "AAPL") == [f"{line.rpartition(',')[0]}," for line in AAPL]


def test_news_stamped_as_mail(bring: Import, folder: Path) -> None:
    text = 'title,pubDate\nUp,"Tue, 02 Jan 2024 09:30:00 -0500"\nDown,"Tue, 02 Jan 2024 15:30:00 GMT"\n'
    brought(bring, "news", "feed.csv", text, "--symbol", "AAPL")
    assert [item["created"] for item in records(folder, "news", "AAPL")] == [
        "2024-01-02T14:30:00Z",
        "2024-01-02T15:30:00Z",
    ]


def test_a_time_of_day_without_a_zone_is_asked_for(bring: Import, folder: Path) -> None:
    text = "date,time,headline\n2024-01-02,16:30:00,Up\n"
    said = bring("news", "feed.csv", text, "--symbol", "AAPL")
    assert (said.code, "'16:30:00' is a time without a time zone" in said.err) == (65, True), said.err
    brought(bring, "news", "feed.csv", text, "--symbol", "AAPL", "--tz", "America/New_York")
    assert records(folder, "news", "AAPL")[0]["created"] == "2024-01-02T21:30:00Z"
    assert bring("news", "feed.csv", text, "--symbol", "AAPL", "--tz", "Mars/Base").code == 2


@pytest.mark.parametrize(
    ("day", "word"),
    [
        ("2030-01-02", "not closed"),
        ("2024-01-06", "is not a session"),
        ("2024-01-01", "is not a session"),
        ("2024-01-02 16:00:00", "--tz ZONE"),
        ("01/02/2024", "--dates mdy"),
        ("21/22/2024", "is not a date"),
    ],
)
def test_a_bar_of_a_day_that_cannot_be_is_refused(bring: Import, folder: Path, day: str, word: str) -> None:
    text = f"date,open,high,low,close\n2024-01-03,1,1,1,1\n{day},1,1,1,1\n"
    said = bring("prices", "bars.csv", text, "--symbol", "AAPL")
    assert (said.code, said.err.count("\n")) == (65, 1)
    assert word in said.err and "line 3" in said.err, said.err
    assert not folder.exists()


def test_rows_of_days_without_trading_are_counted_and_told_once(
    bring: Import, run: Run, tmp_path: Path, folder: Path
) -> None:
    table = "Date,Open,High,Low,Close,Volume,suspended\n2025-01-02,1,2,1,2,9,0\n2025-01-03,,,,,,1\n2025-01-06,,,,,,0\n"
    said = bring("prices", "AAPL.csv", table, "--symbol", "AAPL")
    assert said.code == 0, said.err
    assert {(one["reason"], one["count"]) for one in said.json["dropped"]} == {
        ("marked as suspended", 1),
        ("no prices", 1),
    }
    printed = run("import", "prices", str(tmp_path / "AAPL.csv"), "--data", str(folder), "--symbol", "AAPL").out
    assert printed.count("marked as suspended") == printed.count("no prices") == 1


def test_several_symbols_and_kinds_are_all_written_or_none(bring: Import, folder: Path) -> None:
    head = "date,ticker,open,high,low,close,dividends,splits\n"
    good = "2024-01-02,AAA,1,1,1,1,0,0\n2024-01-02,BBB,2,2,2,2,0.1,0\n"
    said = bring("prices,actions", "all.csv", f"{head}{good}2024-01-03,BBB,2,1,2,2,0,0\n")
    assert (said.code, folder.exists()) == (65, False)
    document = brought(bring, "prices,actions", "all.csv", head + good)
    assert len(document["files"]) == 4 and document["path"] is None
    assert bring("prices", "one.csv", "date,open,high,low,close\n2024-01-02,1,1,1,1\n").code == 2
    assert bring("quotes", "all.csv", head + good).code == 2
