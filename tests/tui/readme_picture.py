"""Draws the pictures of the README and of docs/pictures from the demo desk: `python -m tests.tui.readme_picture`."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
SESSIONS = (
    *(date(2025, 2, day) for day in (24, 25, 26, 27, 28)),
    *(date(2025, 3, day) for day in (3, 4, 5, 6, 7, 10, 11, 12, 13)),
)
SCREENS = {"2": "why", "3": "book", "4": "lab", "A": "arena", "5": "ops"}
"""Screens and parts by key; the Desk is drawn twice, in the present and in the past."""
BACKTEST = ("backtest", "--symbols", "ORVL,HLXM", "--from", "2025-01-02", "--to", "2025-03-13")


def keep(app: Any, name: str) -> None:
    """Write what the screen shows. No font is fetched from anywhere: the reader's own monospaced one will do."""
    svg = re.sub(r"@font-face\s*\{.*?\}", "", app.export_screenshot(title="Paperdesk"), flags=re.DOTALL)
    PICTURES.mkdir(parents=True, exist_ok=True)
    svg = svg.replace(os.environ["PAPERDESK_HOME"], "/home/paper/desk")  # as long, so that columns stay
    (PICTURES / f"{name}.svg").write_text(svg, encoding="utf-8")


async def draw() -> None:
    """Runs the demo desk for some sessions and then, in the app, for one more; writes what the screens show."""
    from connectors.wiring.services import services
    from engine.app.arena.arena import run_arena
    from engine.app.arena.record import ArenaSpec
    from engine.app.desk.run import run_daily
    from engine.app.open_desk import OpenDesk
    from engine.clock import SyncedClock
    from engine.market.trading_hours import completed_at
    from engine.settings.config import Config
    from tui.app.app import PaperdeskApp

    config = Config()
    for session in SESSIONS:
        of = services(config)
        clock = SyncedClock(of.clock)  # an evening of that day, not the one on which it is drawn
        clock.sync(completed_at(of.desk_calendar(of.symbols), of.symbols, session))
        await run_daily(replace(of, clock=clock), session)
    program = [sys.executable, "-c", "from tui.cli import main; main()", *BACKTEST]
    subprocess.run(program, check=True, stdout=subprocess.DEVNULL)
    spec = ArenaSpec(run="arena", preset="ssw", agents="controls", seed=7)
    await asyncio.to_thread(run_arena, services(config), spec)
    app = PaperdeskApp(lambda: OpenDesk(services(config)), lambda spec, connection: None, images=Path())
    async with app.run_test(size=(132, 40)) as pilot:
        await pilot.pause(4)
        await pilot.press("r")
        await pilot.pause(12)
        await pilot.press("j")
        await pilot.pause(1)
        keep(app, "desk")
        await pilot.press(*["left_curly_bracket"] * 3)
        await pilot.pause(3)
        await pilot.press(*["greater_than_sign"] * 30)
        await pilot.pause(3)
        keep(app, "past")
        await pilot.press("left_curly_bracket")
        for key, name in SCREENS.items():
            await pilot.press(key)
            await pilot.pause(3)
            keep(app, name)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"PAPERDESK_HOME": home, "TEXTUAL_ANIMATIONS": "none"}  # no film, and no tour after it
        asyncio.run(draw())
