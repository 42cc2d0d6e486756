"""`paperdesk fetch` against services on loopback: what comes into the folder, what stays, how it goes on."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from connectors.files.macro import FilesMacro
from connectors.files.market import FilesMarket
from connectors.sandbox import SandboxServer
from connectors.wiring.services import services
from engine.services import FetchOptions
from engine.settings.config import load_config
from tests.connectors.alpaca.sandbox_markets import sandbox
from tests.connectors.weekdays import calendar_for
from tests.servers.fake_edgar import AGENT, SYMBOL, fake_edgar
from tests.servers.fake_fred import KEY, fake_fred
from tests.servers.fake_web import FakeWeb, Page

Run = Callable[..., Any]


@pytest.fixture
def edgar(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeWeb]:
    with fake_edgar() as web:
        for key, value in (("USER_AGENT", AGENT), ("WWW", web.url), ("DATA", web.url)):
            monkeypatch.setenv(f"PAPERDESK_FILINGS__{key}", value)
        # The pace is EDGAR's test; here it would only take time.
        monkeypatch.setattr("connectors.filings.edgar.RateLimitedClient.__init__", unhurried)
        yield web


@pytest.fixture
def fred(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeWeb]:
    with fake_fred() as web:
        monkeypatch.setenv("PAPERDESK_MACRO__ADDRESS", f"{web.url}/fred")
        monkeypatch.setenv("FRED_API_KEY", KEY)
        monkeypatch.setattr("connectors.macro.fred._SECONDS_BETWEEN", 0.001)
        monkeypatch.setattr("connectors.macro.fred.RateLimitedClient.__init__", unhurried)
        yield web


def _unhurried() -> Callable[..., None]:
    from connectors.rate_limited_http import RateLimitedClient

    made = RateLimitedClient.__init__

    def init(self: RateLimitedClient, service: str, **options: Any) -> None:
        made(self, service, **{**options, "seconds_between": 0.0005, "first_pause": 0.001})

    return init


unhurried = _unhurried()


def filings(folder: Path, symbol: str = SYMBOL) -> list[str]:
    found = asyncio.run(FilesMarket(folder, calendar_for).filings(symbol))
    return [f"{one.form} {one.available_at:%Y-%m-%dT%H:%M:%S}" for one in found.items]


ALL = [
    "10-K 2016-02-12T16:00:00",
    "10-K 2023-02-16T21:30:15",
    "10-K/A 2023-03-31T22:02:00",
    "10-Q 2023-05-04T11:05:00",
]


def test_filings_come_into_the_folder_with_their_moments_and_only_once(
    run: Run, edgar: FakeWeb, tmp_path: Path
) -> None:
    said = run("fetch", "filings", "--symbols", "qlmp,NOSUCH,BTC-USD", "--data", str(tmp_path), "--json")
    assert said.code == 0, said.err
    document = said.json
    assert document["complete"] is True
    rows = {row["name"]: row for row in document["files"]}
    assert (rows["QLMP"]["added"], rows["QLMP"]["unchanged"]) == (4, 0)
    assert {drop["reason"]: drop["count"] for drop in rows["QLMP"]["dropped"]} == {
        "no main document": 2,
        "no text in the main document": 1,
    }
    assert [drop["reason"] for drop in rows["NOSUCH"]["dropped"]] == ["symbol unknown to EDGAR"]
    assert rows["BTC-USD"]["dropped"] == []
    assert filings(tmp_path) == ALL
    assert not (tmp_path / "filings" / "NOSUCH.jsonl").exists()
    before = (tmp_path / "filings" / "QLMP.jsonl").read_bytes()
    again = run("fetch", "filings", "--symbols", "QLMP", "--data", str(tmp_path), "--json").json["files"][0]
    assert (again["added"], again["unchanged"]) == (0, 4)
    assert (tmp_path / "filings" / "QLMP.jsonl").read_bytes() == before


def test_rows_of_other_origin_stay_and_count_by_form_and_day(run: Run, edgar: FakeWeb, tmp_path: Path) -> None:
    path = tmp_path / "filings" / "QLMP.jsonl"
    path.parent.mkdir()
    own = '{"date": "2023-05-04", "form": "10-Q", "summary": "my own words"}'
    path.write_text(own)  # without a newline at its end
    assert run("fetch", "filings", "--symbols", "QLMP", "--from", "2020-01-01", "--data", str(tmp_path)).code == 0
    lines = path.read_text().splitlines()
    assert lines[0] == own
    assert [json.loads(line)["form"] for line in lines] == ["10-Q", "10-K", "10-K/A"]


def test_what_was_fetched_before_a_fault_stays_and_the_next_call_goes_on(
    run: Run, edgar: FakeWeb, tmp_path: Path
) -> None:
    edgar.fail(*[Page(body=b"", status=500)] * 4, at="qlmp-20230331.htm")
    said = run("fetch", "filings", "--symbols", "QLMP", "--data", str(tmp_path))
    assert said.code == 74
    assert len(said.err.splitlines()) == 1
    assert filings(tmp_path) == ALL[:3]
    edgar.asked.clear()
    assert run("fetch", "filings", "--symbols", "QLMP", "--data", str(tmp_path)).code == 0
    assert filings(tmp_path) == ALL
    assert not [path for path in edgar.paths() if "qlmp-20221231" in path]


def test_a_stop_keeps_what_is_done(edgar: FakeWeb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[str] = []
    options = FetchOptions(
        folder=tmp_path, progress=lambda what, at, of: heard.append(what), stop=lambda: len(heard) > 2
    )
    done = asyncio.run(services(load_config(None).config).fetch.filings(options, [SYMBOL, "OTHR"], None))
    assert [(one.name, one.added, one.complete) for one in done] == [(SYMBOL, 2, False)]
    assert filings(tmp_path) == ALL[:2]


def test_macro_series_come_with_every_vintage_and_only_once(run: Run, fred: FakeWeb, tmp_path: Path) -> None:
    said = run("fetch", "macro", "--data", str(tmp_path), "--json")
    assert said.code == 0, said.err
    assert [(row["name"], row["added"]) for row in said.json["files"]] == [("ICSA", 5), ("AWHMAN", 2)]
    lines = (tmp_path / "macro" / "ICSA.csv").read_text().splitlines()
    assert lines[:3] == ["date,value,known_from", "2023-05-27,232000,2023-06-01", "2023-05-27,233000,2023-06-08"]
    assert asyncio.run(FilesMacro(tmp_path).names()) == ["AWHMAN", "ICSA"]
    again = run("fetch", "macro", "--data", str(tmp_path))
    assert again.code == 0
    assert "5 there before" in again.out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("filings", "--symbols", "QLMP"), 2, "no data folder"),
        (("filings", "--data", "D"), 2, "no symbols"),
        (("filings", "--symbols", "QLMP", "--from", "soon", "--data", "D"), 2, "YYYY-MM-DD"),
        (("filings", "--symbols", "../x", "--data", "D"), 2, "is not a symbol"),
        (("macro", "--symbols", "QLMP", "--data", "D"), 2, "macro.series lists"),
        (("filings", "--symbols", "QLMP", "--data", "D"), 78, "filings.user_agent is not set"),
        (("macro", "--data", "D"), 77, "FRED_API_KEY"),
        (("weather",), 2, "weather"),
    ],
)
def test_what_cannot_be_meant_is_one_line(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], code: int, said: str
) -> None:
    monkeypatch.delenv("FRED_API_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    if "../x" in arguments:
        monkeypatch.setenv("PAPERDESK_FILINGS__USER_AGENT", AGENT)
    ended = run("fetch", *arguments)
    assert (ended.code, len(ended.err.splitlines())) == (code, 1)
    assert said in ended.err
    assert not (tmp_path / "D").exists()


def test_progress_is_drawn_for_a_terminal_alone(
    run: Run, fred: FakeWeb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("fetch", "macro", "--data", str(tmp_path)).err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    watched = run("fetch", "macro", "--data", str(tmp_path))
    assert "2/2" in watched.err
    assert watched.out.count("ICSA.csv") == 1


AT = datetime(2024, 3, 6, 21, 5, tzinfo=UTC)
SINCE = ("--from", "2024-01-02")


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[SandboxServer]:
    """A sandbox on the evening of 2024-03-06, and a configuration that goes by its clock."""
    with sandbox(start=AT) as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("PAPERDESK_BROKER__KIND", "alpaca")
        monkeypatch.setenv("PAPERDESK_BROKER__CLOCK", "broker")
        monkeypatch.setenv("PAPERDESK_DESK__SYMBOLS", "AAA,BBB,BTC-USD")
        yield server


def test_everything_that_a_desk_needs_comes_into_the_folder_of_its_own(
    run: Run, broker: SandboxServer, paperdesk_home: Path
) -> None:
    said = run("fetch", *SINCE, "--json")
    assert said.code == 0, said.err
    folder = paperdesk_home / "data" / "market"
    rows = {str(Path(row["path"]).relative_to(folder)): row for row in said.json["files"]}
    assert (said.json["kind"], said.json["complete"]) == ("all", True)
    assert {name: row["added"] for name, row in rows.items()} == {
        "actions/AAA.csv": 0,
        "actions/BBB.csv": 2,
        "prices/AAA.csv": 45,
        "prices/BBB.csv": 45,
        "prices/BTC-USD.csv": 64,
        "news/AAA.jsonl": 134,
        "news/BBB.jsonl": 0,
        "news/BTC-USD.jsonl": 0,
    }
    assert (folder / "prices" / "AAA.csv").read_text().splitlines()[-1].startswith("2024-03-06,")
    again = run("fetch")
    assert again.code == 0
    assert "added" not in again.out


def test_a_kind_alone_and_what_has_been_corrected(run: Run, broker: SandboxServer, tmp_path: Path) -> None:
    said = run("fetch", "bars", "--symbols", "aaa, btc/usd", *SINCE, "--data", str(tmp_path))
    assert said.code == 0, said.err
    assert sorted(path.name for path in tmp_path.rglob("*.csv")) == ["AAA.csv", "AAA.csv", "BTC-USD.csv"]
    path = tmp_path / "prices" / "AAA.csv"
    lines = path.read_text().splitlines()
    cells = lines[-2].split(",")
    path.write_text("\n".join([*lines[:-2], ",".join([*cells[:-1], "7"])]) + "\n")
    told = run("fetch", "bars", "--symbols", "AAA", "--data", str(tmp_path))
    assert "kept, but different now: 1 (--again replaces them)" in told.out
    assert ",7" in path.read_text()
    replaced = run("fetch", "bars", "--symbols", "AAA", "--data", str(tmp_path), "--again")
    assert "1 replaced" in replaced.out
    assert path.read_text().splitlines() == lines
    assert "134 added" in run("fetch", "news", "--symbols", "AAA", *SINCE, "--data", str(tmp_path)).out
    assert "2 added" in run("fetch", "actions", "--symbols", "BBB", *SINCE, "--data", str(tmp_path)).out


def test_a_hole_is_named_and_an_impossible_bar_is_left_out_with_65(
    run: Run, broker: SandboxServer, tmp_path: Path
) -> None:
    at = ("fetch", "bars", "--symbols", "AAA,BBB", *SINCE, "--data", str(tmp_path), "--json")
    broker.fault("bar", symbol="AAA", change={"h": 1})
    said = run(*at)
    assert (said.code, "2024-03-06" in said.err, said.err.count("\n")) == (65, True, 1), said.err
    rows = {(row["name"], Path(row["path"]).parent.name): row for row in said.json["files"]}
    assert (rows["AAA", "prices"]["added"], rows["BBB", "prices"]["added"]) == (44, 45)
    assert list(rows["AAA", "prices"]["impossible"]) == ["2024-03-06"] and not rows["BBB", "prices"]["impossible"]
    broker.clear_faults()
    path = tmp_path / "prices" / "AAA.csv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:10], *lines[12:]]) + "\n")
    said = run(*at)
    assert said.code == 0, said.err
    rows = {row["name"]: row for row in said.json["files"] if "/prices/" in row["path"]}
    assert rows["AAA"]["added"] == 1, "the bar of the last session can be now"
    assert rows["AAA"]["missing"] == [line.partition(",")[0] for line in lines[10:12]]
    assert rows["BBB"]["missing"] == []
    assert rows["AAA"]["missing"][0] in run(*at[:-1]).out


def test_ctrl_c_keeps_what_is_done_and_the_next_call_goes_on(
    run: Run, broker: SandboxServer, paperdesk_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []

    def hear(what: str, done: int, total: int) -> None:
        heard.append(what)
        if len(heard) == 4:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("tui.commands.fetch.progress_bar", lambda: nullcontext(hear))
    said = run("fetch", *SINCE, "--json")
    assert said.code == 130
    assert said.json["complete"] is False
    assert "the same command continues" in said.err
    assert run("fetch", *SINCE).code == 0
    found = [len(path.read_text().splitlines()) for path in sorted(paperdesk_home.rglob("prices/*.csv"))]
    assert found == [46, 46, 65]
    assert len((paperdesk_home / "data/market/news/AAA.jsonl").read_text().splitlines()) == 134


@pytest.mark.parametrize(
    ("environment", "arguments", "code", "said"),
    [
        ({"APCA_API_SECRET_KEY": "wrong"}, (), 77, "APCA_API_SECRET_KEY"),
        ({"APCA_API_KEY_ID": ""}, (), 77, "APCA_API_KEY_ID is not set"),
        ({}, ("bars", "--symbols", "AAA,NOSUCH"), 65, "NOSUCH"),
        ({"APCA_API_DATA_URL": "http://127.0.0.1:9"}, (), 74, "check the connection"),
        ({"APCA_API_DATA_URL": "http://example.com"}, (), 78, "https"),
        ({}, ("filings", "--again"), 2, "--again is for"),
        ({"PAPERDESK_BROKER__KIND": "simulated"}, ("bars",), 2, "no data folder"),
        ({"PAPERDESK_DESK__SYMBOLS": ""}, (), 2, "no symbols"),
        ({}, ("bars", "--symbols", "../x"), 2, "is not a symbol"),
    ],
)
def test_what_goes_wrong_is_one_line_and_a_code(
    run: Run,
    broker: SandboxServer,
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    arguments: tuple[str, ...],
    code: int,
    said: str,
) -> None:
    monkeypatch.setattr("connectors.alpaca.market_data.AlpacaData.__init__", _hasty())
    monkeypatch.setenv("PAPERDESK_BROKER__CLOCK", "machine")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    ended = run("fetch", *arguments)
    assert (ended.code, len(ended.err.splitlines())) == (code, 1)
    assert said in ended.err
    assert broker.settings.secret not in ended.err + ended.out


def _hasty() -> Callable[..., None]:
    from connectors.alpaca.market_data import AlpacaData

    made = AlpacaData.__init__

    def init(self: AlpacaData, settings: Any) -> None:
        made(self, settings, first_pause=0.001)

    return init


def test_the_log_of_a_fetch_holds_no_keys(run: Run, broker: SandboxServer, paperdesk_home: Path) -> None:
    assert run("fetch", *SINCE).code == 0
    for path in paperdesk_home.rglob("*"):
        if path.is_file():
            assert broker.settings.secret.encode() not in path.read_bytes()
    log = json.loads((paperdesk_home / "data/market/fetched.json").read_text())
    assert log["symbols"]["AAA"]["feed"] == "iex"
