"""Approving and vetoing from the command line, on the demo desk in mode ask and in an account at the sandbox."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from connectors.wiring.services import services
from engine.app.desk.run import run_daily
from engine.app.open_desk import OpenDesk
from engine.app.records.desk_journal import desk_lock
from engine.domain.model_call import ModelRequest, ModelResult
from engine.execution.controls import approvals, give
from engine.journal.reader import JournalReader
from engine.messages.commands import Approve, Veto
from engine.messages.events import OrderMoved
from engine.settings import places
from engine.settings.config import load_config
from tests.conftest import MadeHome
from tests.engine.desks import RulesExcept
from tests.tui.commands.conftest import Run, copied
from tests.tui.conftest import cells, opened, until

PASSED = "2025-03-11"
"""A session of long ago, for which the demo desk wants to trade."""
NOON = datetime(2025, 7, 1, 12, tzinfo=UTC)
"""The moment of the orders that wait: by a clock that goes on they would be too late after a midnight."""


@pytest.fixture
def asks(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAPERDESK_BROKER__MODE", "ask")


class Buys(RulesExcept):
    """The rules, except that every decision is to buy: the last session depends on the day of the test."""

    spec = "buys"

    def changed(self, request: ModelRequest, result: ModelResult) -> ModelResult:
        if "recommendation" not in (result.answer or {}):
            return result
        buys = {"recommendation": "BUY", "position_size": 5, "rule": "strong uptrend"}
        return replace(result, answer={**(result.answer or {}), **buys}, text="{}")


@pytest.fixture
def waiting(
    asks: None, run: Run, made_home: MadeHome, paperdesk_home: Path, monkeypatch: pytest.MonkeyPatch
) -> list[dict[str, Any]]:
    """The orders that wait on a demo desk in mode ask, at one moment; at least two."""
    monkeypatch.setattr("engine.clock.LiveClock.now", lambda clock: NOON)
    monkeypatch.setattr("engine.app.desk.demo_history.DUE", date(2025, 6, 30))
    config = load_config(None, environ={"PAPERDESK_BROKER__MODE": "ask", "PAPERDESK_DESK__NAME": "asking"}).config
    copied(made_home("waiting", lambda: asyncio.run(run_daily(services(config), through=Buys))), paperdesk_home)
    found = run("approve", "--desk", "asking", "--json").json["waiting"]
    assert len(found) >= 2
    return [order | {"desk": "asking"} for order in found]


def states(run: Run, desk: str) -> dict[str, str]:
    return {order["id"]: order["state"] for order in run("orders", "--desk", desk, "--json").json["orders"]}


def words(desk: str) -> dict[str, bool]:
    with JournalReader(places.desk_journal(desk)) as reader:
        return {name: word.approved for name, word in approvals(reader).items()}


def test_what_waits_is_listed_with_why_and_how_long(
    run: Run, waiting: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = waiting[0]["desk"]
    assert all(order["state"] == "intended" and order["reason"] and order["stays_until"] for order in waiting)
    said = run("approve", "--desk", desk)
    assert said.code == 0 and f"{len(waiting)} orders of the desk {desk} to approve or veto" in said.out
    assert all(order["id"] in said.out and f"BUY {order['symbol']} for" in said.out for order in waiting)
    assert said.out.count("  Stays  until ") == len(waiting)
    assert run("veto", "--desk", desk).out == said.out
    assert words(desk) == {}
    status = run("status", "--desk", desk, "--json").json
    assert status["last_run"]["outcome"] == "waiting" and status["due"] is None
    told = run("status", "--desk", desk).out
    assert "ask: an order is sent once it is approved" in told
    assert told.count("waits for approval: paperdesk approve") == len(waiting)
    monkeypatch.setenv("PAPERDESK_BROKER__MODE", "observe")
    told = run("status", "--desk", desk).out
    assert "observe: no order is sent" in told and "paperdesk approve" not in told, (
        "the mode in force, not that of then"
    )


def test_one_is_vetoed_and_one_approved_and_the_run_goes_on_without_deciding_anew(
    run: Run, waiting: list[dict[str, Any]]
) -> None:
    desk, first, second = waiting[0]["desk"], waiting[0]["id"], waiting[1]["id"]
    calls = run("status", "--desk", desk, "--json").json["model"]["calls"]
    vetoed = run("veto", first, "--reason", "too  much", "--desk", desk)
    assert (vetoed.code, vetoed.err) == (0, "") and vetoed.out.endswith(": vetoed: too much\n")
    assert states(run, desk)[second] == "intended"
    approved = run("approve", second, "--desk", desk, "--json")
    assert approved.code == 0
    assert [(o["id"], o["stands"], o["refused"]) for o in approved.json["orders"]] == [
        (second, "approved, acknowledged", False)
    ]
    assert states(run, desk) | {first: "canceled", second: "acknowledged"} == states(run, desk)
    assert run("status", "--desk", desk, "--json").json["model"]["calls"] == calls
    again = run("approve", first, second, "--desk", desk)
    assert again.code == 1 and "canceled already" in again.out and "sent already (acknowledged)" in again.out
    late = run("veto", second, "--desk", desk)
    assert late.code == 1 and "sent already (acknowledged)" in late.out
    assert run("veto", first, "--desk", desk).code == 0
    assert run("approve", second, "--desk", desk).code == 0


def test_all_that_wait_go_at_once_and_then_none_waits(run: Run, waiting: list[dict[str, Any]]) -> None:
    desk = waiting[0]["desk"]
    said = run("approve", "--all", "--desk", desk)
    assert said.code == 0 and said.out.count(": approved, acknowledged") == len(waiting)
    assert run("approve", "--all", "--desk", desk).out == f"no order of the desk {desk} waits for approval\n"
    assert run("--daily", "--desk", desk, "--json").json["outcome"] == "nothing to do"


def test_on_a_halted_desk_an_approval_waits_and_the_run_after_the_halt_sends(
    run: Run, waiting: list[dict[str, Any]]
) -> None:
    desk = waiting[0]["desk"]
    halt = run("halt", "--desk", desk, "--json").json
    assert [order["id"] for order in halt["not_sent"]] == [order["id"] for order in waiting]
    said = run("approve", "--all", "--desk", desk)
    assert said.code == 0 and "HALTED since " in said.out
    assert said.out.count("approved, not sent yet") == len(waiting)
    assert run("status", "--desk", desk).out.count("approved, not sent yet") == len(waiting)
    daily = run("--daily", "--desk", desk, "--json")
    assert (daily.code, daily.json["outcome"]) == (0, "halted")
    assert daily.json["halted"]["since"] == halt["halted"]["since"]
    assert set(states(run, desk).values()) == {"intended"}
    assert run("resume", "--desk", desk).code == 0
    assert run("--daily", "--desk", desk, "--json").json["outcome"] == "done"
    assert set(states(run, desk).values()) == {"acknowledged"}


def test_an_edit_is_held_against_the_limits_said_everywhere_and_can_be_undone(
    run: Run, waiting: list[dict[str, Any]]
) -> None:
    order = waiting[0]
    at, symbol, price = ("--desk", order["desk"]), order["symbol"], Decimal(order["effect"]["price"])
    assert Decimal(order["effect"]["shares"]) == round(Decimal(order["notional"]) / price, 4)
    assert order["effect"]["before"] == 0 and 0 < order["effect"]["after"] < 0.11
    assert "  Price  " in run("approve", *at).out
    for size, complaint in (
        (("--quantity", "100000"), "keeps its size: it would leave -"),
        (("--quantity", "1e30"), "exceeds what any account can trade"),
        (("--amount", "0.5"), "less than the smallest order"),
        (("--quantity", "-1"), "above zero"),
        (("--quantity", "x"), "is not a number"),
    ):
        refused = run("approve", symbol, *size, *at)
        assert refused.code == 2 and complaint in refused.err
    assert run("approve", "--all", "--quantity", "3", *at).code == 2
    run("halt", *at)
    amount = f"{3 * price:.2f}"
    approved = run("approve", symbol, "--quantity", "3", *at, "--json").json["orders"][0]
    assert (approved["notional"], approved["edited_from"]["notional"]) == (amount, order["notional"])
    assert approved["stands"] == "approved, not sent yet"
    edited = f"for {Decimal(amount):,.2f} (edited from {Decimal(order['notional']):,.2f} by the operator)"
    for command in (("orders",), ("why", symbol, order["session"]), ("status",)):
        assert edited in " ".join(run(*command, *at).out.split()), command
    listed = run("undo", *at)
    assert "1 order of the desk" in listed.out and order["id"] in listed.out and "can be taken back" in listed.out
    undone = run("undo", symbol, *at)
    assert undone.code == 0 and edited in undone.out and undone.out.splitlines()[0].endswith("taken back: waits")
    assert f"for {Decimal(order['notional']):,.2f}: taken back: waits" in run("undo", symbol, *at).out
    assert run("undo", order["id"], *at).out.splitlines()[0].endswith("nothing to undo")
    nothing = f"no order of the desk {order['desk']} has an answer to take back"
    assert all(run("undo", *what, *at).out.splitlines().count(nothing) == 1 for what in ((), ("--all",)))
    run("resume", *at)
    assert run("approve", symbol, "--amount", amount, *at).out.endswith(": approved, acknowledged\n")
    assert run("undo", order["id"], *at).code == 1
    sent = next(one for one in run("orders", *at, "--json").json["orders"] if one["id"] == order["id"])
    assert (sent["notional"], sent["state"]) == (amount, "acknowledged")


def test_while_a_run_is_at_work_an_approval_waits_for_it_to_read(run: Run, waiting: list[dict[str, Any]]) -> None:
    desk, first, second = waiting[0]["desk"], waiting[0]["id"], waiting[1]["id"]
    with desk_lock(desk):
        said = run("approve", first, "--desk", desk)
        assert said.code == 75 and "another run of the desk" in said.err and "approved, not sent yet" in said.out
        vetoed = run("veto", second, "--desk", desk)
        assert (vetoed.code, vetoed.err) == (0, "") and vetoed.out.endswith(": vetoed\n")
    assert words(desk) == {first: True, second: False}


def test_an_order_of_a_passed_session_is_too_late_and_is_not_sent(run: Run, asks: None) -> None:
    assert run("--daily", "--session", PASSED).code == 0
    orders = [order["id"] for order in run("orders", "--open", "--json").json["orders"]]
    assert orders
    assert run("approve", "--json").json["waiting"] == []
    said = run("approve", orders[0])
    assert said.code == 1 and "too late since 2025-03-1" in said.out
    assert words("demo") == {}
    assert "too late, the next run ends it" in run("status").out
    assert run("veto", orders[0]).code == 0


def test_an_order_that_nobody_approved_expires_with_that_reason(run: Run, asks: None) -> None:
    asyncio.run(run_daily(services(load_config(None).config), date.fromisoformat(PASSED), through=Buys))
    passed = {order["id"] for order in run("orders", "--open", "--json").json["orders"]}
    vetoed = min(passed)
    assert give(places.desk_journal("demo"), [Veto(vetoed, "earnings")], datetime(2025, 3, 13, tzinfo=UTC)) == ()
    assert run("--daily").code == 0
    ended = {order["id"]: order for order in run("orders", "--json").json["orders"] if order["id"] in passed}
    why = dict.fromkeys(passed, "nobody approved it before its session had passed")
    why[vetoed] = "it was vetoed before its session had passed"
    assert len(passed) >= 2 and {order["state"] for order in ended.values()} == {"expired"}
    assert {name: order["detail"] for name, order in ended.items()} == why
    with JournalReader(places.desk_journal("demo")) as reader:
        moved = [event for _, event in reader.events_after(limit=100_000) if isinstance(event, OrderMoved)]
        run_of = {entry.id: entry for entry in reader.runs()}
    assert {event.order.id: event.detail for event in moved if event.order.state == "expired"} == why
    assert {event.run for event in moved if event.order.state == "expired"} <= run_of.keys()

    async def shown() -> set[str]:
        async with opened() as pilot:
            await pilot.press("3")
            await until(pilot, lambda: bool(cells(pilot, "blotter")))
            return {row[-1] for row in cells(pilot, "blotter")}

    assert set(why.values()) <= asyncio.run(shown()), "the Book has it too"


def test_a_desk_that_observes_ends_each_order_once(run: Run, asks: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAPERDESK_BROKER__MODE", "observe")
    asyncio.run(run_daily(services(load_config(None).config), through=Buys))
    with JournalReader(places.desk_journal("demo")) as reader:
        ended = [event.order.id for _, event in reader.events_after(limit=100_000) if isinstance(event, OrderMoved)]
    assert len(ended) >= 2 and sorted(ended) == sorted(states(run, "demo")), "one line of the log for each"
    assert "observe: no order is sent" in run("status").out


async def test_an_app_that_only_reads_leaves_an_approval_unsent(waiting: list[dict[str, Any]]) -> None:
    desk, first = waiting[0]["desk"], waiting[0]["id"]
    give(places.desk_journal(desk), [Approve(first)], datetime(2025, 3, 13, tzinfo=UTC))
    config = load_config(None).config
    config = config.model_copy(update={"desk": config.desk.model_copy(update={"name": desk})})

    async def state(read_only: bool) -> str:
        await OpenDesk(services(config), read_only=read_only).submit(lambda event: None)
        with JournalReader(places.desk_journal(desk)) as reader:
            return next(str(entry.order.state) for entry in reader.orders() if entry.order.id == first)

    assert (await state(True), await state(False)) == ("intended", "acknowledged")


def test_an_unknown_order_is_refused_and_nothing_is_written(run: Run, waiting: list[dict[str, Any]]) -> None:
    desk, first = waiting[0]["desk"], waiting[0]["id"]
    for word in ("approve", "veto"):
        said = run(word, first, "nothing-here", "--desk", desk)
        assert said.code == 65 and "has no order nothing-here" in said.err and first in said.err
    assert words(desk) == {}


@pytest.mark.parametrize("mode", ["auto", "observe"])
def test_a_desk_that_does_not_ask_says_so(run: Run, desk: Path, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    monkeypatch.setenv("PAPERDESK_BROKER__MODE", mode)
    for arguments in (("approve",), ("approve", "--all"), ("veto", "x")):
        said = run(*arguments)
        assert said.code == 2 and "broker.mode" in said.err


def test_names_and_all_exclude_each_other(run: Run, asks: None) -> None:
    assert run("approve", "x", "--all").code == 2
    assert run("approve").out == "no order of the desk demo waits for approval\n"
    assert run("approve", "x").code == 65
    assert not places.desk_journal("demo").exists()


def test_a_symbol_stands_for_its_orders_that_wait(run: Run, waiting: list[dict[str, Any]]) -> None:
    desk, first, second = waiting[0]["desk"], waiting[0], waiting[1]
    vetoed = run("veto", first["symbol"].lower(), "--reason", "too much", "--desk", desk)
    assert (vetoed.code, vetoed.err) == (0, "") and vetoed.out.endswith(": vetoed: too much\n")
    assert run("approve", second["symbol"], "--desk", desk).code == 0
    assert states(run, desk) | {first["id"]: "canceled", second["id"]: "acknowledged"} == states(run, desk)
    listed = run("orders", "--desk", desk)
    assert "vetoed: too much" in listed.out, "the list says why an order ended"
    nothing = run("veto", "NOSUCH", "--desk", desk)
    assert nothing.code == 65 and "has no order NOSUCH: waiting:" in nothing.err
