"""`paperdesk sandbox` as a process: it says where it is, serves, keeps its books, and ends at Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from engine.domain.order import Portfolio
from engine.domain.run import EquityPoint, RunKind
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from tests.conftest import REPO
from tui.cli import main

BEGIN = ["sandbox", "--start", "2021-02-02"]


def command(*arguments: str) -> subprocess.Popen[str]:
    code = "import sys; from tui.cli import main; main(sys.argv[1:])"
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=REPO,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def serving(*arguments: str) -> Iterator[dict[str, Any]]:
    """The sandbox in a process of its own, and what it said of itself."""
    process = command(*BEGIN, "--json", *arguments)
    assert process.stdout is not None
    try:
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line == "}\n":
                break
        yield json.loads("".join(lines))
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=600)
        assert (process.returncode, said.startswith("stopped")) == (0, True), said
    finally:
        process.kill()
        process.communicate()


def test_it_serves_until_ctrl_c_and_goes_on_where_it_was(tmp_path: Path) -> None:
    state = str(tmp_path / "books.db")
    with serving("--state", state) as said:
        place = said["environment"]
        assert said["schema"] == 1 and said["now"] == "2021-02-02T21:05:00+00:00"
        assert {"ORVL", "WRNN/USD"} <= set(said["assets"])
        headers = {
            "APCA-API-KEY-ID": place["APCA_API_KEY_ID"],
            "APCA-API-SECRET-KEY": place["APCA_API_SECRET_KEY"],
        }
        with httpx.Client(base_url=place["APCA_API_BASE_URL"], headers=headers) as http:
            order = {"symbol": "ORVL", "notional": "500", "side": "buy", "type": "market", "time_in_force": "day"}
            assert http.post("/v2/orders", json=order | {"client_order_id": "mine"}).status_code == 200
            http.post("/sandbox/clock", json={"advance": "close"})
            assert http.get("/v2/positions/ORVL").status_code == 200
            far = http.post("/sandbox/clock", json={"to": "2021-06-01T00:00:00Z"})
            assert far.json()["now"] == "2021-06-01T00:00:00Z", "the demo market goes on"
    with serving("--state", state) as said:
        seen = httpx.get(said["environment"]["APCA_API_BASE_URL"] + "/sandbox/state").json()
        assert seen["now"] == "2021-06-01T00:00:00Z"
        assert [one["client_order_id"] for one in seen["orders"]] == ["mine"]
        assert seen["cash"] == "99500"


@pytest.mark.slow
def test_a_killed_sandbox_has_lost_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    state, acknowledged = str(tmp_path / "books.db"), []
    process = command(*BEGIN, "--json", "--state", state)
    try:
        assert process.stdout is not None
        lines = list(iter(process.stdout.readline, "}\n"))
        place = json.loads("".join([*lines, "}"]))["environment"]
        headers = {"APCA-API-KEY-ID": place["APCA_API_KEY_ID"], "APCA-API-SECRET-KEY": place["APCA_API_SECRET_KEY"]}
        with httpx.Client(base_url=place["APCA_API_BASE_URL"], headers=headers, verify=False) as http:
            order = {"symbol": "ORVL", "qty": "1", "side": "buy", "type": "market", "time_in_force": "day"}
            with pytest.raises(httpx.TransportError):
                for n in range(100_000):
                    if n == 30:  # killed by another thread while orders go on coming in
                        threading.Thread(target=process.kill).start()
                    if http.post("/v2/orders", json=order | {"client_order_id": f"o{n}"}).status_code == 200:
                        acknowledged.append(f"o{n}")
    finally:
        process.kill()
        process.communicate()
    assert len(acknowledged) >= 30
    with serving("--state", state) as said:
        seen = httpx.get(said["environment"]["APCA_API_BASE_URL"] + "/sandbox/state").json()["orders"]
    kept = [one["client_order_id"] for one in seen]
    assert kept[: len(acknowledged)] == acknowledged and len(kept) - len(acknowledged) <= 1


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--start", "2021-01-31"], 2, "XNYS was closed that day"),
        (["--speed", "5"], 2, "--speed"),
        (["--data", "nowhere-at-all"], 65, "no data folder"),
    ],
)
def test_what_cannot_be_is_one_line(
    arguments: list[str], code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(("sandbox", *arguments))
    out, said = capsys.readouterr()
    assert (ended.value.code, out) == (code, "")
    assert says in said and said.count("\n") == 1


PLAY = ("sandbox", "--start", "2025-03-10", "--sessions", "1")


def paperdesk(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("APCA_", "PAPERDESK_"))}
    return subprocess.run(
        [sys.executable, "-c", "from tui.cli import main; main()", *arguments],
        env={**environ, "PAPERDESK_HOME": str(home), "PAPERDESK_DESK__PRESET": "finvision", "PYTHONPATH": str(REPO)},
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


@pytest.mark.slow
def test_a_session_is_played_and_said(tmp_path: Path) -> None:
    played(tmp_path)


@pytest.mark.slow
def test_a_desk_that_was_played_is_gone_on_with(tmp_path: Path) -> None:
    played(tmp_path)
    again = paperdesk(tmp_path, "sandbox", "--sessions", "1", "--json")
    assert (again.returncode, again.stderr) == (0, "")
    document = json.loads(again.stdout)
    (session,) = document["sessions"]
    assert document["agree"] is True and session["books"]["journal_cash"] == session["books"]["broker_cash"]
    assert (session["session"], session["outcome"]) == ("2025-03-11", "done")
    with JournalReader(tmp_path / "data" / "desks" / "demo.db") as reader:
        assert [run.session for run in reader.runs()] == [date(2025, 3, day) for day in (10, 11)]
        assert reader.counts()["fills"] > 0


def played(tmp_path: Path) -> None:
    """Play a first session at the sandbox, and read what was said and what is in the journal."""
    first = paperdesk(tmp_path, *PLAY)
    assert (first.returncode, first.stderr) == (0, "")
    lines = first.stdout.splitlines()
    assert lines[0].split() == ["SESSION", "DECIDED", "ORDERS", "FILLS", "VALUE", "CASH", "BOOKS"]
    assert lines[1].startswith("2025-03-10") and lines[1].endswith("agree") and len(lines[1]) <= 80
    assert "they agree" in first.stdout and "Decided by  rules, not a language model" in first.stdout
    assert f"export PAPERDESK_HOME={tmp_path}" in first.stdout
    assert "export PAPERDESK_BROKER__CLOCK=broker" in first.stdout
    with JournalReader(tmp_path / "data" / "desks" / "demo.db") as reader:
        assert [run.session for run in reader.runs()] == [date(2025, 3, 10)]
        assert reader.account() is not None
        assert reader.counts()["orders"] > 0


def test_a_desk_on_the_simulated_market_is_left_alone(tmp_path: Path) -> None:
    journal = tmp_path / "data" / "desks" / "demo.db"
    day = date(2025, 3, 10)
    with JournalWriter(journal) as writer:
        writer.run_started(
            RunEntry(
                id="daily-demo-20250310",
                kind=RunKind.DAILY,
                name="finvision",
                started=datetime(2025, 3, 10, 21, tzinfo=UTC),
            )
        )
        writer.session_settled("daily-demo-20250310", EquityPoint(day, Decimal(1), Portfolio(Decimal(1)), {}))
    said = paperdesk(tmp_path, *PLAY)
    assert said.returncode == 78 and said.stderr.count("\n") == 1
    assert "books of the simulated market" in said.stderr and "--desk" in said.stderr
    with JournalReader(journal) as reader:
        assert len(reader.runs()) == 1
