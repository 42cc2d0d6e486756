"""The open app on an account at a local broker: its clock, runs of other processes, and a new account."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime
from functools import partial
from typing import Any

import pytest
from textual.pilot import Pilot

from connectors.sandbox import SandboxServer
from tests.tui.commands.conftest import OpenBroker, Run, after_close
from tests.tui.conftest import Running, until
from tui.commands.app import open_desk
from tui.invocation import Invocation
from tui.widgets.screen_bars import EventLog, StatusBar
from tui.widgets.table import Table

START = datetime(2024, 3, 1, 21, 5, tzinfo=UTC)


@pytest.fixture
def sandbox(open_broker: OpenBroker) -> SandboxServer:
    return open_broker(START, through=date(2024, 3, 20), symbols=("ORVL", "TMBK"))


def rows(pilot: Pilot[Any], name: str) -> dict[str, list[str]]:
    table = pilot.app.screen_stack[0].query_one(f"#{name}", Table)
    return {row.key: [cell.text for cell in row.cells] for row in table.rows}


def bar(pilot: Pilot[Any]) -> str:
    return pilot.app.screen_stack[0].query_one(StatusBar).render_line(0).text


def log(pilot: Pilot[Any]) -> str:
    return pilot.app.screen_stack[0].query_one(EventLog).as_text()


async def test_the_screen_follows_the_brokers_clock_and_the_runs_of_others(
    running: Running, sandbox: SandboxServer, run: Run
) -> None:
    async with running(open_desk=partial(open_desk, Invocation())) as pilot:
        view = pilot.app.bridge.snapshot  # type: ignore[attr-defined]
        await until(pilot, lambda: bool(view().market) and bool(rows(pilot, "watchlist")))
        closed = {quote.symbol: quote.session for quote in view().market.quotes}
        assert set(closed.values()) == {date(2024, 3, 1)}
        for _ in range(5):
            before = rows(pilot, "watchlist")
            await asyncio.to_thread(run, "--daily")
            decided = view().services.clock.now()
            await until(pilot, lambda: view().desk.books is not None)
            await asyncio.to_thread(after_close, sandbox)
            await until(pilot, lambda at=decided: view().services.clock.now().date() > at.date())  # type: ignore[misc]
            await until(pilot, lambda was=before: rows(pilot, "watchlist") != was)  # type: ignore[misc]
            if rows(pilot, "positions"):
                break
        assert "no cycle yet" not in bar(pilot)
        held = sandbox.state()["positions"]
        assert set(rows(pilot, "positions")) <= set(held) and rows(pilot, "positions")
        assert "trade: " in log(pilot)
