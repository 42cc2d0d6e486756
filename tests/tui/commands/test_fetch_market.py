"""`paperdesk fetch` of market data from a sandbox: the words, the codes, the default folder, Ctrl-C."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from connectors.sandbox import SandboxServer
from tests.connectors.alpaca.sandbox_markets import sandbox

Run = Callable[..., Any]

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
    assert "the same command goes on" in said.err
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
        ({}, ("filings", "--again"), 2, "--again belongs to"),
        ({"PAPERDESK_BROKER__KIND": "simulated"}, ("bars",), 2, "no data folder"),
        ({"PAPERDESK_DESK__SYMBOLS": ""}, (), 2, "whose data"),
        ({}, ("bars", "--symbols", "../x"), 2, "is no symbol"),
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
