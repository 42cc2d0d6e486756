"""`paperdesk fetch` against services on loopback: what comes into the folder, what stays, how it goes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from connectors.files.macro import FilesMacro
from connectors.files.market import FilesMarket
from connectors.wiring.services import services
from engine.services import FetchOptions
from engine.settings.config import load_config
from tests.connectors.weekdays import calendar_for
from tests.servers.fake_edgar import AGENT, SYMBOL, fake_edgar
from tests.servers.fake_fred import KEY, fake_fred
from tests.servers.fake_web import FakeWeb, Page

Run = Callable[..., Any]


@pytest.fixture
def edgar(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeWeb]:
    with fake_edgar() as web:
        for key, value in (("USER_AGENT", AGENT), ("WWW", web.url), ("DATA", web.url), ("REQUESTS_PER_SECOND", "10")):
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
        (("filings", "--data", "D"), 2, "whose filings"),
        (("filings", "--symbols", "QLMP", "--from", "soon", "--data", "D"), 2, "YYYY-MM-DD"),
        (("filings", "--symbols", "../x", "--data", "D"), 2, "is no symbol"),
        (("macro", "--symbols", "QLMP", "--data", "D"), 2, "macro.series says"),
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
