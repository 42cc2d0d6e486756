"""Entries that come late, what was adopted before them, and a journal that is lost: from the command line, at the
sandbox, and held against the same days without a fault."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from connectors.sandbox import SandboxServer
from engine.journal.reader import JournalReader
from engine.settings import places
from tests.tui.commands.conftest import OpenBroker, Run, after_close, bought

SPLIT_WEEK = datetime(2024, 12, 11, 21, 5, tzinfo=UTC)
"""HLXM splits on the third session after it."""


ORDERS = datetime(2025, 3, 7, 21, 5, tzinfo=UTC)
"""The desk orders on it and after it."""
World = Callable[[str, datetime], SandboxServer]
Sound = Callable[[datetime, int], dict[str, Any]]


@pytest.fixture
def world(open_broker: OpenBroker, fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Opens a broker, and a home of the name with a desk on it."""
    first = tmp_path / "first"
    shutil.copytree(fresh, first)

    def opened(name: str, start: datetime) -> SandboxServer:
        shutil.copytree(first, tmp_path / name)
        monkeypatch.setenv(places.HOME, str(tmp_path / name))
        return open_broker(start, through=date(2025, 3, 31), symbols=("ORVL", "HLXM", "TMBK"))

    return opened


@pytest.fixture
def sound(world: World, run: Run) -> Sound:
    """What a desk without a fault comes to after so many sessions, with shares of HLXM from the start."""

    def played(start: datetime, sessions: int) -> dict[str, Any]:
        server = world("sound", start)
        begun(run, server)
        for _ in range(sessions):
            after_close(server)
            assert run("--daily").code == 0
        return told(run)

    return played


def begun(run: Run, server: SandboxServer) -> None:
    """A desk that was given ten shares of HLXM."""
    bought(server, "HLXM", "10")
    assert run("reconcile", "--adopt", "--reason", "ours", "--yes").code == 0
    assert run("--daily").code == 0


def told(run: Run) -> dict[str, Any]:
    """What a desk says of its returns, its trades and its books."""
    closes = run("equity", "--json").json["equity"]
    fills = [fill for order in run("orders", "--json").json["orders"] for fill in order["fills"]]
    status = run("status", "--json").json
    return {
        "changes": [(one["session"], one["value"], one["cash"], one["change"], one["brought_in"]) for one in closes],
        "fills": sorted((one["session"], one["quantity"], one["price"]) for one in fills),
        "cash": status["cash"],
        "value": status["value"],
    }


def without(server: SandboxServer, kind: str) -> None:
    """The account's history lacks the entries of a kind."""
    server.fault("list", path="/v2/account/activities", then="without", event=kind, count=0)


def test_a_split_whose_entry_is_late_is_awaited_and_no_deposit(run: Run, sound: Sound, world: World) -> None:
    right = sound(SPLIT_WEEK, 3)
    server = world("late", SPLIT_WEEK)
    begun(run, server)
    after_close(server)
    assert run("--daily").code == 0
    without(server, "SPLIT")
    after_close(server)
    halted = run("--daily")
    assert halted.code == 75 and "of the split of HLXM on 2024-12-16" in halted.err and "awaited until" in halted.err
    looked = run("reconcile", "--json")
    assert looked.code == looked.json["exit_code"] == 75
    assert looked.json["awaited"] == {"HLXM": "of the split of HLXM on 2024-12-16"}
    assert looked.json["awaited_until"].startswith("2024-12-17T21:05")
    # Adopting books no deposit, and the entry does not double the shares.
    before = contents(places.desk_journal("paper"))
    dry = run("reconcile", "--adopt", "--dry-run", "--json")
    assert dry.code == 75 and dry.json["dry_run"] and [one["what"] for one in dry.json["adopted"]] == ["HLXM"]
    assert contents(places.desk_journal("paper")) == before
    assert run("reconcile", "--adopt", "--reason", "no entry", "--yes").code == 0
    assert run("--daily").code == 0
    server.clear_faults()
    after_close(server)
    assert run("--daily").code == 0
    assert told(run) == right
    assert run("journal", "check").code == 0


def test_late_trades_take_back_what_was_adopted(run: Run, sound: Sound, world: World) -> None:
    right = sound(ORDERS, 2)
    server = world("late", ORDERS)
    begun(run, server)
    without(server, "FILL")
    after_close(server)
    assert run("--daily").code == run("reconcile").code == 75
    refused = run("reconcile", "--adopt", "--reason", "now", "--yes")
    assert refused.code == 75 and "of trades of the desk's orders in" in refused.err
    server.advance("1m")
    patient = places.config_file().read_text(encoding="utf-8")
    places.config_file().write_text(f"{patient}late_entry_hours = 0\n", encoding="utf-8")
    assert run("--daily").code == run("reconcile").code == 79
    assert run("reconcile", "--adopt", "--reason", "no entries", "--yes").code == 0
    assert run("--daily").code == 0
    server.clear_faults()
    after_close(server)
    assert run("--daily").code == 0
    late, day = told(run), "2025-03-11"
    assert [one for one in late["changes"] if one[0] <= day] == [one for one in right["changes"] if one[0] <= day]
    traded = [one for one in right["fills"] if one[0] == day]
    assert traded and [one for one in late["fills"] if one[0] == day] == traded
    assert run("journal", "check").code == 0


@pytest.mark.parametrize("lost", ["journal", pytest.param("backup", marks=pytest.mark.slow)])
def test_a_journal_is_recovered_from_its_account(
    run: Run, sound: Sound, world: World, tmp_path: Path, lost: str
) -> None:
    right = sound(ORDERS, 3)
    server = world("late", ORDERS)
    begun(run, server)
    journals, kept = places.desk_journal("paper").parent, tmp_path / "kept"
    shutil.copytree(journals, kept)
    for _ in range(3):
        after_close(server)
        assert run("--daily").code == 0
    shutil.rmtree(journals)
    if lost == "backup":
        shutil.copytree(kept, journals)
    posts = dict(server.state()["posts"])
    halted = run("--daily")
    assert halted.code == 79 and "paperdesk reconcile --rebuild" in halted.err
    assert run("reconcile", "--adopt", "--reason", "now", "--yes").code == 79, "what is the desk's is not adopted"
    dry = run("reconcile", "--rebuild", "--dry-run", "--json").json
    assert dry["dry_run"] and all(one["id"].startswith("paper-") for one in dry["recovered"])
    done = run("reconcile", "--rebuild", "--json")
    assert done.code == 0 and done.json["agree"] and done.json["recovered"] == dry["recovered"]
    strangers = [one["symbol"] for one in done.json["strange"]]
    assert strangers == (["HLXM"] if lost == "journal" else []), "what is not the desk's, and not before it, is listed"
    assert told(run)["fills"] == right["fills"]
    assert [one[:2] for one in told(run)["changes"]] == [one[:2] for one in right["changes"]]
    if lost == "backup":
        assert told(run) == right
    assert run("--daily").code == 0
    assert {name: count for name, count in server.state()["posts"].items() if name in posts} == posts, "none sent again"
    assert run("journal", "check").code == 0


def test_an_account_with_another_desks_order_is_refused(
    run: Run, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = world("one", ORDERS)
    assert run("--daily").code == 0
    orders = sandbox.state()["orders"]
    assert orders
    config = places.config_file().read_text(encoding="utf-8")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setenv(places.HOME, str(tmp_path / "elsewhere"))
    places.config_file().parent.mkdir(parents=True, exist_ok=True)
    places.config_file().write_text(config.replace('"paper"', '"other"'), encoding="utf-8")
    for arguments in (("--daily",), ("reconcile",), ("reconcile", "--adopt", "--reason", "x", "--yes")):
        said = run(*arguments)
        assert said.code == 78 and "serves the desk paper already" in said.err
    assert sandbox.state()["orders"] == orders


def test_a_look_up_that_never_finds_the_order_is_helped_by_the_list_of_all(run: Run, world: World) -> None:
    sandbox = world("one", ORDERS)
    sandbox.fault("gateway_timeout", method="POST", path="/v2/orders", symbol="ORVL")
    nothing = '{"code": 40410000, "message": "order not found"}'
    sandbox.fault("body", path="/v2/orders:by_client_order_id", status=404, count=0, message=nothing)
    assert run("--daily").code == 75
    assert run("--daily").code == 0
    after_close(sandbox)
    assert run("--daily").code == 0
    with JournalReader(places.desk_journal("paper")) as reader:
        states = {str(entry.order.state) for entry in reader.orders(session=ORDERS.date())}
    assert states == {"filled"}
    assert run("reconcile").code == 0


def contents(journal: Path) -> bytes:
    """What is in a journal, its log included."""
    return b"".join(file.read_bytes() for file in sorted(journal.parent.glob(f"{journal.name}*")))


START = datetime(2024, 3, 1, 21, 5, tzinfo=UTC)


@pytest.mark.slow
def test_money_that_comes_and_goes_is_told_and_is_no_profit(run: Run, open_broker: OpenBroker) -> None:
    sandbox = open_broker(START, through=date(2024, 3, 20), symbols=("ORVL", "TMBK"))
    assert run("equity", "--json").json["equity"] == []
    moved = {1: "25000.00", 3: "-60000.00", 6: "1234.56"}
    for day in range(8):
        if day:
            if day in moved:
                sandbox.control_request("POST", "/sandbox/transfers", {"amount": moved[day]})
            after_close(sandbox)
        assert run("--daily").code == 0
    rows = run("equity", "--json").json["equity"]
    values = [Decimal(row["value"]) for row in rows]
    assert [row["brought_in"] for row in rows] == [moved.get(day, "0.00") for day in range(8)]
    assert len(set(values)) > 3 and any(row["positions"] for row in rows)
    grown, highest = 1.0, 1.0
    for day, row in enumerate(rows):
        if day:
            earned = values[day] - values[day - 1] - Decimal(moved.get(day, 0))
            assert row["change"] == pytest.approx(float(earned / values[day - 1]), abs=1e-12)
            grown *= 1 + row["change"]
        highest = max(highest, grown)
        assert row["drawdown"] == pytest.approx(grown / highest - 1, abs=1e-12)
        assert abs(row["change"] or 0) < 0.05
    text = run("equity").out
    assert "DEPOSITS" in text and "-60,000.00" in text

    status = run("status", "--json").json
    assert (status["brought_in"], status["initial_value"]) == ("-33765.44", "100000.00")
    assert status["total_return"] == pytest.approx(grown - 1, abs=1e-12)
    said = " ".join(run("status").out.split())
    assert f"{100 * (grown - 1):+.2f}% since the start" in said
    assert "without deposits and withdrawals of -33,765.44" in said

    report = " ".join(run("report", "--session", str(rows[6]["session"])).out.split())
    earned = values[6] - values[5] - Decimal("1234.56")
    assert f"{earned:+,.2f} ({100 * rows[6]['change']:+.2f}%) since {rows[5]['session']}" in report
    assert "without deposits and withdrawals of +1,234.56" in report

    for row in rows:
        again = run("parity", row["session"])
        assert (again.code, again.err) == (0, "")
        assert again.out.startswith(f"Parity of {row['session']}: every decision and order is the same\n")
    why = run("why", "ORVL", rows[4]["session"], "--redecide", "--json")
    assert (why.code, why.json["same_throughout"]) == (0, True)
