"""Draws the README's picture, the Desk screen of the demo desk: `python -m tests.tui.readme_picture`."""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from datetime import date
from pathlib import Path

PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "desk.svg"
SESSIONS = (date(2025, 3, 10), date(2025, 3, 11), date(2025, 3, 12), date(2025, 3, 13))


async def draw() -> None:
    """Runs the demo desk for some sessions and then, in the app, for one more; writes what the screen shows."""
    from connectors.wiring.services import services
    from engine.app.desk_runner import OpenDesk
    from engine.app.runs import run_daily
    from engine.config import Config
    from tui.app import PaperdeskApp

    config = Config()
    for session in SESSIONS:
        await run_daily(services(config), session)
    app = PaperdeskApp(lambda: OpenDesk(services(config)), lambda spec, connection: None, images=Path())
    async with app.run_test(size=(132, 40)) as pilot:
        await pilot.pause(4)
        await pilot.press("r")
        await pilot.pause(8)
        await pilot.press("j")
        await pilot.pause(1)
        PICTURE.parent.mkdir(parents=True, exist_ok=True)
        svg = app.export_screenshot(title="Paperdesk")
        # No font is fetched from anywhere: the reader's own monospaced one will do.
        PICTURE.write_text(re.sub(r"@font-face\s*\{.*?\}", "", svg, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        os.environ["PAPERDESK_HOME"] = home
        asyncio.run(draw())
