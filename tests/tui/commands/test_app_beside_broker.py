"""The open app on an account at a local broker: its clock, runs of other processes, and a new account."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from connectors.alpaca import live_feed
from connectors.sandbox import SandboxServer
from engine.settings import places
from tests.connectors.alpaca.sandbox_markets import sandbox as small_sandbox
from tests.tui.commands.conftest import OpenBroker, Run, after_close
from tests.tui.conftest import Running, arrived, bar, shown, until
from tui.commands.app import open_desk
from tui.desk import desk_follower
from tui.settings.invocation import Invocation
from tui.widgets.screen_bars import EventLog
from tui.widgets.table import Table

START = datetime(2024, 3, 1, 21, 5, tzinfo=UTC)


@pytest.fixture
def sandbox(open_broker: OpenBroker) -> SandboxServer:
    return open_broker(START, through=date(2024, 3, 20), symbols=("ORVL", "TMBK"))


def rows(pilot: Pilot[Any], name: str) -> dict[str, list[str]]:
    table = pilot.app.screen_stack[0].query_one(f"#{name}", Table)
    return {row.key: [cell.text for cell in row.cells] for row in table.rows}


def held_rows(pilot: Pilot[Any]) -> set[str]:
    return {symbol for symbol, row in rows(pilot, "watchlist").items() if row[5] != "-"}


def log(pilot: Pilot[Any]) -> str:
    return pilot.app.screen_stack[0].query_one(EventLog).as_text()


def until_orders(sandbox: SandboxServer, run: Run) -> None:
    """Daily runs until one has sent orders, which wait for the next open."""
    assert run("--daily").code == 0
    while not sandbox.state()["orders"]:
        after_close(sandbox)
        assert run("--daily").code == 0


async def test_orders_fills_positions_cash_and_equity_follow_a_fill(
    running: Running, sandbox: SandboxServer, run: Run
) -> None:
    await asyncio.to_thread(until_orders, sandbox, run)
    async with running(open_desk=partial(open_desk, Invocation())) as pilot:
        await until(pilot, lambda: bool(rows(pilot, "orders")) and "feed of orders is up" in log(pilot))
        await until(pilot, lambda: "feed of shares is up" in log(pilot))
        waiting = set(rows(pilot, "orders"))
        await asyncio.to_thread(sandbox.advance, "open")
        await until(pilot, lambda: rows(pilot, "orders") == {} and bool(held_rows(pilot)))
        held, cash = sandbox.state()["positions"], sandbox.state()["cash"]
        assert held_rows(pilot) == set(held) and f"Cash {float(cash):,.0f}" in bar(pilot)
        assert log(pilot).count("trade: ") >= 2 * len(waiting) and "books it" not in log(pilot)
        await asyncio.to_thread(sandbox.advance, "10m")  # prices move on, and with them profit and equity
        await until(pilot, lambda: f"Equity {float(sandbox.state()['equity']):,.2f}" in bar(pilot))
        await pilot.press("3")
        screen = pilot.app.screen
        await until(pilot, lambda: {row.key for row in screen.query_one("#book-positions", Table).rows} == set(held))
    document = (await asyncio.to_thread(run, "positions", "--json")).json
    assert {symbol: one["quantity"] for symbol, one in document["positions"].items()} == held
    assert float(document["cash"]) == float(cash) and document["since"]["fills"] == len(waiting)
    orders = (await asyncio.to_thread(run, "orders", "--json")).json["orders"]
    assert {one["id"] for one in orders if one["state"] == "filled"} == waiting


async def test_the_past_shows_orders_of_ones_own_as_they_were_shown_live(
    running: Running, sandbox: SandboxServer, run: Run
) -> None:
    await asyncio.to_thread(run, "--daily")
    await asyncio.to_thread(sandbox.advance, "open")
    await asyncio.to_thread(sandbox.advance, "10m")
    for order, code in (("BUY ORVL --amount 2500", 0), ("SELL TMBK --quantity 3", 1)):
        assert (await asyncio.to_thread(run, "order", *order.split(), "--yes")).code == code
    async with running(open_desk=partial(open_desk, Invocation())) as pilot:
        snapshot = pilot.app.bridge.snapshot  # type: ignore[attr-defined]
        await until(pilot, lambda: "order failed: SELL 3 TMBK" in log(pilot) and snapshot().opened is not None)
        assert re.search(r"trade: ORVL BUY [\d.]+ at [\d.]+\n", log(pilot))
        places_shown: list[str] = []
        await pilot.press("less_than_sign")
        await arrived(pilot)
        await pilot.press("greater_than_sign")
        while "run done" not in places_shown:
            view = await arrived(pilot)
            assert view.place is not None and not view.desk.running
            places_shown.append(view.place.text)
            await shown(pilot)
            assert f"Mkt {'CLOSED' if view.place.text == 'run done' else 'OPEN'}" in bar(pilot)
            assert "Cycle" not in bar(pilot)
            assert places_shown[-1] in log(pilot) or places_shown[-1] == "your order was accepted"
            await pilot.press("less_than_sign")
        assert places_shown[0].startswith("order failed: SELL 3 TMBK"), places_shown
        taken, filled, acknowledged, _ = places_shown[1:]
        assert (taken, acknowledged) == ("your order was accepted", "ORVL BUY order acknowledged")
        assert filled.startswith("ORVL BUY ")
        done = view.place.number
        for key in (*("greater_than_sign",) * 4, "left_curly_bracket"):
            await pilot.press(key)
            await arrived(pilot)
        view = await arrived(pilot)
        assert view.place is not None and view.place.number == done, "an order of one's own ends no session"


@pytest.mark.slow
async def test_a_fill_is_booked_while_the_stream_of_orders_is_down(
    running: Running, sandbox: SandboxServer, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_feed, "POLL_EVERY", 0.1)
    await asyncio.to_thread(until_orders, sandbox, run)
    await asyncio.to_thread(sandbox.fault, "server_error", path="/stream", count=0)
    async with running(open_desk=partial(open_desk, Invocation())) as pilot:
        await until(pilot, lambda: bool(rows(pilot, "orders")) and "feed of orders POLLING" in log(pilot))
        waiting = set(rows(pilot, "orders"))
        await asyncio.to_thread(sandbox.advance, "open")
        await until(pilot, lambda: rows(pilot, "orders") == {} and bool(held_rows(pilot)))
        assert log(pilot).count("the broker says fill: BUY ") == len(waiting)
    assert (await asyncio.to_thread(run, "positions", "--json")).json["since"]["fills"] == len(waiting)


async def test_an_app_that_only_reads_books_nothing(running: Running, sandbox: SandboxServer, run: Run) -> None:
    await asyncio.to_thread(until_orders, sandbox, run)
    before = places.desk_journal("paper").read_bytes()
    async with running(open_desk=partial(open_desk, Invocation(), read_only=True)) as pilot:
        await until(pilot, lambda: "feed of orders is up" in log(pilot))
        await asyncio.to_thread(sandbox.advance, "open")
        await until(pilot, lambda: "the desk's next run books it" in log(pilot))
    assert places.desk_journal("paper").read_bytes() == before


@pytest.mark.slow
async def test_a_new_accounts_prices_are_fetched_when_the_app_opens_and_closes_as_they_come(
    running: Running, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk_follower, "AGAIN_SECONDS", 0.2)
    with small_sandbox(start=datetime(2024, 3, 6, 21, 5, tzinfo=UTC)) as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        for name, value in {
            "BROKER__KIND": "alpaca",
            "BROKER__CLOCK": "broker",
            "DESK__SYMBOLS": "AAA,BTC-USD",
        }.items():
            monkeypatch.setenv(f"PAPERDESK_{name}", value)
        async with running(open_desk=partial(open_desk, Invocation())) as pilot:
            view = pilot.app.bridge.snapshot  # type: ignore[attr-defined]
            await until(pilot, lambda: bool(view().trouble) or bool(rows(pilot, "watchlist")))
            assert view().trouble == "" and {row[1] for row in rows(pilot, "watchlist").values()}.isdisjoint({"-", ""})
            # A watched symbol that the desk does not trade is fetched, too; one that the broker does not know is named.
            pilot.app.bridge.change_group("core", ["BBB", "NONE"], [])  # type: ignore[attr-defined]
            await pilot.press("w")
            await until(pilot, lambda: rows(pilot, "watchlist").get("BBB", ["", "-"])[1] != "-")
            assert rows(pilot, "watchlist")["NONE"][1] == "-"
            assert any("NONE" in one.message for one in pilot.app._notifications)
            await pilot.press("w", "r")
            await until(pilot, lambda: "run done" in log(pilot))
            read = view().sources[0].version
            first = view().market.charts["AAA"].days[-1]
            await asyncio.to_thread(server.fault, "wrong_key", path="/v2/stocks/bars", count=0)
            await asyncio.to_thread(after_close, server)  # a close that no run has fetched
            await until(pilot, lambda: view().sources[0].version > read)
            await until(pilot, lambda: "latest closes unavailable: " in log(pilot))
            await asyncio.to_thread(server.clear_faults)
            await asyncio.to_thread(server.advance, "open")
            await asyncio.to_thread(server.advance, "10m")
            # The session that goes on is shown after the one that closed, not after the last that a run has fetched.
            await until(pilot, lambda: view().market.charts["AAA"].days[-3] == first)
            assert view().trouble == ""


async def test_a_folder_that_somebody_else_fills_is_named_with_what_the_app_has(
    running: Running, fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAPERDESK_DATA__FOLDER", str(tmp_path / "mine"))
    monkeypatch.setenv("PAPERDESK_DESK__SYMBOLS", "AAA")
    async with running(open_desk=partial(open_desk, Invocation())) as pilot:
        view = pilot.app.bridge.snapshot  # type: ignore[attr-defined]
        await until(pilot, lambda: bool(view().trouble))
        assert "no prices in" in view().trouble and "`paperdesk import prices`" in view().trouble
        assert "--data" not in view().trouble
