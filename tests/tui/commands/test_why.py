"""The trail of a decision: complete, in order, safe to show, and honest about what is not known."""

from __future__ import annotations

import asyncio
import struct
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from connectors.wiring.services import services
from engine.app.desk.run import run_daily
from engine.domain.model_call import ModelRequest, ModelResult, Usage
from engine.settings.config import load_config
from tests.engine.desks import RulesExcept
from tests.tui.commands.conftest import BACKTEST, FEW_AGENTS, SESSIONS, Run, contents
from tests.tui.conftest import opened, pane_text, until
from tui.app.deep_link import Link
from tui.commands import app as app_command
from tui.settings.invocation import Invocation
from tui.view.state import Progress
from tui.widgets.agent_panes import AgentPanes


class Wayward(RulesExcept):
    """The rules, except that they spoil ORVL's decision and overdo BXWD's."""

    spec = "wayward"

    def changed(self, request: ModelRequest, result: ModelResult) -> ModelResult:
        if request.purpose != "decision" or request.symbol not in ("ORVL", "BXWD"):
            return result
        if request.symbol == "ORVL":
            spoilt = {"symbol": "ORVL", "recommendation": "BUY", "position_size": 77, "rule": "reversal"}
            return replace(result, answer=spoilt, text="a \x1b[31mred\x1b[0m word", usage=Usage(1200, 0, 34))
        words = "A dip in the rise; the fair value is 987654.32 by spring."
        bold = {"symbol": "BXWD", "recommendation": "BUY", "position_size": 10, "explanation": words}
        return replace(result, answer={**bold, "rule": "dip in an uptrend"}, text="{}", notes=("temperature dropped",))


@pytest.fixture
def wayward(fresh: Path) -> Path:
    """A desk whose model misbehaved for two symbols."""
    config = load_config(None, environ=FEW_AGENTS).config
    asyncio.run(run_daily(services(config), date(2025, 3, 11), through=Wayward))
    return fresh


def test_a_decision_from_the_question_to_what_came_of_it(run: Run, desk: Path) -> None:
    bought = run("decisions", "--action", "buy", "--json").json["decisions"][0]
    symbol, session = bought["symbol"], bought["session"]
    text = run("why", symbol, session, "--full").out
    document = run("why", symbol, session, "--json").json
    (made,) = document["decisions"]
    assert (document["symbol"], document["session"], document["run"]) == (symbol, session, bought["run"])
    assert text.startswith(f"{symbol}  {session}  BUY {bought['size']:g} %   +1 ")
    parts = ["Why  ", "Dissent", "Limits", "After", "Asked for", "Decided by", "Reason: ", "Answers: ", "Order: "]
    assert [text[: text.index(part)].count("\n") for part in ("Dissent", "Limits")] == [4, 5], "a card of six rows"
    assert [text.index(part) for part in parts] == sorted(text.index(part) for part in parts)
    assert [answer["agent"] for answer in made["answers"]][-1] == "decision"
    for answer in made["answers"]:
        assert f"prompt {answer['prompt_hash'][:12]}" in text and f"of version {answer['prompt_version']}" in text
    assert len({answer["prompt_version"] for answer in made["answers"]}) > 2
    (order,) = made["orders"]
    assert [move["state"] for move in order["moves"]] == ["intended", "submitting", "acknowledged", "filled"]
    assert order["fills"][0]["session"] > session and order["id"] in text
    equity = {row["session"]: row for row in run("equity", "--json").json["equity"]}
    (later,) = [one for one in made["closes_since"] if one["sessions"] == 1]
    assert later["session"] == min(day for day in equity if day > session)
    assert later["close"] == pytest.approx(float(equity[later["session"]]["positions"][symbol]["price"]))
    assert later["change"] == pytest.approx(later["close"] / made["close"] - 1)
    assert made["outcome"]["session"] == later["session"]


def test_the_prompts_come_only_when_asked_for(run: Run, desk: Path) -> None:
    short, long = run("why", "HLXM", "2025-03-12", "--full").out, run("why", "hlxm", "2025-03-12", "--prompts").out
    system = run("why", "HLXM", "2025-03-12", "--json").json["decisions"][0]["answers"][0]["system"]
    first = " ".join(system.split()[:6])
    assert first in " ".join(long.split()) and first not in " ".join(short.split())
    assert "--- system" in long and "--- user" in long


def test_the_chart_that_was_read_is_written_as_a_picture(run: Run, desk: Path, tmp_path: Path) -> None:
    before = contents(desk)
    said = run("why", "ORVL", "2025-03-14", "--chart", str(tmp_path / "seen.png"))
    assert said.code == 0
    for name in ("seen.png", "seen-signals.png"):
        picture = (tmp_path / name).read_bytes()
        assert picture.startswith(b"\x89PNG") and struct.unpack(">II", picture[16:24]) == (1000, 800)
        assert f"chart: {tmp_path / name}" in said.out
    assert contents(desk) == before
    refused = run("why", "ORVL", "2025-03-14", "--chart", str(tmp_path / "no" / "seen.png"))
    assert refused.code == 65 and "cannot be written" in refused.err


def test_an_abstention_says_what_was_sent_back_and_why(run: Run, wayward: Path) -> None:
    text = run("why", "ORVL", "2025-03-11", "--full").out
    assert text.startswith("ORVL  2025-03-11  ABSTAIN   result not known yet\n")
    assert "\nNo decision " in text
    assert text.count("sent back: malformed") == text.count("abstained: malformed") == 1
    assert "position_size" in text and "got 77" in text
    assert "it had said: a red word" in text and "\x1b" not in text
    assert "1,200 tokens in, 34 out" in text
    assert "\nOrder        none\n" in text
    (made,) = run("why", "ORVL", "2025-03-11", "--json").json["decisions"]
    assert made["abstained"] and made["orders"] == []
    assert [a["outcome"] for a in made["answers"] if a["agent"] == "decision"] == ["sent back", "abstained"]


async def test_an_abstention_keeps_the_answer_on_the_screen(wayward: Path) -> None:
    async with opened() as pilot:
        shown = pilot.app.screen.query_one(AgentPanes)
        # The steps give way to the decision as soon as that is read.
        await until(pilot, lambda: any(one.progress is Progress.ABSTAINED for one in shown.panes))
        (pane,) = [one for one in shown.panes if one.progress is Progress.ABSTAINED]
        assert "abstained: malformed" in pane.text and pane.text.splitlines()[-1] == "a red word", (
            "escapes of a terminal are left out"
        )
        lines = pilot.app.bridge.snapshot().desk.lines  # type: ignore[attr-defined]
        assert not any("red word" in line.text for line in lines), "the log has the reason alone"


def test_cuts_and_figures_from_nowhere_are_told(run: Run, wayward: Path) -> None:
    text = run("why", "BXWD", "2025-03-11", "--full").out
    (made,) = run("why", "BXWD", "2025-03-11", "--json").json["decisions"]
    assert made["asked"] == {"action": "BUY", "size": 10, "rule": "dip in an uptrend", "whole": False}
    assert made["cuts"] and made["size"] < 10
    assert f"10 % to {float(made['cuts'][0]['allowed']):g} %" in text
    assert made["unresolved_figures"] == ["987654.32"]
    assert "Figures      not found in the inputs: 987654.32" in text
    assert "temperature dropped" in text
    assert "result not known yet" in text.splitlines()[0]


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (("ORVL", "2025-03-13"), "the nearest are 2025-03-12 and 2025-03-14"),
        (("ORVL", "2025-01-02"), "the nearest is 2025-03-11"),
        (("NIX", "2025-03-12"), "available: ORVL, BXWD, HLXM, WRNN-USD"),
    ],
)
def test_where_there_is_none_it_says_where_there_are_some(
    run: Run, desk: Path, target: tuple[str, str], said: str
) -> None:
    ended = run("why", *target)
    assert ended.code == 65
    assert said in ended.err and ended.err.count("\n") == 1


def test_nothing_has_run_and_a_date_that_is_none(run: Run, paperdesk_home: Path) -> None:
    assert "has not run yet" in run("why", "ORVL", "2025-03-12").err
    assert run("why", "ORVL", "12.3.2025").code == 2


def test_the_latest_backtest_is_looked_into_and_named(run: Run, backtested: Path) -> None:
    said = run("why", "ORVL", "2025-03-12")
    assert said.out.startswith("the desk demo has none yet; this is the latest backtest\nORVL  2025-03-12")
    assert BACKTEST in said.out
    (made,) = run("why", "ORVL", "2025-03-12", "--run", BACKTEST, "--json").json["decisions"]
    assert [one["sessions"] for one in made["closes_since"]] == [1, 5]


DAY = SESSIONS[1]


@pytest.fixture
def link_to(run: Run, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The place that the command gives to the app."""
    given: list[Link] = []

    def opens(invocation: Invocation, *, link: Link) -> None:
        given.append(link)

    monkeypatch.setattr(app_command, "run", opens)

    def called(*arguments: str) -> Link:
        ended = run("open", *arguments)
        assert (ended.code, ended.err) == (0, "")
        return given[-1]

    return called


def place_of(pilot: Pilot[Any]) -> Any:
    return pilot.app.bridge.snapshot().place  # type: ignore[attr-defined]


async def test_a_decision_opens_on_its_trail_and_leads_back_to_the_present(run: Run, desk: Path, link_to: Any) -> None:
    async with opened(link=link_to(f"hlxm@{DAY}")) as pilot:
        await until(pilot, lambda: type(pilot.app.screen).__name__ == "TrailScreen")
        await until(pilot, lambda: pane_text(pilot, "page").startswith(f"HLXM  {DAY}"))
        assert place_of(pilot).session == DAY
        await pilot.press("escape", "backslash")
        await until(pilot, lambda: place_of(pilot) is None)


async def test_a_backtests_decision_opens_in_its_own_past(run: Run, backtested: Path, link_to: Any) -> None:
    made = run("decisions", "--run", BACKTEST, "--json").json["decisions"][-1]
    place = f"{made['symbol']}@{made['session']}"
    async with opened(link=link_to(f"{place}#agents", "--run", BACKTEST)) as pilot:
        await until(pilot, lambda: pilot.app.current_mode == "why")
        key = f"{made['symbol']} {made['session']}"
        await until(pilot, lambda: any(key in str(pane.border_title) for pane in pilot.app.screen.query("#summary")))
        assert (place_of(pilot).name, str(place_of(pilot).session)) == (BACKTEST, made["session"])
        await until(pilot, lambda: key.replace(" ", "  ") in pane_text(pilot, "summary"))


@pytest.mark.parametrize(
    ("place", "code", "said"),
    [
        ("ORVL", 2, "a place is written SYMBOL@SESSION[#PART]"),
        (f"ORVL@{DAY}#trail", 2, "unknown part trail; available: why, desk, chart, agents, memory"),
        ("ORVL@yesterday", 2, "yesterday is not a date"),
        ("ORVL@2931-01-02", 2, "is in the future"),
        ("ORVL@2025-03-13", 65, "no decision for ORVL on 2025-03-13"),
        (f"NVDA@{DAY}", 65, "no decision for NVDA"),
        (f"ORVL@{DAY}", 2, "the app needs a terminal"),
    ],
)
def test_a_place_that_there_is_not_is_said_in_one_line(run: Run, desk: Path, place: str, code: int, said: str) -> None:
    ended = run("open", place)
    assert (ended.code, ended.err.count("\n")) == (code, 1)
    assert said in ended.err


def test_the_document_of_a_run_names_the_place_of_every_decision(run: Run, desk: Path) -> None:
    document = run("report", "--session", str(DAY), "--json").json
    assert document["decisions"]
    for made in document["decisions"]:
        assert made["open"] == f"paperdesk open {made['symbol']}@{DAY} --desk demo"


@pytest.mark.parametrize("place", ["\x1b]0;x\x07ORVL@2025-01-01", "OR\x9b2JVL\u202e@2025-01-01#\x1b[31m", "\x1b]0;x@x"])
def test_a_hostile_place_reaches_no_terminal(run: Run, desk: Path, place: str) -> None:
    ended = run("open", place)
    assert ended.code in (2, 65) and ended.err.count("\n") == 1
    assert ended.err.removesuffix("\n").isprintable()
