"""Portfolios of other exchanges, from generated folders: sessions, currency and news by the symbol's own exchange, and
what cannot be one portfolio is refused."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from connectors.files.prices import read_prices
from engine.domain.market import LISTED, is_crypto
from engine.market.trading_hours import AroundTheClock, calendar_for
from engine.settings import places
from tests.tui.commands.conftest import Run

HEADER = "date,open,high,low,close,adj_close,volume"
FIRST, LAST = date(2024, 8, 1), date(2024, 10, 31)
WINDOW = ("--from", "2024-09-20", "--to", "2024-10-15")


def bars_of(symbol: str, first: date = FIRST, last: date = LAST) -> str:
    """A price file of a walk over the symbol's own sessions."""
    rows = [HEADER]
    for row, day in enumerate(calendar_for(symbol).sessions(first, last)):
        opened, closed = 50 + row % 7 + row / 8, 50 + (row + 1) % 7 + row / 8
        rows.append(f"{day},{opened},{max(opened, closed) + 1},{min(opened, closed) - 1},{closed},{closed},1000000")
    return "\n".join(rows) + "\n"


Folder = Callable[..., Path]


@pytest.fixture
def folder(fresh: Path, tmp_path: Path) -> Folder:
    """Writes bars of symbols into a data folder."""

    def written(*symbols: str) -> Path:
        (tmp_path / "data" / "prices").mkdir(parents=True, exist_ok=True)
        for symbol in symbols:
            (tmp_path / "data" / "prices" / f"{symbol}.csv").write_text(bars_of(symbol))
        return tmp_path / "data"

    return written


def configure(text: str) -> None:
    places.config_file().parent.mkdir(parents=True, exist_ok=True)
    places.config_file().write_text(text)


@pytest.mark.parametrize(
    ("symbols", "calendar", "currency", "periods", "count"),
    [
        # China rests from October 1 to 7; New York trades on.
        ("600519.SS,000001.SZ", "XSHG", "CNY", 243, 13),
        ("0700.HK", "XHKG", "HKD", 246, 16),
        ("7203.T", "XTKS", "JPY", 244, 16),
        ("SAP.DE", "XETR", "EUR", 254, 18),
        ("VOD.L", "XLON", "GBP", 253, 18),
        ("BRK.B", "XNYS", "USD", 252, 18),
        ("BTC-EUR,SOL-EUR", "24/7", "EUR", 365, 26),
        ("SAP.DE,BTC-EUR", "XETR", "EUR", 254, 18),
        ("SOL-USDT", "24/7", "USDT", 365, 26),
    ],
)
def test_a_backtest_follows_the_sessions_and_the_currency_of_its_symbols(
    folder: Folder, run: Run, symbols: str, calendar: str, currency: str, periods: int, count: int
) -> None:
    data = folder(*symbols.split(","))
    said = run("backtest", "--strategy", "macd", "--symbols", symbols, *WINDOW, "--data", str(data), "--json")
    assert said.code == 0, said.err
    made = said.json
    assert (made["sessions"], made["currency"], made["settings"]["currency"]) == (count, currency, currency)
    assert (made["settings"]["calendar"], made["settings"]["periods_per_year"]) == (calendar, periods)
    values = [float(made["initial_value"]), *(float(point["value"]) for point in made["equity"])]
    returns = [after / before - 1 for before, after in pairwise(values)]
    expected = statistics.stdev(returns) * math.sqrt(periods)
    assert expected > 0 and made["metrics"]["volatility"] == pytest.approx(expected)


def test_news_of_a_day_is_known_at_the_close_of_its_exchange(folder: Folder, run: Run) -> None:
    data = folder("7203.T")
    (data / "news").mkdir()
    lines = [{"date": str(day), "time": None, "headline": "7203.T earns more"} for day in (date(2024, 10, 8), LAST)]
    (data / "news" / "7203.T.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    window = ("--from", "2024-10-09", "--to", "2024-10-10")
    flags = ("--symbols", "7203.T", *window, "--data", str(data), "--preset", "finvision-no-reflection")
    said = run("audit", *flags, "--cuts", "1", "--json")
    assert said.code == 0, said.out
    (news,) = (read for read in said.json["inputs"] if read["source"] == "news")
    # 15:00 in Tokyo, and the decision a second later.
    assert (news["latest_available"], news["decision"]) == ("2024-10-08T06:00:00+00:00", "2024-10-08T06:00:01+00:00")


@pytest.mark.parametrize(
    ("symbols", "told"),
    [
        ("AAPL,600519.SS", "AAPL trades on XNYS in USD and 600519.SS on XSHG in CNY"),
        ("SAP.DE,MC.PA", "SAP.DE trades on XETR in EUR and MC.PA on XPAR in EUR"),
        ("BTC-USD,SAP.DE", "BTC-USD trades around the clock in USD and SAP.DE on XETR in EUR"),
        ("BTC-USD,SOL-USDT", "BTC-USD trades around the clock in USD and SOL-USDT around the clock in USDT"),
        ("BTC-EUR,SAP.DE,MC.PA", "SAP.DE trades on XETR in EUR and MC.PA on XPAR in EUR"),
        ("ABC.QQQ", "ABC.QQQ: no exchange is known by the suffix .QQQ"),
        ("600519", "600519 needs the suffix of its exchange, such as 600519.SS"),
    ],
)
def test_what_is_no_portfolio_is_refused(folder: Folder, run: Run, symbols: str, told: str) -> None:
    data = folder()
    for symbol in symbols.split(","):
        (data / "prices" / f"{symbol}.csv").write_text(bars_of("AAPL"))
    flags = ("--symbols", symbols, *WINDOW, "--data", str(data))
    for command in (("backtest", "--strategy", "macd"), ("audit", "--strategy", "macd")):
        said = run(*command, *flags)
        assert (said.code, said.result) == (2, "")
        assert told in said.err and said.err.count("\n") == 1
    configure(f"[desk]\nsymbols = {json.dumps(symbols.split(','))}\n[data]\nfolder = '{data}'\n")
    said = run("--daily")
    assert (said.code, said.result) == (78, "")
    assert told in said.err and "desk.symbols" in said.err and said.err.count("\n") == 1


def test_a_suffix_of_ones_own_is_named_in_the_configuration(folder: Folder, run: Run) -> None:
    data = folder()
    (data / "prices" / "ABC.QQQ.csv").write_text(bars_of("MC.PA"))
    configure('[calendars.qqq]\ncalendar = "XPAR"\ncurrency = "XPF"\nperiods = 250\n')
    flags = ("--symbols", "ABC.QQQ", *WINDOW, "--data", str(data))
    said = run("backtest", "--strategy", "macd", *flags, "--json")
    assert said.code == 0, said.err
    settings = said.json["settings"]
    assert (settings["calendar"], settings["currency"], settings["periods_per_year"]) == ("XPAR", "XPF", 250)
    configure('[calendars.QQQ]\ncalendar = "XQQQ"\ncurrency = "XPF"\n')
    said = run("backtest", "--strategy", "macd", *flags)
    assert said.code == 78 and "unknown calendar XQQQ" in said.err and said.err.count("\n") == 1


def test_a_desk_trades_on_its_own_exchange_and_keeps_its_currency(folder: Folder, run: Run) -> None:
    data = folder("600519.SS", "AAPL")
    desk = "[desk]\nname = 'desk'\npreset = 'finvision-no-reflection'\nsymbols = {}\n[data]\nfolder = '{}'\n"
    configure(desk.format('["600519.SS"]', data))
    said = run("--daily", "--session", "2024-10-03")
    assert said.code == 2 and "XSHG was closed that day" in said.err
    for session in ("2024-09-30", "2024-10-08"):
        said = run("--daily", "--session", session, "--json")
        assert said.code == 0, said.err
    assert [row["session"] for row in run("equity", "--json").json["equity"]] == ["2024-09-30", "2024-10-08"]
    configure(desk.format('["AAPL"]', data))
    said = run("--daily", "--session", "2024-10-09")
    assert said.code == 78 and said.err.count("\n") == 1
    assert "the desk desk has its books in CNY, and AAPL trades on XNYS in USD" in said.err


def test_a_broker_of_dollars_refuses_other_currencies(
    folder: Folder, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = folder("600519.SS")
    configure(
        f"[desk]\nsymbols = ['600519.SS']\n[data]\nfolder = '{data}'\n[broker]\nkind = 'alpaca'\n"
        "trading_url = 'http://127.0.0.1:9'\n"
    )
    monkeypatch.setenv("APCA_API_KEY_ID", "key")
    monkeypatch.setenv("APCA_API_SECRET_KEY", "secret")
    told = "600519.SS trades on XSHG in CNY, and a paper account at Alpaca has shares on XNYS and crypto, in USD"
    said = run("--daily")
    assert said.code == 78 and told in said.err and said.err.count("\n") == 1
    said = run("fetch", "bars", "--symbols", "600519.SS")
    assert said.code == 2 and "of which the market data service has nothing" in said.err
    findings = {one["name"]: one for one in run("doctor", "--json").json["checks"]}
    assert findings["symbols"]["state"] == "fail" and told in findings["symbols"]["detail"]
    assert findings["portfolio"]["detail"] == "trades on XSHG in CNY"
    assert "sessions known until" in findings["XSHG"]["detail"]


def test_imported_days_are_held_against_the_symbols_calendar(fresh: Path, run: Run, tmp_path: Path) -> None:
    file, data = tmp_path / "bars.csv", tmp_path / "data"
    file.write_text(f"{HEADER}\n2024-10-01,10,11,9,10,,1\n2024-10-08,10,11,9,10,,1\n")
    said = run("import", "prices", str(file), "--symbol", "600519.SS", "--data", str(data))
    assert said.code == 65 and "2024-10-01 is not a session of XSHG" in said.err
    assert run("import", "prices", str(file), "--symbol", "AAPL", "--data", str(data)).code == 0
    midnight = datetime(2024, 10, 8, tzinfo=UTC) - timedelta(hours=8)
    file.write_text(f"t,o,h,l,c,v\n{int(midnight.timestamp())},10,11,9,10,1\n")
    assert run("import", "prices", str(file), "--symbol", "600519.SS", "--data", str(data)).code == 0
    assert read_prices(data / "prices" / "600519.SS.csv", "600519.SS").session(0) == date(2024, 10, 8)


def test_prices_in_pence_are_asked_for_and_stored_in_pounds(fresh: Path, run: Run, tmp_path: Path) -> None:
    file, data = tmp_path / "vod.csv", tmp_path / "data"
    file.write_text("Date,Open,High,Low,Close,Adj Close,Volume,Dividends\n2024-10-08,72,73,71,72.5,,1000,3.45\n")
    into = ("import", "prices,actions", str(file), "--symbol", "VOD.L", "--data", str(data))
    said = run(*into)
    assert said.code == 2 and "specify with --currency GBX" in said.err and said.err.count("\n") == 1
    assert run(*into, "--currency", "GBX").code == 0
    assert (data / "prices" / "VOD.L.csv").read_text().splitlines()[1] == "2024-10-08,0.72,0.73,0.71,0.725,,1000"
    assert (data / "actions" / "VOD.L.csv").read_text().splitlines()[1] == "2024-10-08,dividend,0.0345"
    file.write_text("Date,Open,High,Low,Close,Volume,Currency\n2024-10-08,0.72,0.73,0.71,0.725,1000,GBP\n")
    said = run("import", "prices", str(file), "--symbol", "VOD.L", "--data", str(data), "--json")
    assert said.code == 0 and said.json["files"][0]["replaced"] == 0
    said = run("import", "prices", str(file), "--symbol", "SAP.DE", "--data", str(data))
    assert said.code == 65 and "prices in GBP, and SAP.DE trades on XETR in EUR" in said.err


def test_sessions_a_year_are_those_of_the_calendars() -> None:
    """The mean of ten years by the calendar itself."""
    for symbol in ("AAPL", "600519.SS", "0700.HK", "7203.T", "SAP.DE", "VOD.L", "MC.PA", "BHP.AX", "PETR4.SA"):
        days = calendar_for(symbol).sessions(date(2016, 1, 1), date(2025, 12, 31))
        assert LISTED.of(symbol).periods == pytest.approx(len(days) / 10, abs=1), symbol


@pytest.mark.parametrize("symbol", ["BTC-EUR", "SOL-USDT", "ETH/USD", "ETH-BTC", "BTC-PLN"])
def test_pairs_of_coins_trade_around_the_clock(symbol: str) -> None:
    assert calendar_for(symbol) == AroundTheClock()


@pytest.mark.parametrize("symbol", ["BRK.B", "BRK-B", "BF.A", "ABC.WS", "ABC.PRK", "T", "VOLV-B.ST"])
def test_classes_of_shares_are_no_exchange_and_no_pair(symbol: str) -> None:
    assert not is_crypto(symbol)
    assert LISTED.of(symbol).currency == ("SEK" if symbol.endswith(".ST") else "USD")
    assert LISTED.of(symbol.lower()) == LISTED.of(symbol)
