"""`paperdesk open` leads to a decision in the past of its record, on the part of the app that is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.tui.commands.conftest import BACKTEST, SESSIONS, Run
from tests.tui.commands.test_agents_screen import text
from tests.tui.conftest import opened, until
from tui.app.deep_link import Link
from tui.commands import app as app_command
from tui.settings.invocation import Invocation

DAY = SESSIONS[1]


@pytest.fixture
def link_to(run: Run, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The place that the command gives to the app."""
    given: list[Link] = []

    def opens(invocation: Invocation, *, read_only: bool, link: Link) -> None:
        assert read_only == given_arguments.count("--read-only")
        given.append(link)

    monkeypatch.setattr(app_command, "run", opens)
    given_arguments: list[str] = []

    def called(*arguments: str) -> Link:
        given_arguments[:] = arguments
        ended = run("open", *arguments)
        assert (ended.code, ended.err) == (0, "")
        return given[-1]

    return called


def place_of(pilot: Pilot[Any]) -> Any:
    return pilot.app.bridge.snapshot().place  # type: ignore[attr-defined]


def steps_title(pilot: Pilot[Any]) -> str:
    return "".join(str(table.border_title) for table in pilot.app.screen.query("#steps"))


async def test_a_decision_opens_on_its_trail_and_leads_back_to_the_present(run: Run, desk: Path, link_to: Any) -> None:
    async with opened(link=link_to(f"hlxm@{DAY}")) as pilot:
        await until(pilot, lambda: type(pilot.app.screen).__name__ == "TrailScreen")
        await until(pilot, lambda: "HLXM" in str(pilot.app.screen.text) and str(DAY) in str(pilot.app.screen.text))  # type: ignore[attr-defined]
        assert place_of(pilot).session == DAY
        await pilot.press("escape", "backslash")
        await until(pilot, lambda: place_of(pilot) is None)


async def test_a_backtests_decision_opens_in_its_own_past(run: Run, backtested: Path, link_to: Any) -> None:
    made = run("decisions", "--run", BACKTEST, "--json").json["decisions"][-1]
    place = f"{made['symbol']}@{made['session']}"
    async with opened(link=link_to(f"{place}#agents", "--run", BACKTEST, "--read-only")) as pilot:
        await until(pilot, lambda: pilot.app.current_mode == "agents")
        await until(pilot, lambda: made["symbol"] in steps_title(pilot))
        assert (place_of(pilot).name, str(place_of(pilot).session)) == (BACKTEST, made["session"])
        assert text(pilot, "answer")


@pytest.mark.parametrize(
    ("place", "code", "said"),
    [
        ("ORVL", 2, "a place is written SYMBOL@SESSION[#PART]"),
        (f"ORVL@{DAY}#trail", 2, "there is no part trail; there are why, desk, chart, agents, memory"),
        ("ORVL@yesterday", 2, "yesterday is no date"),
        ("ORVL@2931-01-02", 2, "lies in the future"),
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
