"""The Agents screen shows every step with its answer, prompt and memories, as the journal has them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

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
from tests.tui.conftest import Running, arrived, cells, opened, pane_text, until
from tests.tui.fake_desk import NOW, SESSION, SYMBOLS, FakeDesk
from tui.widgets.table import Table

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
            shown[step] = pane_text(pilot, "answer"), pane_text(pilot, "sources")
            await pilot.press("down")
        await pilot.press("v", "v")
        await pilot.pause()
        opinions = pane_text(pilot, "sources")
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
        await until(pilot, lambda: "Comments received" in pane_text(pilot, "sources"))
        assert not pilot.app.screen.query_one("#answer").display, "the columns take its place"
        said["beside"] = pane_text(pilot, "sources")
        symbol = pilot.app.screen.symbol  # type: ignore[attr-defined]
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: pane_text(pilot, "sources") != said["beside"])
        said["stacked"] = pane_text(pilot, "sources")
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


async def test_memories_have_their_scores_and_every_call_its_cost(
    run: Run, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in PRICED.items():
        monkeypatch.setenv(name, value)
    for session in SESSIONS[:2]:
        decided = run_daily(services(load_config(None).config), session, through=Priced)
        await asyncio.to_thread(asyncio.run, decided)
    (made,) = (await asyncio.to_thread(run, "why", "ORVL", str(SESSIONS[1]), "--json")).json["decisions"]
    titles, prompts = [], []
    async with opened() as pilot:
        await pilot.press("3")
        await until(pilot, lambda: "user" in pane_text(pilot, "sources"))
        steps = cells(pilot, "steps")
        await pilot.press("g")
        for _ in steps:
            titles.append(str(pilot.app.screen.query_one("#answer").border_title))
            prompts.append(pane_text(pilot, "sources"))
            await pilot.press("down")
        await pilot.press("v")
        memories = pane_text(pilot, "sources")
    answered = [one for one in made["answers"] if one["outcome"] == "answered"]
    costs = [amounts.cost(amounts.number(one["cost"])) for one in answered]
    assert {*costs} == {"free", "$0.02", "$1.50", "cost unknown"} and [
        row[4] for row in steps if row[4] != "-"
    ] == costs
    told = [title for title in titles if "answered" in title]
    for title, cost, one in zip(told, costs, answered, strict=True):
        took = "recorded" if one["cached"] else "2.5s"
        assert title.endswith(f"dear  1,034 tok  {took}{'' if cost == 'free' else f'  {cost}'}")
    (sent_back,) = (prompt for prompt in prompts if "sent back" in prompt)
    assert sent_back.startswith(f"chart: sent back, {amounts.cost(SENT_BACK)}\n")
    assert made["recollections"] and memories.count("score ") == len(made["recollections"])
    for one in made["recollections"]:
        head = f"{one['handle']}  {one['layer']} {one['rank']}, {one['kind']} of {one['session']}"
        named = ", ".join(f"{name} {one[name]:.3f}" for name in ("recency", "relevancy"))
        score = f"score {one['score']:.3f}: {named}, importance {one['importance']:.1f}, id {one['id'][:8]}"
        assert f"{head}{', cited' if one['cited'] else ''}\n{score}\n{one['text']}" in memories


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
        await pilot.press("3")
        for part, fields in PARTS.items():
            desk.say(AgentSaid(text=part, **step))
            await until(pilot, lambda: pane_text(pilot, "answer").rstrip() == fields)  # noqa: B023
        assert "thinking" in str(pilot.app.screen.query_one("#answer").border_title)
