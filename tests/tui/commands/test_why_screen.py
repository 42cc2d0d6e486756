"""The Why screen shows the agents of a decision, live too, with answers, prompts and memories as in the journal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from connectors.wiring.services import services
from engine.app.desk.run import run_daily
from engine.app.open_desk import Publish, TakeTurn
from engine.domain.live import FeedMessage
from engine.domain.model_call import ModelRequest, ModelResult, Usage
from engine.domain.run import RunKind
from engine.messages.events import AgentSaid, Event, RunStarted, StepStarted
from engine.reports import amounts
from engine.settings.config import load_config
from tests.engine.desks import RulesExcept
from tests.tui.commands.conftest import SESSIONS, Run
from tests.tui.conftest import Running, arrived, cells, drawn, opened, pane_text, shown, until
from tests.tui.fake_desk import NOW, SESSION, SYMBOLS, FakeDesk
from tui.desk.readings import Readings
from tui.screens.reading import ReadingScreen
from tui.screens.trail import TrailScreen
from tui.widgets.agent_panes import AgentPanes
from tui.widgets.table import Table
from tui.widgets.text_lines import TextLines

PRICED = {"PAPERDESK_DESK__PRESET": "desk", "PAPERDESK_DESK__SYMBOLS": "ORVL"}


COSTS = {"chart": None, "low-level-reflection": Decimal(0), "evidence-decision": Decimal("1.5")}
SENT_BACK = Decimal("0.5")
PARTS = {
    '{"trend": "It ro': "trend: It ro",
    "se \\u00": "trend: It rose",
    'e9lan by \\"5 %\\"': 'trend: It rose élan by "5 %"',
    ' or more", "conf': 'trend: It rose élan by "5 %" or more',
    'idence": 0.7': 'trend: It rose élan by "5 %" or more\nconfidence: 0.7',
}
"""Parts in which an answer comes, each with the fields that are known by then."""


class Priced(RulesExcept):
    """The rules at a price: of one call it is not known, one is free, the first about the chart is sent back, and the
    decision is a recorded answer."""

    spec = "priced"

    def changed(self, request: ModelRequest, result: ModelResult) -> ModelResult:
        cost, recorded = COSTS.get(request.purpose, Decimal("0.02")), request.purpose == "evidence-decision"
        priced = replace(result, model="dear", cost=cost, cached=recorded, latency=2.5, usage=Usage(1000, 0, 34))
        first = request.purpose == "chart" and len(request.messages) == 1
        return replace(priced, answer={}, cost=SENT_BACK) if first else priced


class Speaking(FakeDesk):
    """A desk that says what the test says, in its own thread."""

    say: Callable[[Event], object] | None = None
    """Publishes an event, once it listens."""

    async def watch(self, publish: Publish, on_message: Callable[[FeedMessage], None], take_turn: TakeTurn) -> None:
        """Waits for what is to be said."""
        self.say = partial(asyncio.get_running_loop().call_soon_threadsafe, publish)
        await asyncio.Event().wait()


async def test_every_agent_has_its_answer_and_its_prompt(run: Run, desk: Path) -> None:
    async with opened() as pilot:
        await pilot.press("left_curly_bracket")
        await arrived(pilot)
        await pilot.press("2")
        await until(pilot, lambda: "▸ Answers" in pane_text(pilot, "summary"))
        await pilot.press("v")
        said = await behind(pilot, "Answers")
        (session, symbol), action = cells(pilot, "decisions")[0][:2], cells(pilot, "decisions")[0][2]
        await pilot.press("v", "v")
        prompts = await behind(pilot, "Prompts")
    trail = (await asyncio.to_thread(run, "why", symbol, session, "--json")).json["decisions"][0]
    assert session == str(SESSIONS[1]) and trail["action"] == action
    assert trail["answers"]
    for one in trail["answers"]:
        assert one["agent"] in said and one["prompt_hash"][:12] in said
        assert one["messages"][0]["text"].split("\n")[0] in " ".join(prompts.replace("|", " ").split())


async def behind(pilot: Pilot[Any], part: str) -> str:
    """The text of the chosen decision, once that part of it is open."""
    await until(pilot, lambda: f"▾ {part}" in pane_text(pilot, "summary"))
    return pane_text(pilot, "summary")


async def test_the_card_of_the_next_decision_is_in_sight_once_no_part_is_wanted(desk: Path) -> None:
    async with opened((100, 26)) as pilot:
        await pilot.press("2")
        await until(pilot, lambda: "Limits" in pane_text(pilot, "summary"))
        pane = pilot.app.screen.query_one("#summary", AgentPanes)
        await pilot.press("v")
        await until(pilot, lambda: "\u25be Answers" in pane.as_text())
        await shown(pilot)
        pane.action_folds()
        pane.action_folds()  # all are closed by hand, as the next part has them
        await until(pilot, lambda: "\u25be" not in pane.as_text())
        await pilot.press("v", "j")
        await shown(pilot)
        assert pane.scroll_y == 0 and not pane.open


async def test_the_agents_of_owners_who_debated_stand_under_each_owner_with_the_debate(
    run: Run, debating: Path
) -> None:
    async with opened((80, 40)) as pilot:
        await pilot.press("2")
        await until(pilot, lambda: bool(cells(pilot, "decisions")))
        session, symbol = cells(pilot, "decisions")[0][:2]
        await pilot.press("v")
        said = " ".join((await behind(pilot, "Debate")).split())
    trail = (await asyncio.to_thread(run, "why", symbol, session, "--json")).json["decisions"][0]
    owners = [one["owner"] for one in trail["opinions"]]
    assert all(f" {owner} 1 " in said for owner in owners), "a heading each"
    agree = [one["owner"] for one in trail["opinions"] if one["action"] == trail["action"]]
    assert len(agree) == 2 and any(f"{one} ({other} agrees): " in said for one, other in (agree, agree[::-1]))
    for owner in trail["debate"]["owners"]:
        advice = owner["advice"][0]
        assert f"{advice['advice']} ({advice['confidence']:.2f})" in said
    for comment in trail["debate"]["comments"]:
        assert f"{comment['author']} to {comment['receiver']}, {comment['stance']}: {comment['text'][:60]}" in said


async def test_memories_have_their_scores_and_every_call_its_cost(
    run: Run, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in PRICED.items():
        monkeypatch.setenv(name, value)
    for session in SESSIONS[:2]:
        decided = run_daily(services(load_config(None).config), session, through=Priced)
        await asyncio.to_thread(asyncio.run, decided)
    (made,) = (await asyncio.to_thread(run, "why", "ORVL", str(SESSIONS[1]), "--json")).json["decisions"]
    async with opened((200, 60)) as pilot:
        await pilot.press("2", "v")
        said = " ".join((await behind(pilot, "Answers")).split())
        await pilot.press("v")
        await until(pilot, lambda: bool(cells(pilot, "recalled")))
        memories = cells(pilot, "recalled")
        # The memory under the cursor is pinned, and shown whole.
        await until(pilot, lambda: "P pin" in drawn(pilot))
        await pilot.press("P")
        await until(pilot, lambda: " memory pin " in getattr(pilot.app, "last_command", ""))
        await pilot.press("tab", "tab", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReadingScreen))
        assert made["recollections"][0]["text"][:40] in pilot.app.screen.text.plain  # type: ignore[attr-defined]
    costs = {amounts.cost(amounts.number(one["cost"])) for one in made["answers"]}
    assert {*costs} == {"free", "$0.02", "$1.50", "cost unknown", amounts.cost(SENT_BACK)}
    assert all(f"1,000 tokens in, 34 out, {cost}" in said for cost in costs)
    assert [row[3:7] for row in memories] == [
        [f"{one['score']:.3f}", f"{one['recency']:.3f}", f"{one['relevancy']:.3f}", f"{one['importance']:.1f}"]
        for one in made["recollections"]
    ]
    assert [row[0] for row in memories] == ["cited" if one["cited"] else "" for one in made["recollections"]]
    pinned = (await asyncio.to_thread(run, "memory", "list", "--limit", "0", "--json")).json["memories"]
    assert [one["id"] for one in pinned if one["pinned"]] == [made["recollections"][0]["id"]]


async def test_an_answer_that_comes_in_parts_is_shown_by_its_fields(running: Running, tmp_path: Path) -> None:
    desk = Speaking(tmp_path)
    desk.watches = True
    of_run: dict[str, Any] = {"run": "daily-1", "time": NOW}
    step = of_run | {"session": SESSION, "symbol": SYMBOLS[0], "owner": "desk", "step": "chart"}
    async with running(desk=desk) as pilot:
        await until(pilot, lambda: desk.say is not None)
        assert desk.say is not None
        desk.say(
            RunStarted(
                kind=RunKind.DAILY,
                name="test",
                label="",
                symbols=SYMBOLS,
                first=SESSION,
                last=SESSION,
                sessions=1,
                steps=("chart", "decision"),
                **of_run,
            )
        )
        desk.say(StepStarted(**step))
        await pilot.press("2")
        for part, fields in PARTS.items():
            desk.say(AgentSaid(text=part, **step))
            await until(pilot, lambda: fields in TextLines.as_text(pilot.app.screen.query_one("#summary")))  # noqa: B023
        assert [row[1:3] for row in cells(pilot, "decisions")[:2]] == [[SYMBOLS[0], "at work"], [SYMBOLS[1], "waits"]]
        assert "chart  thinking" in pilot.app.screen.query_one("#summary", AgentPanes).as_text()
        # The cursor stays on the symbol that was chosen, whichever is at work.
        await pilot.press("down")
        desk.say(StepStarted(**step | {"symbol": SYMBOLS[2]}))
        await until(pilot, lambda: [row[2] for row in cells(pilot, "decisions")] == ["at work", "at work", "waits"])
        await shown(pilot)
        assert pilot.app.screen.query_one("#decisions", Table).cursor_key.endswith(SYMBOLS[1])


async def test_a_row_opens_the_trail_of_its_own_record_while_another_is_read(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, past = Readings.read, asyncio.Event()

    async def later(self: Readings, source: Any, document: Any) -> Any:
        if source.at is not None:
            await past.wait()
        return await read(self, source, document)

    async with opened() as pilot:
        await pilot.press("2")
        await until(pilot, lambda: bool(cells(pilot, "decisions")))
        monkeypatch.setattr(Readings, "read", later)
        await pilot.press("left_curly_bracket")
        place = (await arrived(pilot)).place
        await until(pilot, lambda: pilot.app.screen._view.place == place)  # type: ignore[attr-defined]
        symbol, session = reversed(cells(pilot, "decisions")[0][:2])
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, TrailScreen))
        past.set()
        page = pilot.app.screen.query_one("#page")
        await until(pilot, lambda: f"Why {symbol} " in str(page.border_title))
        await until(pilot, lambda: session in pane_text(pilot, "page"))
