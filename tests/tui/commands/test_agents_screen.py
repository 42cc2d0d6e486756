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
        await until(pilot, lambda: all(worker.is_finished for worker in pilot.app.workers))
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


async def test_owners_who_debated_stand_side_by_side_and_below_each_other_where_it_is_narrow(
    run: Run, debating: Path
) -> None:
    said: dict[str, str] = {}
    async with opened() as pilot:
        await pilot.press("3")
        await until(pilot, lambda: bool(cells(pilot, "steps")))
        await pilot.press("v", "v")
        await until(pilot, lambda: "Comments received" in text(pilot, "sources"))
        assert not pilot.app.screen.query_one("#answer").display, "the columns take its place"
        said["beside"] = text(pilot, "sources")
        symbol = pilot.app.screen.symbol  # type: ignore[attr-defined]
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: text(pilot, "sources") != said["beside"])
        said["stacked"] = text(pilot, "sources")
        await pilot.press("v")
        assert pilot.app.screen.query_one("#answer").display
    trail = (await asyncio.to_thread(run, "why", symbol, str(SESSIONS[-1]), "--json")).json["decisions"][0]
    owners = [one["owner"] for one in trail["opinions"]]
    lines = said["beside"].splitlines()
    assert any(line.split() == owners for line in lines), "a column each"
    assert f"Decided: {trail['action']}" in lines[0] and any(line.startswith("Debate: ") for line in lines)
    headings = [line for line in lines if line in ("Vote", "Before") or line.startswith(("Comments received", "After"))]
    rounds = trail["debate"]["rounds"]
    every = (f"{name} round {number}" for number in range(1, rounds + 1) for name in ("Comments received,", "After"))
    assert headings == ["Vote", "Before", *every]
    votes = lines[lines.index("Vote") + 1]
    assert [votes.index(one["action"]) for one in trail["opinions"]] == sorted(
        votes.index(one["action"]) for one in trail["opinions"]
    ) or len({one["action"] for one in trail["opinions"]}) < len(owners)
    stacked = " ".join(said["stacked"].split())
    for owner in trail["debate"]["owners"]:
        advice = owner["advice"][0]
        assert f"{advice['advice']} ({advice['confidence']:.2f})" in stacked
    for comment in trail["debate"]["comments"]:
        assert f"{comment['author']}, {comment['stance']}: {comment['text'][:60]}" in stacked
    places = [said["stacked"].splitlines().index(owner) for owner in owners]
    assert places == sorted(places)
