"""Canceling orders that were sent: on the demo desk, in an account at the sandbox, and by key in the app."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from conftest import Running, until
from textual.pilot import Pilot

from connectors.sandbox import SandboxServer
from connectors.wiring.services import services
from engine.app.desk.run import run_daily
from engine.app.orders.own_orders import cancel_orders
from engine.app.records.desk_journal import desk_lock
from engine.journal.reader import JournalReader
from engine.services import Services
from engine.settings import places
from engine.settings.config import load_config
from tests.tui.commands.conftest import OpenBroker, Run, after_close
from tests.tui.commands.test_approve import Buys
from tui.commands.app import open_desk
from tui.screens.confirm import ConfirmScreen
from tui.settings.invocation import Invocation
from tui.widgets.screen_bars import EventLog
from tui.widgets.table import Table

SESSION = date(2025, 3, 11)


@pytest.fixture
def shares(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A desk of shares of the demo market, whose session is over at its close."""
    monkeypatch.setenv("PAPERDESK_DESK__SYMBOLS", "ORVL,BXWD,HLXM")


class At:
    """A clock that stands still."""

    def __init__(self, moment: datetime) -> None:
        self.moment = moment

    def now(self) -> datetime:
        return self.moment


def at(hour: int, day: int = 11) -> Services:
    """The configured desk at an hour (UTC) of a day in March 2025."""
    return services(load_config(None).config, At(datetime(2025, 3, day, hour, 30, tzinfo=UTC)))


def orders(run: Run) -> dict[str, Any]:
    return {order["id"]: order for order in run("orders", "--json").json["orders"]}


def test_an_order_of_the_simulated_market_is_canceled_until_its_session_opens(
    run: Run, shares: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As with a data folder, by whose clock sessions open; the demo's stands before that.
    monkeypatch.setattr("engine.app.orders.own_orders.by_desk_time", lambda services: services)
    asyncio.run(run_daily(at(21), SESSION, through=Buys))
    sent = [order["id"] for order in run("cancel", "--json").json["sent"]]
    assert len(sent) >= 3 and f"{sent[0]}  BUY " in run("cancel").out
    first, second, third = sent[:3]
    (done,) = asyncio.run(cancel_orders(at(12, day=12), [first])).orders
    assert (done.state, done.refused, orders(run)[first]["state"]) == ("canceled by you", False, "canceled")
    (late,) = asyncio.run(cancel_orders(at(13, day=12), [second])).orders
    assert late.refused and "its session has opened, at 2025-03-12 13:30 UTC" in late.state
    with desk_lock("demo"):
        said = run("cancel", third)
        assert said.code == 75 and "another run of the desk" in said.err
    by_now = run("cancel", third)
    assert by_now.code == 1 and "its session has opened" in by_now.out
    again = run("cancel", first)
    assert again.code == 2 and "the order is canceled already" in again.err
    assert run("cancel", "NOSUCH").code == 65

    asyncio.run(run_daily(at(21, day=12), date(2025, 3, 12), through=Buys))
    with JournalReader(places.desk_journal("demo")) as reader:
        filled = {fill.order_id for fill in reader.fills()}
    assert second in filled and first not in filled
    assert orders(run)[first]["detail"] == "canceled by you"


def test_what_waits_for_approval_is_vetoed_not_canceled(
    run: Run, shares: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAPERDESK_BROKER__MODE", "ask")
    asyncio.run(run_daily(at(21), SESSION, through=Buys))
    waiting = next(iter(orders(run)))
    said = run("cancel", waiting)
    assert said.code == 2 and "paperdesk veto" in said.err
    assert run("cancel").out == "no order of the desk demo is sent and open\n"


@pytest.fixture
def sandbox(open_broker: OpenBroker) -> SandboxServer:
    return open_broker(
        datetime(2024, 3, 1, 21, 5, tzinfo=UTC), through=date(2024, 3, 20), symbols=("ORVL", "TMBK", "HLXM")
    )


def sent_at(sandbox: SandboxServer, run: Run) -> list[str]:
    """The ids of two orders that were sent after a daily run, and wait for the next open."""
    assert run("--daily").code == 0
    for symbol in ("ORVL", "TMBK"):
        assert run("order", "BUY", symbol, "--amount", "1000", "--yes").code == 0
    sent = [str(order["id"]) for order in run("cancel", "--json").json["sent"]]
    assert len(sent) >= 2 and set(states_at(sandbox)) >= set(sent)
    return sent


def states_at(sandbox: SandboxServer) -> dict[str, str]:
    return {order["client_order_id"]: order["status"] for order in sandbox.state()["orders"]}


def broker_id(sandbox: SandboxServer, order: str) -> str:
    """The broker's own id of an order."""
    return next(str(one["id"]) for one in sandbox.state()["orders"] if one["client_order_id"] == order)


def test_the_broker_is_asked_and_what_became_of_the_order_is_booked(run: Run, sandbox: SandboxServer) -> None:
    order = sent_at(sandbox, run)[0]
    done = run("cancel", order, "--json")
    assert (done.code, [(one["id"], one["stands"], one["refused"]) for one in done.json["orders"]]) == (
        0,
        [(order, "canceled", False)],
    )
    assert states_at(sandbox)[order] == "canceled"
    after_close(sandbox)
    assert run("--daily").code == 0, "the account and the books agree"
    assert orders(run)[order]["state"] == "canceled"
    with JournalReader(places.desk_journal("paper")) as reader:
        assert order not in {fill.order_id for fill in reader.fills()}


def test_a_cancellation_whose_answer_is_lost_is_cleared_up_by_a_look(
    run: Run, sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = sent_at(sandbox, run)[:2]
    with monkeypatch.context() as patch:
        patch.setenv("PAPERDESK_BROKER__KIND", "simulated")
        assert run("cancel", first).code == 78, "its orders are in another market"
    assert (orders(run)[first]["state"], states_at(sandbox)[first]) == ("acknowledged", "accepted")
    sandbox.fault("server_error", method="DELETE", path="/v2/orders/*", status=504, count=0)
    assert run("cancel", first).code == 75, "it did not come through"
    assert states_at(sandbox)[first] != "canceled" and orders(run)[first]["state"] != "canceled"
    sandbox.clear_faults()
    assert run("cancel", first).code == 0
    sandbox.fault("gateway_timeout", method="DELETE", path="/v2/orders/*", count=0)
    done = run("cancel", second, "--json")
    assert (done.code, [(one["stands"], one["refused"]) for one in done.json["orders"]]) == (0, [("canceled", False)])
    assert (states_at(sandbox)[second], orders(run)[second]["detail"]) == ("canceled", "canceled by you")
    sandbox.clear_faults()
    after_close(sandbox)
    assert run("--daily").code == 0, "the account and the books agree"


def test_orders_that_filled_meanwhile_are_filled_and_refused(run: Run, sandbox: SandboxServer) -> None:
    sent = sent_at(sandbox, run)
    sandbox.advance("open")
    sandbox.advance("5m")
    done = run("cancel", *sent, "--json")
    assert done.code == 1 and done.err == ""
    assert [(one["id"], one["stands"], one["refused"]) for one in done.json["orders"]] == [
        (order, "filled", True) for order in sent
    ]
    assert {orders(run)[order]["state"] for order in sent} == {"filled"}


def test_every_order_is_asked_for_whatever_becomes_of_the_others_and_of_the_books(
    run: Run, sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAPERDESK_BROKER__LATE_ENTRY_HOURS", "0")
    first, *others = sent_at(sandbox, run)
    assert others, "one order alone would show nothing"
    sandbox.fault("server_error", path=f"/v2/orders/{broker_id(sandbox, first)}", method="DELETE", count=0)
    failed = run("cancel", first, *others)
    assert failed.code == 75 and failed.out.count(": canceled\n") == len(others)
    assert "not known to be canceled: " in failed.out
    assert {states_at(sandbox)[order] for order in others} == {"canceled"}
    sandbox.clear_faults()

    book = sandbox.exchange.book
    book.portfolio = book.portfolio.__class__(book.portfolio.cash - 100, book.portfolio.positions)
    halted = run("cancel", first)
    assert halted.code == 79 and halted.out.endswith(": canceled at the broker, and not booked yet\n")
    assert states_at(sandbox)[first] == "canceled"


def test_the_simulated_books_of_a_desk_are_not_canceled_for_at_a_broker(
    run: Run, sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAPERDESK_DESK__NAME", "simulated")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PAPERDESK_BROKER__KIND", "simulated")
        asyncio.run(
            run_daily(
                services(load_config(places.config_file()).config, At(datetime(2024, 3, 8, 21, 30, tzinfo=UTC))),
                date(2024, 3, 8),
                through=Buys,
            )
        )
    sent = run("cancel", "--json").json["sent"]
    said = run("cancel", sent[0]["id"])
    assert said.code == 78 and "set broker.kind to simulated" in said.err


async def test_a_key_cancels_the_order_under_the_cursor(running: Running, sandbox: SandboxServer, run: Run) -> None:
    order = (await asyncio.to_thread(sent_at, sandbox, run))[0]

    def table(pilot: Pilot[Any]) -> Table:
        return pilot.app.screen_stack[0].query_one("#orders", Table)

    async with running(open_desk=partial(open_desk, Invocation())) as pilot:
        await until(pilot, lambda: order in [row.key for row in table(pilot).rows])
        assert "X cancel" in table(pilot).border_subtitle
        pilot.app.screen.focus_pane("orders")  # type: ignore[attr-defined]
        table(pilot).point_at(order)
        await pilot.press("X")
        await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen))
        await pilot.press("y")
        assert pilot.app.last_command == f"paperdesk cancel {order}"  # type: ignore[attr-defined]
        await until(pilot, lambda: order not in [row.key for row in table(pilot).rows])
        log = pilot.app.screen_stack[0].query_one(EventLog)
        await until(pilot, lambda: ": canceled" in log.as_text())
    assert states_at(sandbox)[order] == "canceled"
