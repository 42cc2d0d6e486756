"""A rewind over sixty sessions: what the screen paints at its stops is what `paperdesk status --at` prints."""

from __future__ import annotations

import asyncio
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from connectors.wiring.services import services
from engine.app.desk.run import run_daily
from engine.market.trading_hours import exchange_calendar
from engine.reports import amounts
from engine.settings import places
from engine.settings.config import load_config
from tests.tui.commands.conftest import FEW_AGENTS, Run
from tests.tui.commands.test_book_screen import cells
from tests.tui.commands.test_playback import arrived
from tests.tui.conftest import opened, until
from tui.screens.newest_reading import is_reading
from tui.widgets.screen_bars import StatusBar

WINDOW = date(2025, 1, 2), date(2025, 3, 31)
STOPS = ["{"] * 3 + ["<"] * 2 + ["{"] * 9 + ["<", "<", ">"] + ["{"] * 2 + ["}"]
"""Keys; between two of them lie two more sessions, so that the stops go over all of the history."""


async def painted(pilot: Pilot[Any]) -> tuple[str, str, list[list[str]]]:
    """The place, and the top line and the positions as they are painted, once all of it is of that place."""
    app, place = pilot.app, (await arrived(pilot)).place
    bridge = app.bridge  # type: ignore[attr-defined]
    await until(pilot, lambda: app.screen._view.place == place and not is_reading(app))  # type: ignore[attr-defined]
    return (
        str(bridge.snapshot().sources[0].at),
        app.screen.query_one(StatusBar).render_line(0).text,
        cells(pilot, "book-positions"),
    )


def figures(status: Any) -> list[str]:
    """What the top line has to say of a status document."""
    wanted = [f"Equity {Decimal(status['value']):,.2f}", f"Cash {Decimal(status['cash']):,.0f}"]
    return wanted if status["change"] is None else [*wanted, f"{amounts.percent(status['change'])} day"]


def positions(status: Any) -> list[list[str]]:
    """Symbol, quantity, price and gain of every position of a status document."""
    return [
        [
            symbol,
            amounts.quantity(Decimal(row["quantity"])),
            f"{Decimal(row['price']):.2f}",
            f"{Decimal(row['gain']):+,.2f}",
        ]
        for symbol, row in sorted(status["positions"].items())
    ]


@pytest.mark.slow
async def test_twenty_stops_over_sixty_sessions_paint_what_status_prints(
    run: Run, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in FEW_AGENTS.items():
        monkeypatch.setenv(name, value)
    sessions = exchange_calendar("XNYS", places.session_table()).sessions(*WINDOW)
    assert len(sessions) == 60
    for session in sessions:
        await asyncio.to_thread(lambda day=session: asyncio.run(run_daily(services(load_config(None).config), day)))  # type: ignore[misc]
    seen: dict[str, tuple[str, list[list[str]]]] = {}
    async with opened((200, 60)) as pilot:
        await pilot.press("4")
        for key in STOPS:
            await pilot.press(*"{{", key)
            place, line, rows = await painted(pilot)
            seen[place] = line, rows
    assert len(seen) == 20
    for place, (line, rows) in seen.items():
        status = (await asyncio.to_thread(run, "status", "--at", place, "--json")).json
        for wanted in figures(status):
            assert wanted in line, (place, line)
        shown = [[row[n] for n in (0, 1, 3, 6)] for row in rows]
        assert sorted(shown) == positions(status), place
    assert len({line for line, _ in seen.values()}) > 15  # other figures at nearly every stop
