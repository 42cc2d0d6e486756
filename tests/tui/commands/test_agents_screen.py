"""The Agents screen shows every step with its answer, prompt and memories, as the journal has them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from tests.tui.commands.conftest import SESSIONS, Run
from tests.tui.commands.test_book_screen import cells
from tests.tui.commands.test_playback import arrived
from tests.tui.conftest import opened, until
from tui.widgets.pane_text import TextPane
from tui.widgets.table import Table


def text(pilot: Pilot[Any], pane: str) -> str:
    """The text of a pane."""
    return pilot.app.screen.query_one(f"#{pane}", TextPane).as_text()


async def test_every_step_has_its_answer_and_its_prompt(run: Run, desk: Path) -> None:
    shown: dict[str, tuple[str, str]] = {}
    async with opened() as pilot:
        await pilot.press("left_curly_bracket")
        await arrived(pilot)
        await pilot.press("3", "right_square_bracket")
        await until(pilot, lambda: bool(cells(pilot, "steps")))
        steps = [row[1] for row in cells(pilot, "steps")]
        await until(pilot, lambda: "user" in text(pilot, "sources") or not text(pilot, "answer"))
        assert pilot.app.screen.query_one("#steps", Table).cursor_key == steps[-1], "it opens at the decision"
        await pilot.press("g")
        for step in steps:
            await pilot.pause()
            shown[step] = text(pilot, "answer"), text(pilot, "sources")
            await pilot.press("down")
        await pilot.press("v", "v")
        await pilot.pause()
        opinions = text(pilot, "sources")
        symbol = pilot.app.screen.symbol  # type: ignore[attr-defined]
    said = await asyncio.to_thread(run, "why", symbol, str(SESSIONS[1]), "--json")  # it has a loop of its own
    assert (said.code, said.err) == (0, "")
    trail = said.json["decisions"][0]
    answered = [one for one in trail["answers"] if one["outcome"] == "answered"]
    assert len([one for one in shown.values() if one[0]]) == len(answered)
    prompts = [prompt for _, prompt in shown.values()]
    for one in answered:
        asked = one["messages"][0]["text"].split("\n")[0]
        assert any(asked in prompt for prompt in prompts), one["agent"]
    decision = shown[steps[-1]]
    assert trail["action"].lower() in decision[0].lower() and "answered" in decision[1]
    assert trail["action"] in opinions
