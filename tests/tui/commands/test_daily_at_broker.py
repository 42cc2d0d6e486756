"""`paperdesk --daily` in an account at a broker: what it prints, how it ends, and what it loads."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from connectors.sandbox import SandboxServer
from engine.domain.order import OrderState
from engine.journal.integrity import quick_check
from engine.journal.reader import JournalReader
from engine.settings import places
from tests.snapshots import snapshot
from tests.tui.commands.conftest import OpenBroker, Run, after_close

REPO = Path(__file__).parents[3]
START = datetime(2024, 3, 1, 21, 5, tzinfo=UTC)


@pytest.fixture
def sandbox(open_broker: OpenBroker) -> SandboxServer:
    return open_broker(START, through=date(2024, 3, 20), symbols=("ORVL", "TMBK"))


def test_a_day_at_the_broker_and_a_second_run_of_it(run: Run, sandbox: SandboxServer) -> None:
    first = run("--daily", "--json")
    assert (first.code, first.err) == (0, "")
    document = first.json
    account = sandbox.exchange.book.facts["account"]
    assert document["broker"] == {"kind": "alpaca", "account": account}
    assert (document["mode"], document["halted"], document["waiting"], document["differences"]) == (
        "auto",
        None,
        [],
        [],
    )
    assert (document["outcome"], document["session"], document["value"]) == ("done", "2024-03-01", "100000.00")

    asked = sum(sandbox.state()["requests"].values())
    second = run("--daily", "--json")
    assert (second.code, second.json["outcome"]) == (0, "nothing to do")
    assert second.json | {"outcome": "done"} == document
    # The clock, once.
    assert sum(sandbox.state()["requests"].values()) == asked + 1


def test_orders_that_wait_are_listed_and_said(
    run: Run, sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAPERDESK_BROKER__MODE", "ask")
    for _ in range(6):
        document = run("--daily", "--json").json
        if document["waiting"]:
            break
        after_close(sandbox)
    assert document["outcome"] == "waiting"
    assert document["waiting"] == [order["id"] for order in document["orders"]]
    assert {order["state"] for order in document["orders"]} == {"intended"}
    told = run("--daily")
    assert told.code == 0
    assert "`paperdesk approve` sends, `paperdesk veto` withdraws" in told.out
    assert sandbox.state()["orders"] == []
    # By the broker's clock they are too late, which nobody tells from this machine's.
    sandbox.advance("close")
    sandbox.advance("1h")
    assert run("approve", "--json").json["waiting"] == []
    late = run("approve", document["waiting"][0])
    assert (late.code, late.err) == (1, "") and "too late since 2024-03-" in late.out
    assert "too late, the next run ends it" in run("status").out
    sandbox.fault("server_error", path="/v2/clock", count=0)
    listed = run("approve")
    assert listed.code == 0 and document["waiting"][0] in listed.out, "without the broker all that wait are listed"


def test_a_difference_halts_with_79_and_both_sides(
    run: Run, sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAPERDESK_BROKER__LATE_ENTRY_HOURS", "0")
    assert run("--daily").code == 0
    after_close(sandbox)
    book = sandbox.exchange.book
    book.portfolio = book.portfolio.__class__(book.portfolio.cash - 100, book.portfolio.positions)

    said = run("--daily")
    assert said.code == 79
    assert run("status", "--json").json["operation"]["runs"][0]["exit_code"] == 79
    table, line = said.err.strip().splitlines()[:-1], said.err.strip().splitlines()[-1]
    assert [cell for row in table for cell in row.split()][:3] == ["journal", "broker", "difference"]
    assert table[-1].split()[0] == "cash"
    assert table[-1].split()[-1] == "-100"
    assert "paperdesk reconcile --adopt" in line

    document = run("--daily", "--json")
    assert document.code == 79
    (difference,) = document.json["differences"]
    assert (difference["what"], difference["difference"], document.json["outcome"]) == ("cash", "-100", "halted")
    with JournalReader(places.desk_journal("paper")) as reader:
        assert reader.runs()[-1].outcome == "halted"


def test_a_persons_halt_is_no_failure(run: Run, sandbox: SandboxServer) -> None:
    assert run("halt", "--reason", "holidays").code == 0
    said = run("--daily", "--json")
    assert said.code == 0
    assert (said.json["outcome"], said.json["halted"]["reason"], said.json["decisions"]) == ("halted", "holidays", [])


def test_a_machine_whose_clock_is_not_the_brokers_is_told_both_times(
    run: Run, sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAPERDESK_BROKER__CLOCK", "machine")
    said = run("--daily")
    assert said.code == 78
    assert "2024-03-01 21:05:00" in said.err
    assert "broker.clock" in said.err


def test_calendars_that_disagree_stop_before_anything_is_decided(
    run: Run, sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from connectors.sandbox.account_api import AccountApi

    told = AccountApi._session

    def early(self: AccountApi, day: date) -> dict[str, Any]:
        return told(self, day) | ({"close": "13:00"} if day == date(2024, 3, 4) else {})

    monkeypatch.setattr(AccountApi, "_session", early)
    said = run("--daily")
    assert said.code == 65
    assert "the calendars disagree on 2024-03-04: XNYS has a close at 21:00 UTC and the broker a close at 18:00" in (
        said.err
    )


def test_the_simulated_market_does_not_go_on_with_an_accounts_journal(
    run: Run, sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("--daily").code == 0
    monkeypatch.setenv("PAPERDESK_BROKER__KIND", "simulated")
    said = run("--daily", "--session", "2024-03-04")
    assert said.code == 78
    assert "set broker.kind to alpaca" in said.err


def test_a_finished_session_is_seen_without_heavy_libraries(run: Run, sandbox: SandboxServer, tmp_path: Path) -> None:
    assert run("--daily").code == 0
    code = (
        "import sys\nfrom tui.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "finally: print(sorted({m.partition('.')[0] for m in sys.modules}), file=sys.stderr)"
    )
    environ = {**os.environ, "PYTHONPATH": str(REPO)}
    done = subprocess.run(
        [sys.executable, "-c", code, "--daily"],
        env=environ,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Nothing to do" in done.stdout
    for heavy in ("alpaca", "pandas", "requests", "sqlite_utils", "textual", "lancedb", "exchange_calendars"):
        assert f"'{heavy}'" not in done.stderr


@pytest.mark.slow
def test_killed_by_signal_while_the_broker_fails_it_trades_everything_once(
    sandbox: SandboxServer, tmp_path: Path
) -> None:
    draw = random.Random(4)
    environ = {**os.environ, "PYTHONPATH": str(REPO), "PAPERDESK_BROKER__TIMEOUT": "2"}
    command = (sys.executable, "-c", "from tui.cli import main; main()", "--daily")
    kills = 0
    for session in range(10):
        if session:
            after_close(sandbox)
        for kind, rule in (
            ("gateway_timeout", {"method": "POST", "after": True}),
            ("hang", {"method": "POST", "after": True, "seconds": 30}),
            ("too_many_requests", {"method": "GET", "seconds": 0, "count": 2}),
            ("reset", {"method": "GET", "count": 1}),
        ):
            sandbox.fault(kind, path="/v2/orders*", probability=0.5, seed=draw.randrange(1000), **rule)
        for _ in range(12):
            process = subprocess.Popen(
                command, env=environ, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
            )
            try:
                _, said = process.communicate(timeout=draw.uniform(1.0, 5.0))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.communicate()
                kills += 1
                continue
            assert process.returncode in (0, 74, 75), said
            if process.returncode == 0:
                break
        sandbox.clear_faults()
        assert subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, check=False).returncode == 0
    state, journal = sandbox.state(), places.desk_journal("paper")
    with JournalReader(journal) as reader:
        sent = [e.order for e in reader.orders() if e.order.state not in (OrderState.CANCELED, OrderState.INTENDED)]
    there = [order["client_order_id"] for order in state["orders"]]
    assert len(there) == len(set(there))
    assert sorted(there) == sorted(order.id for order in sent)
    ours = snapshot(journal).portfolio()
    assert ours.cash == Decimal(state["cash"])
    held = {symbol: position.quantity for symbol, position in ours.positions.items()}
    assert held == {symbol: Decimal(quantity) for symbol, quantity in state["positions"].items()}
    assert quick_check(journal) == ()
    assert kills > 3
    print(f"{kills} kills, {len(there)} orders, each once")


def test_a_session_that_no_run_came_for_is_named(run: Run, sandbox: SandboxServer) -> None:
    assert run("--daily").code == 0
    assert run("status", "--json").json["missed"] == []
    for _ in range(3):
        after_close(sandbox)
    assert run("status", "--json").json | {"due": "2024-03-06", "missed": ["2024-03-04", "2024-03-05"]} == (
        run("status", "--json").json
    )
    said = "no daily run for 2024-03-04, 2024-03-05"
    assert said in run("status").out
    assert run("--daily").code == 0
    assert said in run("status").out, "also once the next run has written them down"
    checks = run("doctor", "--connect", "--json").json["checks"]
    (found,) = [one for one in checks if (one["area"], one["name"]) == ("Journals", "sessions")]
    assert found["state"] == "note" and found["detail"].startswith(said)


def test_a_rejected_order_is_listed_with_its_reason(run: Run, sandbox: SandboxServer) -> None:
    sandbox.fault("refuse", count=1)
    for _ in range(6):
        code = run("--daily").code
        rejected = [one for one in run("orders", "--json").json["orders"] if one["state"] == "rejected"]
        assert code == bool(rejected), "it is the run's only order"
        if rejected:
            break
        after_close(sandbox)
    (order,) = rejected
    assert order["detail"]
    assert " ".join(order["detail"].split()) in " ".join(run("orders").out.split())


@pytest.mark.slow
def test_one_orders_lasting_error_does_not_silence_the_others(run: Run, open_broker: OpenBroker) -> None:
    symbols = ("ORVL", "HLXM", "TMBK", "PLWY")
    server = open_broker(START, through=date(2024, 3, 20), symbols=symbols)
    rule = None
    for _ in range(8):
        known = {order["client_order_id"] for order in server.state()["orders"]}
        rule = server.fault("reset", method="POST", path="/v2/orders", count=3)
        said = run("--daily")
        sent = [order for order in server.state()["orders"] if order["client_order_id"] not in known]
        if said.code == 75 and sent:
            break
        server.clear_faults(rule)
        if said.code:
            assert run("--daily").code == 0
        after_close(server)
    assert said.code == 75 and "was sent 3 times and the broker does not have it" in said.err
    orders = {one["id"]: one["state"] for one in run("orders", "--open", "--json").json["orders"]}
    (unknown,) = [name for name, state in orders.items() if state == "unknown"]
    server.clear_faults(rule)
    assert run("--daily").code == 0
    there = [order["client_order_id"] for order in server.state()["orders"]]
    assert unknown in there and len(there) == len(set(there))
    assert run("reconcile").code == 0
