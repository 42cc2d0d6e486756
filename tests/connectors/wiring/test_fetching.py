"""Fetching from a sandbox over real HTTP: what comes into the folder, how it goes on, what it says of what differs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from connectors.files.market import FilesMarket
from connectors.sandbox import MarketData, SandboxServer, SandboxSettings
from connectors.wiring.services import services
from connectors.wiring.sources import calendars
from engine.app.desk.market import PAUSES, refresh
from engine.app.research.market_data import fetch as fetch_data
from engine.clock import BacktestClock
from engine.domain.fetched import Fetched
from engine.domain.market import ActionKind, CorporateAction, NewsItem, PriceHistory, from_nano
from engine.errors import ConfigError, CredentialsRefused, MissingData, NetworkError, StaleData
from engine.messages.events import Event, Noticed
from engine.services import FetchOptions
from engine.settings.config import Config
from tests.connectors.alpaca.sandbox_markets import (
    DIVIDEND_ON,
    FIRST,
    FREE,
    LAST,
    SPLIT_ON,
    loading,
    market_data,
)
from tests.servers.fake_edgar import AGENT, fake_edgar

CLOSE = datetime(2024, 1, 31, 21, 5, tzinfo=UTC)
"""Five minutes after the close of a Wednesday."""
LATER = datetime(2024, 3, 6, 21, 5, tzinfo=UTC)

Start = Callable[..., SandboxServer]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts sandboxes over a market and points the program at the last one."""
    running: list[SandboxServer] = []

    def started(data: MarketData | None = None, at: datetime = LATER, **settings: Any) -> SandboxServer:
        given: dict[str, Any] = {"start": at, "rules": FREE} | settings
        server = SandboxServer(loading(data or market_data()), SandboxSettings(**given))
        server.__enter__()
        running.append(server)
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        return server

    yield started
    for server in running:
        server.__exit__(None, None, None)


def config(folder: Path, **sections: Any) -> Config:
    plain: dict[str, Any] = {
        "desk": {"symbols": ("AAA", "BBB", "BTC-USD")},
        "broker": {"kind": "alpaca"},
        "data": {"folder": str(folder)},
    }
    return Config.model_validate(plain | sections)


async def fetch(
    folder: Path,
    kind: str = "bars",
    symbols: tuple[str, ...] = ("AAA", "BBB", "BTC-USD"),
    since: date | None = FIRST,
    at: datetime = LATER,
    stop: Callable[[], bool] = lambda: False,
    **options: Any,
) -> dict[str, Fetched]:
    """One fetch; what was done to each file, by its path in the folder."""
    given = FetchOptions(folder=folder, stop=stop, **options)
    done = await fetch_data(services(config(folder), BacktestClock(at)), kind, given, symbols, since)
    return {str(one.path.relative_to(folder)): one for one in done}


async def history(folder: Path, symbol: str) -> PriceHistory:
    return await FilesMarket(folder, calendars()).history(symbol)


def raw(history: PriceHistory, through: date) -> list[tuple[Any, ...]]:
    return [
        (one.session, one.open, one.high, one.low, one.close, one.volume) for one in history if one.session <= through
    ]


def asked(server: SandboxServer, path: str) -> int:
    counts = server.state()["requests"]
    return sum(count for name, count in counts.items() if path in name)


async def test_bars_are_raw_daily_and_of_sessions_that_are_over(start: Start, tmp_path: Path) -> None:
    start()
    during = datetime(2024, 3, 6, 16, 0, tzinfo=UTC)  # in the session of that day
    done = await fetch(tmp_path, at=during)
    data = market_data()
    for symbol in ("AAA", "BBB", "BTC-USD"):
        kept = await history(tmp_path, symbol)
        assert raw(kept, LAST) == raw(data.histories[symbol], date(2024, 3, 5))
    assert done["prices/AAA.csv"].added == 44
    assert await FilesMarket(tmp_path, calendars()).actions("BBB") == data.actions["BBB"]
    assert await FilesMarket(tmp_path, calendars()).actions("AAA") == ()
    assert await FilesMarket(tmp_path, calendars()).actions("BTC-USD") is None


async def test_adj_close_is_what_the_service_adjusts_to(start: Start, tmp_path: Path) -> None:
    server = start()
    await fetch(tmp_path)
    params = {"symbols": "BBB", "timeframe": "1Day", "start": str(FIRST), "end": "2024-03-06", "adjustment": "all"}
    headers = {"apca-api-key-id": server.settings.key, "apca-api-secret-key": server.settings.secret}
    page = httpx.get(f"{server.url}/v2/stocks/bars", params=params, headers=headers, trust_env=False)
    answer = page.json()["bars"]["BBB"]
    ours = [float(from_nano(nano)) for nano in (await history(tmp_path, "BBB")).adj_close]
    assert ours == pytest.approx([row["c"] for row in answer], abs=2e-6)
    assert ours[0] != pytest.approx(answer[0]["o"])
    coin = await history(tmp_path, "BTC-USD")
    assert coin.adj_close == coin.close


async def test_a_fetch_in_parts_is_a_fetch_in_one(start: Start, tmp_path: Path) -> None:
    start()
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    for kind in ("bars", "news"):
        await fetch(whole, kind)
        for at in (datetime(2024, 2, 2, 12, tzinfo=UTC), datetime(2024, 2, 9, 21, 5, tzinfo=UTC), LATER):
            await fetch(parts, kind, since=FIRST, at=at)
    for symbol in ("AAA", "BBB", "BTC-USD"):
        assert (parts / "prices" / f"{symbol}.csv").read_bytes() == (whole / "prices" / f"{symbol}.csv").read_bytes()
    assert (parts / "actions" / "BBB.csv").read_bytes() == (whole / "actions" / "BBB.csv").read_bytes()
    assert (parts / "news" / "AAA.jsonl").read_bytes() == (whole / "news" / "AAA.jsonl").read_bytes()


async def test_only_what_is_new_is_asked_for(start: Start, tmp_path: Path) -> None:
    server = start()
    await fetch(tmp_path)
    before = asked(server, "/bars")
    done = await fetch(tmp_path)
    assert asked(server, "/bars") == before
    assert done["prices/AAA.csv"].added == 0
    later = await fetch(tmp_path, at=LATER + timedelta(days=1))
    assert asked(server, "/v2/stocks/bars") == 2
    assert later["prices/AAA.csv"].added == 0  # the sandbox's own clock is not there yet


async def test_earlier_bars_come_before_the_kept_ones(start: Start, tmp_path: Path) -> None:
    server = start()
    await fetch(tmp_path, since=date(2024, 2, 20))
    assert (await history(tmp_path, "BBB")).session(0) == date(2024, 2, 20)
    await fetch(tmp_path, since=date(2023, 12, 1))
    whole = tmp_path / "whole"
    await fetch(whole, since=date(2023, 12, 1))
    assert (tmp_path / "prices/BBB.csv").read_bytes() == (whole / "prices/BBB.csv").read_bytes()
    before = asked(server, "/bars")
    await fetch(tmp_path, since=date(2023, 12, 1))  # nothing is before the first bar, and that is known now
    assert asked(server, "/bars") == before


async def test_earlier_bars_that_stop_on_the_way_leave_no_gap(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start()
    monkeypatch.setattr("connectors.alpaca.market_data.BARS_PER_PAGE", "6")
    await fetch(tmp_path, since=date(2024, 2, 20))
    before = {path: path.read_bytes() for path in tmp_path.rglob("prices/*.csv")}
    for stops_after in range(3, 14, 2):
        calls = iter([False] * stops_after + [True] * 100)
        await fetch(tmp_path, since=FIRST, again=stops_after > 8, stop=partial(next, calls))
        for path, kept in before.items():
            days = [line[:10] for line in path.read_text().splitlines()[1:]]
            first = date.fromisoformat(days[0])
            sessions = calendars()(path.stem).sessions(first, date.fromisoformat(days[-1]))
            assert days == [str(day) for day in sessions]
            assert first == FIRST or path.read_bytes() == kept
    await fetch(tmp_path, since=FIRST)
    whole = tmp_path / "whole"
    await fetch(whole)
    for symbol in ("AAA", "BBB"):
        assert (tmp_path / f"prices/{symbol}.csv").read_bytes() == (whole / f"prices/{symbol}.csv").read_bytes()


def corrected(symbol: str, day: date, close: Decimal) -> MarketData:
    """The market with another close on a day."""
    data = market_data()
    bars = [replace(one, close=close) if one.session == day else one for one in data.histories[symbol]]
    return replace(data, histories={**data.histories, symbol: PriceHistory.of(symbol, bars)})


async def test_a_correction_is_told_and_kept_out_until_it_is_asked_for(start: Start, tmp_path: Path) -> None:
    day = date(2024, 3, 5)
    start()
    await fetch(tmp_path)
    close = (await history(tmp_path, "AAA")).bar(-2).close
    start(corrected("AAA", day, close + 1), at=LATER + timedelta(days=1))
    done = await fetch(tmp_path, at=LATER + timedelta(days=1))
    file = done["prices/AAA.csv"]
    assert (file.added, file.differing, file.replaced, file.unchanged) == (1, 1, 0, 4)
    assert (await history(tmp_path, "AAA")).bar(-3).close == close
    again = (await fetch(tmp_path, at=LATER + timedelta(days=1), again=True))["prices/AAA.csv"]
    assert (again.added, again.differing, again.replaced) == (0, 0, 1)
    kept = await history(tmp_path, "AAA")
    assert (kept.bar(-3).close, kept.bar(-3).adj_close) == (close + 1, close + 1)


async def test_what_was_imported_keeps_its_adjusted_closes(start: Start, tmp_path: Path) -> None:
    start()
    await fetch(tmp_path, at=CLOSE)
    lines = (tmp_path / "prices" / "BBB.csv").read_text().splitlines()
    cells = [line.split(",") for line in lines]
    other = [cells[0], *([*row[:5], f"{Decimal(row[4]) / 4:f}", row[6]] for row in cells[1:])]
    (tmp_path / "prices" / "BBB.csv").write_text("\n".join(map(",".join, other)) + "\n")
    (tmp_path / "fetched.json").unlink()
    await fetch(tmp_path)
    kept = await history(tmp_path, "BBB")
    data = market_data().histories["BBB"]
    split = kept.index(SPLIT_ON)
    paid = kept.index(DIVIDEND_ON)
    assert split is not None and paid is not None
    assert [from_nano(n) for n in kept.adj_close[:3]] == [data.bar(row).close / 4 for row in range(3)]
    # Two for one halves the price, and the adjusted one goes on at a quarter of the old price: at half of the new.
    assert from_nano(kept.adj_close[split]) == data.bar(split).close / 2
    gain = (data.bar(paid).close) / (data.bar(paid - 1).close - Decimal("0.25"))
    assert float(from_nano(kept.adj_close[paid]) / from_nano(kept.adj_close[paid - 1])) == pytest.approx(float(gain))


async def test_a_stop_keeps_what_is_done_and_the_next_fetch_goes_on(start: Start, tmp_path: Path) -> None:
    start()
    calls = iter([False] * 4 + [True] * 100)
    done = await fetch(tmp_path, stop=lambda: next(calls))
    assert not all(one.complete for one in done.values())
    there = sorted(path.name for path in (tmp_path / "prices").glob("*.csv"))
    assert 0 < len(there) < 3
    await fetch(tmp_path)
    whole = tmp_path / "whole"
    await fetch(whole)
    for symbol in ("AAA", "BBB", "BTC-USD"):
        assert (tmp_path / f"prices/{symbol}.csv").read_bytes() == (whole / f"prices/{symbol}.csv").read_bytes()


@pytest.mark.parametrize("when", [0, 1, 2])
async def test_news_that_stops_between_pages_goes_on(start: Start, tmp_path: Path, when: int) -> None:
    start()
    calls = iter([False] * when + [True] * 100)
    await fetch(tmp_path, "news", stop=lambda: next(calls))
    first = await FilesMarket(tmp_path, calendars()).news("AAA")
    done = (await fetch(tmp_path, "news"))["news/AAA.jsonl"]
    items = (await FilesMarket(tmp_path, calendars()).news("AAA")).items
    source = [item for item in market_data().news["AAA"] if item.available_at <= LATER]
    assert [(item.available_at, item.headline) for item in items] == [(i.available_at, i.headline) for i in source]
    assert len(first.items) < len(items) == len(first.items) + done.added


async def test_news_has_created_and_updated_times_and_no_markup(start: Start, tmp_path: Path) -> None:
    at = datetime(2024, 2, 1, 14, tzinfo=UTC)
    text = "<p>Up &amp; away,<br/>says <a href='x'>the wire</a>.</p><script>bad()</script> 3 < 4"
    item = NewsItem(
        id="1",
        symbol="BTC-USD",
        date=at.date(),
        available_at=at + timedelta(hours=2),
        summary=text,
        headline="A <b>rise</b>",
        published=at,
        source="wire",
    )
    start(replace(market_data(), news={"BTC-USD": [item]}))
    await fetch(tmp_path, "news")
    (kept,) = (await FilesMarket(tmp_path, calendars()).news("BTC-USD")).items
    assert (kept.published, kept.available_at) == (at, at + timedelta(hours=2))
    assert (kept.headline, kept.summary) == ("A rise", "Up & away, says the wire . 3 < 4")
    record = json.loads((tmp_path / "news" / "BTC-USD.jsonl").read_text())
    assert (record["time"], record["updated"]) == ("14:00:00Z", "2024-02-01T16:00:00Z")


async def test_changed_news_is_known_from_its_change_and_what_it_said_stays(start: Start, tmp_path: Path) -> None:
    at = datetime(2024, 2, 1, 14, tzinfo=UTC)
    old = NewsItem(
        id="1",
        symbol="AAA",
        date=at.date(),
        available_at=at,
        summary="as it was",
        headline="H",
        published=at,
        source="wire",
    )
    touched = replace(old, available_at=at + timedelta(hours=1))
    changed = replace(old, summary="as it is", available_at=at + timedelta(hours=30))
    for version, until in ((old, at), (touched, at + timedelta(hours=2)), (changed, at + timedelta(hours=31))):
        start(replace(market_data(), news={"AAA": [version]}), at=until)
        await fetch(tmp_path, "news", ("AAA",), at=until)
    items = (await FilesMarket(tmp_path, calendars()).news("AAA")).items
    assert [(item.summary, item.available_at) for item in items] == [
        ("as it was", at),
        ("as it is", at + timedelta(hours=30)),
    ]


async def test_what_the_folder_cannot_say_leaves_adj_close_blank(start: Start, tmp_path: Path) -> None:
    day = date(2024, 2, 8)
    data = market_data()
    actions = (*(data.actions["BBB"] or ()), CorporateAction("BBB", day, ActionKind.DIVIDEND, Decimal(500)))
    start(replace(data, actions={**data.actions, "BBB": actions}))
    await fetch(tmp_path)
    kept = await history(tmp_path, "BBB")
    row = kept.index(day)
    assert row is not None
    assert kept.bar(row - 1).adj_close is None
    assert kept.bar(row).adj_close is not None


async def test_wrong_keys_unknown_symbols_and_silence(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start()
    with pytest.raises(MissingData, match="no bars of NOSUCH"):
        await fetch(tmp_path, symbols=("AAA", "NOSUCH"))
    assert len(await history(tmp_path, "AAA")) == 45
    assert not list(tmp_path.rglob("NOSUCH*"))
    monkeypatch.setenv("APCA_API_SECRET_KEY", "wrong")
    with pytest.raises(CredentialsRefused, match="APCA_API_SECRET_KEY"):
        await fetch(tmp_path, symbols=("BBB",))
    monkeypatch.setenv("APCA_API_SECRET_KEY", server.settings.secret)
    server.fault("html", path="/v2/stocks/*", count=0)
    with pytest.raises(NetworkError, match="4 times over"):
        await fetch(tmp_path, symbols=("BBB",))
    server.clear_faults()
    server.fault("too_many_requests", path="/v2/stocks/*", seconds=0)
    assert (await fetch(tmp_path, symbols=("BBB",)))["prices/BBB.csv"].added == 45


async def test_two_feeds_are_not_mixed(start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start()
    await fetch(tmp_path, at=CLOSE)
    monkeypatch.setattr("tests.connectors.wiring.test_fetching.config", sip)
    with pytest.raises(ConfigError, match=r"feed iex, and broker\.feed is sip"):
        await fetch(tmp_path)
    await fetch(tmp_path, again=True, since=None)
    assert (await history(tmp_path, "AAA")).session(-1) == date(2024, 3, 6)


plain_config = config


def sip(folder: Path) -> Config:
    return plain_config(folder, broker={"kind": "alpaca", "feed": "sip"})


# Before a daily run


async def refreshed(folder: Path, at: datetime, *symbols: str, **options: Any) -> tuple[list[str], list[float]]:
    """A refresh of the session before a moment; what was warned of, and for how long it waited."""
    heard: list[Event] = []
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    chosen = config(folder, **options)
    session = calendars()("AAA").last_closed(at)
    await refresh(
        services(chosen), symbols or chosen.desk.symbols, session, BacktestClock(at), heard.append, pause=sleep
    )
    assert all(isinstance(event, Noticed) and event.level == "warning" for event in heard)
    return [event.text for event in heard if isinstance(event, Noticed)], waited


async def test_a_refresh_brings_everything_and_is_quick_when_nothing_is_new(start: Start, tmp_path: Path) -> None:
    server = start()
    assert await refreshed(tmp_path, LATER) == ([], [])
    source = FilesMarket(tmp_path, calendars())
    assert (await source.history("BTC-USD")).session(-1) == date(2024, 3, 5)
    assert (await source.history("AAA")).session(-1) == date(2024, 3, 6)
    assert len((await source.news("AAA")).items) > 50
    before = sum(server.state()["requests"].values())
    await refreshed(tmp_path, LATER + timedelta(seconds=30))
    assert sum(server.state()["requests"].values()) == before + 1  # news


async def test_news_that_fails_is_a_warning_and_bars_that_fail_an_error(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start()
    server.fault("server_error", path="/v1beta1/news", count=0)
    warnings, _ = await refreshed(tmp_path, LATER)
    assert [text for text in warnings if "news not fetched" in text] == warnings
    assert len(warnings) == 1
    server.fault("server_error", path="/v2/stocks/bars", count=0)
    with pytest.raises(NetworkError):
        await refreshed(tmp_path, LATER + timedelta(days=1))


async def test_a_bar_that_is_late_is_waited_for_and_then_the_data_is_stale(start: Start, tmp_path: Path) -> None:
    start(at=datetime(2024, 3, 5, 21, 5, tzinfo=UTC))  # the service is a session behind
    with pytest.raises(StaleData, match=r"no bar of 2024-03-06 for AAA, BBB yet"):
        await refreshed(tmp_path, LATER, "AAA", "BBB", desk={"symbols": ("AAA", "BBB")})
    server = start(at=datetime(2024, 3, 5, 21, 5, tzinfo=UTC))
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        server.advance(LATER)

    alone = services(config(tmp_path, desk={"symbols": ("AAA",)}))
    await refresh(alone, ["AAA"], date(2024, 3, 6), BacktestClock(LATER), pause=sleep)
    assert pauses == [PAUSES[0]]


async def test_filings_come_once_a_day_and_their_failure_is_a_warning(start: Start, tmp_path: Path) -> None:
    start()
    with fake_edgar() as web:
        edgar = {"user_agent": AGENT, "www": web.url, "data": web.url}
        assert (await refreshed(tmp_path, LATER, filings=edgar))[0] == []
        asked = len(web.asked)
        assert asked > 0
        await refreshed(tmp_path, LATER + timedelta(minutes=10), filings=edgar)
        assert len(web.asked) == asked
    bad = {"user_agent": "nobody"}
    warnings, _ = await refreshed(tmp_path, LATER + timedelta(hours=4), filings=bad)
    assert [text for text in warnings if "filings not fetched" in text] == warnings
    assert len(warnings) == 1


async def test_what_is_held_and_not_traded_any_more_is_no_error(start: Start, tmp_path: Path) -> None:
    start()
    warnings, waited = await refreshed(tmp_path, LATER, "AAA", "GONE", "LOST", desk={"symbols": ("AAA",)})
    assert len(warnings) == 1
    assert "no bars of LOST" in warnings[0]
    assert waited == []
    assert (await history(tmp_path, "GONE")).session(-1) == date(2024, 2, 20)


def test_without_a_folder_a_desk_at_alpaca_has_one_of_its_own(paperdesk_home: Path) -> None:
    assert services(Config()).data_folder is None
    alpaca = Config.model_validate({"broker": {"kind": "alpaca"}})
    assert services(alpaca).data_folder == paperdesk_home / "data" / "market"
