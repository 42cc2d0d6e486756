"""Orders of the operator's own from the command line: on the simulated market and at a broker, by the desk's limits."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from connectors.sandbox import SandboxServer
from engine.domain.order import YOU, OrderState, is_own
from engine.domain.run import RunKind
from engine.execution.controls import halt
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.messages.events import OrderFilled
from engine.reports.documents.opening import events_of
from engine.reports.documents.operations import exit_code
from engine.settings import places
from tests.tui.commands.conftest import FEW_AGENTS, OpenBroker, Run, after_close

EVENING = datetime(2025, 3, 15, 12, tzinfo=UTC)
"""After the last session that the desk has decided, and before the next one."""
START = datetime(2024, 3, 1, 21, 5, tzinfo=UTC)
LATER = "2025-03-17"


@pytest.fixture
def evening(desk: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The desk that has run, on the evening of its last session."""
    for name, value in FEW_AGENTS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("engine.clock.LiveClock.now", lambda clock: EVENING)
    monkeypatch.setattr("engine.app.desk.demo_history.DUE", date(2025, 3, 14))
    return desk


def to_the_next_evening(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.clock.LiveClock.now", lambda clock: datetime(2025, 3, 18, 12, tzinfo=UTC))
    monkeypatch.setattr("engine.app.desk.demo_history.DUE", date(2025, 3, 17))


def order(run: Run, *arguments: str, code: int = 0) -> Any:
    said = run("order", *arguments, "--yes", "--json")
    assert said.code == code, said.err
    return said.json


def cash_of(fill: dict[str, str]) -> Decimal:
    amount = round(Decimal(fill["quantity"]) * Decimal(fill["price"]), 2)
    return (amount if fill["side"] == "SELL" else -amount) - Decimal(fill["fee"])


def own(desk: str = "demo") -> dict[str, OrderState]:
    with JournalReader(places.desk_journal(desk)) as reader:
        return {entry.order.id: entry.order.state for entry in reader.orders() if entry.owner == YOU}


def test_a_buy_is_taken_shown_as_yours_and_fills_at_the_next_open(
    run: Run, evening: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = run("status", "--json").json
    taken = order(run, "buy", "hlxm", "--amount", "1500")
    placed = taken["order"]
    assert (taken["taken"], taken["refused"], placed["owner"]) == (True, None, YOU)
    assert (placed["id"], placed["notional"]) == ("demo-20250314-0-HLXM-you-B-1", "1500.00")
    assert placed["state"] == "acknowledged" and taken["effect"]["session"] == "2025-03-14"
    reserved = sum(Decimal(one["notional"] or 0) for one in before["open_orders"])
    assert Decimal(taken["effect"]["cash_after"]) == Decimal(before["cash"]) - reserved - 1500
    assert taken["effect"]["open_orders"] == len(before["open_orders"])
    status = run("status", "--json").json
    assert status["last_run"] == before["last_run"], "an order decides nothing, and is no cycle"
    listed = next(one for one in run("orders", "--json").json["orders"] if one["id"] == placed["id"])
    assert (listed["owner"], listed["state"]) == (YOU, "acknowledged")
    assert "acknowledged, yours" in run("orders").out

    to_the_next_evening(monkeypatch)
    assert run("--daily", "--json").json["session"] == LATER
    (filled,) = [one for one in run("orders", "--json").json["orders"] if one["id"] == placed["id"]]
    (fill,) = filled["fills"]
    assert (filled["state"], fill["owner"], fill["session"]) == ("filled", YOU, LATER)
    assert Decimal(fill["quantity"]) * Decimal(fill["price"]) + Decimal(fill["fee"]) <= 1500
    for session in ("2025-03-14", LATER):
        assert run("parity", session, "--json").code == 0
    assert run("journal", "check", "--verify").code == 0
    why = run("why", "HLXM", "2025-03-14", "--json").json["decisions"][0]
    assert [one["owner"] for one in why["orders"] if one["id"] == placed["id"]] == [YOU]
    assert "BUY HLXM for 1,500.00, yours" in " ".join(run("why", "HLXM", "2025-03-14", "--full").out.split())
    assert run("positions", "--json").json["yours"] == ["HLXM"]
    assert "orders of your own are in HLXM" in run("positions").out


def test_a_sale_takes_no_more_than_is_free_beside_open_orders(
    run: Run, evening: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Decimal(run("positions", "--json").json["positions"]["ORVL"]["quantity"])
    half = (held / 2).quantize(Decimal("0.0001"))
    first = order(run, "SELL", "ORVL", "--quantity", str(half))
    assert first["order"]["quantity"] == str(half)
    refused = order(run, "SELL", "ORVL", "--quantity", str(held - half + 1), code=1)
    assert not refused["taken"] and "are free to be sold" in refused["refused"]
    part = first["effect"]["before"] / float(held)
    alone = refused["effect"]["before"] - float(held - half + 1) * part
    assert refused["effect"]["after"] == pytest.approx(alone, abs=1e-6), "not after the sale that is open"
    said = run("order", "SELL", "ORVL", "--quantity", str(held - half + 1), "--yes").out
    assert f"{refused['effect']['before']:.1%} to {alone:.1%} of the portfolio" in said
    assert order(run, "SELL", "ORVL", "--quantity", str(held - half))["taken"]
    assert [*own()] == ["demo-20250314-0-ORVL-you-S-1", "demo-20250314-0-ORVL-you-S-2"]
    to_the_next_evening(monkeypatch)
    assert run("--daily", "--json").json["session"] == LATER
    sold = [fill for fill in run("report", "--json", "--session", LATER).json["fills"] if fill["owner"] == YOU]
    assert sum(Decimal(fill["quantity"]) for fill in sold) == held


def test_the_cash_floor_counts_what_the_desks_own_orders_may_take(run: Run, evening: Path) -> None:
    status = run("status", "--json").json
    reserved = sum(Decimal(one["notional"] or 0) for one in status["open_orders"])
    assert reserved > 0, "the desk has bought for the next open"
    cash = Decimal(status["cash"])
    refused = order(run, "BUY", "HLXM", "--amount", str(cash - reserved), code=1)
    assert "has to stay" in refused["refused"] and own() == {}
    # The effect and the limit count the same.
    left = Decimal(refused["effect"]["cash_after"])
    assert left == 0 and f"it would leave {left:,.2f} in cash" in refused["refused"]
    assert "exit code" not in run("status").out, "the code of the order is none of the last run"
    with JournalReader(places.desk_journal("demo")) as reader:
        (entry,) = reader.runs(RunKind.ORDER)
        assert entry.detail == f"BUY HLXM for ${cash - reserved}: {refused['refused']}" and exit_code(entry) == 1


def test_an_order_before_the_daily_run_settles_and_leaves_the_decisions_to_that_run(
    run: Run, evening: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    to_the_next_evening(monkeypatch)
    taken = order(run, "BUY", "BXWD", "--amount", "400")
    assert taken["order"]["session"] == LATER and run("status", "--json").json["session"] == LATER
    assert run("status", "--json").json["due"] == LATER
    daily = run("--daily", "--json").json
    assert (daily["outcome"], daily["session"], len(daily["decisions"])) == ("done", LATER, 4)
    assert run("parity", "--json").code == 0
    decided = [row for row in run("decisions", "--json").json["decisions"] if row["session"] == "2025-03-14"]
    known = {row["symbol"] for row in decided} - {"WRNN-USD"}  # its day was not over at the next decision
    with JournalReader(places.desk_journal("demo")) as reader:
        learned = {row.symbol for row in reader.outcomes() if str(row.decision_session) == "2025-03-14"}
    assert learned == known, "what the order's run has settled is learned from by the next cycle"


def test_what_cannot_be_ordered_says_why(run: Run, evening: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    none = run("order", "BUY", "ORVL", "--yes")
    both = run("order", "BUY", "ORVL", "--amount", "5", "--quantity", "1", "--yes")
    for said, words in ((none, "give a size: --quantity N or --amount USD"), (both, "not both")):
        assert (said.code, said.err.count("\n")) == (2, 1) and words in said.err
    assert "without a terminal" in run("order", "BUY", "ORVL", "--amount", "500").err
    assert "neither traded nor held" in run("order", "BUY", "TMBK", "--amount", "500", "--yes").err
    assert "less than the smallest order" in run("order", "BUY", "ORVL", "--amount", "0.5", "--yes").err
    halt(places.desk_journal("demo"), EVENING, "earnings")
    refused = order(run, "BUY", "ORVL", "--amount", "500", code=1)["refused"]
    assert "halted since" in refused and refused.endswith("press K or run `paperdesk resume`")
    run("resume")
    monkeypatch.setenv("PAPERDESK_BROKER__MODE", "observe")
    assert "observe mode" in run("order", "BUY", "ORVL", "--amount", "500", "--yes").err
    monkeypatch.setenv("PAPERDESK_BROKER__MODE", "ask")
    assert order(run, "BUY", "ORVL", "--amount", "500")["order"]["state"] == "acknowledged", "nobody has to approve it"
    monkeypatch.setenv("PAPERDESK_DESK__PRESET", "tradinggpt")
    assert "separate books" in run("order", "BUY", "ORVL", "--amount", "500", "--yes").err
    assert len(own()) == 1


def test_a_halt_between_the_limits_and_the_venue_ends_the_order(
    run: Run, evening: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    halt(places.desk_journal("demo"), EVENING, "earnings")
    monkeypatch.setattr("engine.app.orders.own_orders._halt_words", lambda *given: "")
    ended = order(run, "BUY", "ORVL", "--amount", "500", code=1)
    assert (ended["order"]["state"], ended["detail"]) == ("canceled", "the desk was halted before it was sent")
    run("resume")
    assert run("orders", "--open", "--json").json["orders"] == [
        one for one in run("orders", "--json").json["orders"] if one["state"] == "acknowledged"
    ]


def test_an_order_before_the_first_run_has_no_books_to_be_held_against(run: Run, fresh: Path) -> None:
    said = run("order", "BUY", "ORVL", "--amount", "500", "--yes")
    assert said.code == 65 and "has not run yet" in said.err and not places.desk_journal("demo").exists()


def test_an_order_that_a_killed_program_left_behind_is_ended_by_the_next(run: Run, evening: Path) -> None:
    placed = order(run, "BUY", "HLXM", "--amount", "700")["order"]["id"]
    with JournalReader(places.desk_journal("demo")) as reader:
        entry = next(one for one in reader.orders() if one.order.id == placed)
    left = replace(entry.order, id=placed.replace("-B-1", "-B-2"), state=OrderState.INTENDED)
    with JournalWriter(places.desk_journal("demo")) as writer:
        writer.order_intended(replace(entry, order=left))
    order(run, "BUY", "HLXM", "--amount", "800")
    states = own()
    assert states.pop(left.id) is OrderState.CANCELED
    assert states == {placed: OrderState.ACKNOWLEDGED, placed.replace("-1", "-3"): OrderState.ACKNOWLEDGED}


@pytest.fixture
def sandbox(open_broker: OpenBroker) -> SandboxServer:
    return open_broker(START, through=date(2024, 3, 20), symbols=("ORVL", "TMBK"))


def test_at_a_broker_it_goes_through_the_same_journal_and_the_account_agrees(
    run: Run, sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("--daily", "--json").code == 0
    taken = order(run, "BUY", "ORVL", "--amount", "2500")
    assert taken["order"]["state"] == "acknowledged"
    assert taken["order"]["id"] in sandbox.state()["posts"]
    after_close(sandbox)
    before = run("--daily", "--json").json
    assert before["outcome"] == "done"
    assert own("paper") == {taken["order"]["id"]: OrderState.FILLED}
    assert Decimal(run("positions", "--json").json["positions"]["ORVL"]["quantity"]) > 0
    assert run("reconcile").code == 0 and run("parity", "--json").code == 0
    sandbox.advance("open")
    sandbox.advance("10m")
    assert order(run, "BUY", "TMBK", "--amount", "2500")["order"]["state"] == "filled", "the market is open"
    shown = " ".join(run("status").out.split())
    assert "with 2 trades since, up to that close -" in shown
    # What was bought since the last close counts in the effect of the next order, which is asked about.
    with monkeypatch.context() as patch:
        patch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
        patch.setattr("click.confirm", lambda *_, **__: False)
        said = run("order", "BUY", "ORVL", "--amount", "300").out
        assert "nothing was ordered" in said
    # The price is that of the moment, in the question as in what is sent, and no close.
    (quote,) = [line for line in said.splitlines() if line.startswith("Price")]
    assert ", live at 2024-03-05 14:4" in quote
    sold = order(run, "SELL", "TMBK", "--quantity", "3")
    assert sold["order"]["state"] == "filled"
    assert sold["effect"]["session"] is None and sold["effect"]["time"].startswith("2024-03-05T14:4")
    after_close(sandbox)
    assert run("--daily").out.count(", yours\n") == 2, "trades that filled at once, in runs of their own"
    after = run("report", "--session", "latest", "--json").json
    assert run("reconcile").code == 0
    assert [one["owner"] for one in after["fills"]].count(YOU) == 2
    moved = sum(map(cash_of, after["fills"])) + sum(Decimal(one["amount"]) for one in after["cash_flows"])
    assert Decimal(before["cash"]) + moved == Decimal(after["cash"]), "the report explains the cash"
    with JournalReader(places.desk_journal("paper")) as reader:
        told = [event.fill for _, event in events_of(reader) if isinstance(event, OrderFilled)]
        assert [fill.order_id for fill in told] == [fill.order_id for fill in reader.fills()], "each is announced once"
    assert run("report", "--session", "latest").out.count(", yours\n") == 2


def test_where_it_stays_unknown_whether_it_arrived_the_same_line_never_orders_twice(
    run: Run, sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.execution.submission.LOOKUPS", (0.0,))
    assert run("--daily", "--json").code == 0
    orders = len(sandbox.state()["orders"])
    sandbox.fault("gateway_timeout", path="/v2/orders", method="POST", after=True)
    sandbox.fault("server_error", path="/v2/orders:by_client_order_id", count=0)
    lost = run("order", "BUY", "ORVL", "--amount", "900", "--yes", "--json")
    assert lost.code == 74 and "it is unknown whether order" in lost.err
    sandbox.clear_faults()
    other = run("order", "BUY", "ORVL", "--amount", "901", "--yes", "--json")
    assert other.code == 75 and "repeat the same order" in other.err
    again = order(run, "BUY", "ORVL", "--amount", "900")["order"]
    assert again["state"] == "acknowledged" and is_own(again["id"])
    assert len(sandbox.state()["orders"]) == orders + 1 and [*own("paper")] == [again["id"]]
