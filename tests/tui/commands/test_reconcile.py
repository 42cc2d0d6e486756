"""Journal and account side by side from the command line, against the sandbox; the broker's side is taken on record."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import httpx
import pytest

from connectors.demo import DemoMarket
from connectors.sandbox import SandboxServer
from connectors.wiring.sandbox import build_sandbox
from connectors.wiring.sources import calendars
from engine import places
from engine.domain.run import DataSpec
from engine.journal.reader import JournalReader
from tests.data_folders import write_folder
from tests.tui.commands.conftest import Run

START = datetime(2021, 3, 16, 20, 5, tzinfo=UTC)
CONFIG = """
[desk]
name = "paper"
symbols = ["ORVL", "PLWY"]

[data]
folder = "{folder}"
refresh = false

[broker]
kind = "alpaca"
clock = "broker"
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("data") / "demo"
    asyncio.run(write_folder(DemoMarket(7, calendars(), date(2021, 4, 9)), target))
    return target


@pytest.fixture
def sandbox(written: Path, fresh: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SandboxServer]:
    """A sandbox, and a desk in it that has run once."""
    places.config_file().parent.mkdir(parents=True, exist_ok=True)
    places.config_file().write_text(CONFIG.format(folder=written.as_posix()))
    with build_sandbox(DataSpec(str(written)), START, cash=Decimal(100_000)) as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr("engine.account.reconciliation.PAUSES", (0.0, 0.0))  # before a difference is believed
        yield server


def by_hand(server: SandboxServer) -> None:
    """Somebody buys five shares at the broker, and a session passes."""
    place = server.environment
    headers = {"APCA-API-KEY-ID": place["APCA_API_KEY_ID"], "APCA-API-SECRET-KEY": place["APCA_API_SECRET_KEY"]}
    order = {"symbol": "ORVL", "qty": "5", "side": "buy", "type": "market", "time_in_force": "day"}
    with httpx.Client(base_url=place["APCA_API_BASE_URL"], headers=headers) as http:
        assert http.post("/v2/orders", json=order).status_code == 200
    server.advance("close")
    server.advance("5m")


def test_both_sides_agree_after_a_run(run: Run, sandbox: SandboxServer) -> None:
    assert run("--daily").code == 0
    said = run("reconcile")
    assert (said.code, said.err) == (0, "")
    assert said.out.endswith("they agree\n") and "cash" in said.out and "100,000" in said.out
    assert run("reconcile", "--json").json["agree"] is True


def test_before_the_first_run_there_is_nothing_to_compare(run: Run, sandbox: SandboxServer) -> None:
    said = run("reconcile")
    assert said.code == 0 and "agree" not in said.out
    assert "the journal has nothing of this account yet" in said.out
    assert not places.desk_journal("paper").exists()


def test_a_trade_by_hand_differs_and_is_adopted_on_the_record(run: Run, sandbox: SandboxServer) -> None:
    assert run("--daily").code == 0
    by_hand(sandbox)
    said = run("reconcile")
    assert said.code == 79 and "<- differs" in said.out and "they differ in" in said.out
    document = run("reconcile", "--json").json
    assert document["agree"] is False and document["adopted"] == []
    points = {one["what"]: one for one in document["differences"]}
    assert points["ORVL"]["broker"] == "5" and Decimal(points["ORVL"]["journal"] or 0) == 0
    halted = run("--daily")
    assert halted.code == 79 and "paperdesk reconcile" in halted.err
    adopted = run("reconcile", "--adopt", "--reason", "bought  by hand", "--yes", "--json")
    assert adopted.code == 0 and adopted.json["agree"] is True
    assert {"cash", "ORVL"} <= {one["what"] for one in adopted.json["adopted"]}
    with JournalReader(places.desk_journal("paper")) as reader:
        assert {one.reason for one in reader.adoptions()} == {"bought by hand"}
    assert run("--daily").code == 0
    assert run("reconcile").code == 0


@pytest.mark.parametrize(
    "arguments",
    [("--adopt",), ("--adopt", "--yes"), ("--adopt", "--reason", "x"), ("--yes",), ("--reason", "x"), ("--run", "x")],
)
def test_adopting_needs_a_reason_and_somebody_who_says_yes(
    run: Run, sandbox: SandboxServer, arguments: tuple[str, ...]
) -> None:
    said = run("reconcile", *arguments)
    assert said.code == 2 and said.err.count("\n") == 1


def test_a_desk_on_the_simulated_market_has_nothing_to_reconcile(run: Run, desk: Path) -> None:
    said = run("reconcile")
    assert said.code == 78 and "simulated market" in said.err
