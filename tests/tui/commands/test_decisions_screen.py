"""Decisions on the Why screen: filters by what was earned and who dissented, and calibration as in the document."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from tests.tui.commands.conftest import FEW_AGENTS, SESSIONS, Run
from tests.tui.commands.test_app_start import REPO
from tests.tui.conftest import cells, opened, pane_text, until
from tui.text.owners_text import MEANINGS
from tui.text.run_text import reason_words
from tui.widgets.candle_chart import CandleChart
from tui.widgets.table import Table
from tui.widgets.text_lines import TextPane


async def on_decisions(pilot: Pilot[Any]) -> Table:
    await pilot.press("2")
    await until(pilot, lambda: bool(cells(pilot, "decisions")))
    return pilot.app.screen.query_one("#decisions", Table)


async def on_calibration(pilot: Pilot[Any]) -> None:
    await on_decisions(pilot)
    while not pilot.app.screen.query_one("#calibration").display:
        await pilot.press("v")
    await until(pilot, lambda: "RIGHT%" in pane_text(pilot, "calibration"))


async def filtered(pilot: Pilot[Any], typed: str) -> set[tuple[str, str]]:
    """Types a filter, and returns symbol and session of the rows that fit."""
    await pilot.press("slash")
    await until(pilot, lambda: bool(pilot.app.screen.query(Input)))
    pilot.app.screen.query_one(Input).value = typed
    await pilot.press("enter")
    await until(pilot, lambda: not pilot.app.screen.query(Input))
    return {(row[1], row[0]) for row in cells(pilot, "decisions")}


async def test_a_filter_that_cannot_be_meant_is_said_and_the_rows_stay(run: Run, desk: Path) -> None:
    async with opened() as pilot:
        table = await on_decisions(pilot)
        # The whole word for a title that begins it.
        kept = await filtered(pilot, "symbol:ORVL")
        assert {symbol for symbol, _ in kept} == {"ORVL"} and len(kept) == len(SESSIONS)
        for typed, said in (
            ("sym:ORVL size%>abc", "abc is not a number"),
            ("tiker:ORVL", "unknown column tiker; available: session, sym, action"),
            ("tiker>1 (", "unknown column tiker; available: session, sym, action"),
        ):
            await pilot.press("slash")
            await until(pilot, lambda: bool(pilot.app.screen.query(Input)))
            pilot.app.screen.query_one(Input).value = typed
            await pilot.press("enter")
            await until(pilot, lambda said=said: said in str(pilot.app.screen.query_one("#complaint").render()))  # type: ignore[misc]
            await pilot.press("escape")
            await until(pilot, lambda: not pilot.app.screen.query(Input))
            assert table.filter_text == "symbol:ORVL" and len(table.rows) == len(kept)


async def test_the_filter_knows_what_was_earned_who_said_otherwise_and_the_rest(run: Run, debating: Path) -> None:
    shown: dict[str, set[tuple[str, str]]] = {}
    second = str(SESSIONS[1])
    typed = {
        "lost": "pnl:<0",
        "dissent": "dissent:>0",
        "more": "dissent:>1",
        "both": f"sym:ORVL dissent:>0 session:{second}..",
        "bought": "action:BUY size:>1",
    }
    async with opened((80, 24)) as pilot:
        table = await on_decisions(pilot)
        assert {"pnl%", "dissent", "action", "size%", "session", "sym"} <= set(table.fields)
        every = {(row[1], row[0]) for row in cells(pilot, "decisions")}
        for name, one in typed.items():
            shown[name] = await filtered(pilot, one)
    trails: dict[tuple[str, str], Any] = {}
    for symbol, session in every:
        (made,) = (await asyncio.to_thread(run, "why", symbol, session, "--json")).json["decisions"]
        trails[symbol, session] = made
    otherwise = {key: len(made["dissent"]["otherwise"]) for key, made in trails.items()}
    assert shown["lost"] == {key for key, made in trails.items() if made["outcome"] and made["outcome"]["reward"] < 0}
    assert shown["dissent"] == {key for key, count in otherwise.items() if count}
    assert shown["more"] == {key for key, count in otherwise.items() if count > 1}
    assert shown["both"] == {key for key in shown["dissent"] if key[0] == "ORVL" and key[1] >= second}
    assert shown["bought"] == {key for key, made in trails.items() if made["action"] == "BUY" and made["size"] > 1}
    assert shown["dissent"] and shown["dissent"] != every and len(every) == 6


async def test_calibration_is_what_the_command_prints(
    run: Run, debating: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened((120, 40)) as pilot:
        await on_calibration(pilot)
        assert not pilot.app.screen.query_one("#decisions").display
        pane = pilot.app.screen.query_one("#calibration", TextPane)
        shown, width = [line.rstrip() for line in pane.as_text().splitlines()], pane.text_width
        await pilot.press("v")
        assert pilot.app.screen.query_one("#decisions").display and not pane.display
    monkeypatch.setenv("COLUMNS", str(width))
    printed = (await asyncio.to_thread(run, "decisions", "--owners")).out.splitlines()
    assert shown == printed
    assert [line.split()[0] for line in printed if line.split()[:1] in [[name] for name in MEANINGS]] == [*MEANINGS]
    document = (await asyncio.to_thread(run, "decisions", "--owners", "--json")).json
    rows = {tuple(line.split()[:2]): line.split() for line in printed[1 : printed.index("")]}
    for owner, own in document["per_owner"].items():
        for after in own["horizons"]:
            right = "-" if after["hit_rate"] is None else f"{after['hit_rate'] * 100:.0f}"
            assert rows[owner, f"+{after['sessions']}"][2:4] == [str(after["n"]), right]


async def test_why_has_the_rule_where_there_is_no_room_for_the_sentence(run: Run, desk: Path) -> None:
    rules = {
        one["rule"] for one in (await asyncio.to_thread(run, "decisions", "--json", "--limit", "0")).json["decisions"]
    }
    async with opened((80, 24)) as pilot:
        table = await on_decisions(pilot)
        head = table.render_line(0).text
        whys = [table.render_line(row).text[head.index("WHY") :].rstrip(" ┃") for row in range(1, 6)]
    assert all(any(why.startswith(rule) for rule in rules) and not why.endswith("…") for why in whys), whys


async def test_why_has_the_count_of_votes_where_there_is_no_room_for_them(debating: Path) -> None:
    async with opened((80, 24)) as pilot:
        table = await on_decisions(pilot)
        head = table.render_line(0).text
        whys = [table.render_line(row + 1).text[head.index("WHY") :].rstrip(" ┃") for row in range(len(table.rows))]
        dissent, action = table.fields.index("dissent"), table.fields.index("action")
        for why, row in zip(whys, cells(pilot, "decisions"), strict=True):
            otherwise, of = map(int, row[dissent].split("/"))
            assert why == f"{of - otherwise} of {of}: {row[action].lower()}"


async def test_why_does_not_repeat_the_action(run: Run, desk: Path) -> None:
    async with opened() as pilot:
        table = await on_decisions(pilot)
        place = table.fields.index("why")
        whys = {(row[1], row[0]): (row[2], row[place]) for row in cells(pilot, "decisions")}
    said = (await asyncio.to_thread(run, "decisions", "--json", "--limit", "0")).json["decisions"]
    assert len(said) == len(whys)
    for one in said:
        action, why = whys[one["symbol"], one["session"]]
        assert one["reason"].startswith(action) and action not in why.split(":")[0] and why in f"{one['rule']}: {why}"
        assert why.startswith(one["rule"])
    listed = (await asyncio.to_thread(run, "decisions")).out.splitlines()[2:]
    assert listed and not any("by the rule" in line for line in listed)


@pytest.mark.parametrize(
    ("action", "reason", "words"),
    [
        ("HOLD", "HOLD: the cash is in the asset already.", "the cash is in the asset already."),
        ("SELL", 'SELL 4% by the rule "gain over 5 %": it is dear.', "gain over 5 %: it is dear."),
        ("HOLD", "BUY 4% of all: the rise is on.", "BUY 4% of all: the rise is on."),
        ("HOLD", "HOLD", "HOLD"),
        ("BUY", "Weighted mean of 2: buy (bull buy 3 %, bear hold).\nbull: It rises.", "bull buy 3 %, bear hold."),
    ],
)
def test_reasons_lose_the_action_that_stands_beside_them_and_nothing_else(action: str, reason: str, words: str) -> None:
    assert reason_words(action, reason).startswith(words)


async def test_a_high_screen_shows_what_counts_of_the_decision_under_the_cursor(run: Run, desk: Path) -> None:
    async with opened((200, 60)) as pilot:
        table, screen = await on_decisions(pilot), pilot.app.screen
        told: dict[tuple[str, str], str] = {}
        for row in cells(pilot, "decisions"):
            await until(pilot, lambda key=f"{row[1]}  {row[0]}  ": pane_text(pilot, "summary").startswith(key))  # type: ignore[misc]
            assert str(screen.query_one("#summary").border_title) == f"Why {row[1]} {row[0]}"
            assert screen.query_one(CandleChart).data.title == f"{row[1]} 1D"
            told[row[1], row[0]] = pane_text(pilot, "summary")
            await pilot.press("down")
        await pilot.press("v", "v", "v", "v")
        assert not screen.query_one("#decided-so").display
        await pilot.press("v")
        assert screen.query_one("#decided-so").display and table.region.height <= 30
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: screen.query_one("#summary").region.width == 80)
        assert 6 <= table.region.height <= 10
        await pilot.resize_terminal(120, 40)
        await until(pilot, lambda: screen.query_one("#summary").region.height > 16)
        assert not screen.query_one(CandleChart).display
    for (symbol, session), said in told.items():
        (made,) = (await asyncio.to_thread(run, "why", symbol, session, "--json")).json["decisions"]
        assert f"{symbol}  {session}  {made['action']}" in said and "Dissent" in said
        assert all(f"BUY {symbol} for" in said for order in made["orders"] if order["side"] == "BUY")
        if made["outcome"] is not None:
            assert f"of the portfolio by the close of {made['outcome']['session']}" in said


@pytest.mark.slow
async def test_a_desk_whose_first_run_was_killed_says_that_r_goes_on_with_it(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in FEW_AGENTS.items():
        monkeypatch.setenv(name, value)
    program = (
        "import os; from engine.journal.writer import JournalWriter; from tui.cli import main; "
        "JournalWriter.decision = lambda writer, decision: os._exit(9); main()"
    )
    command = [sys.executable, "-c", program, "--daily", "--session", str(SESSIONS[0])]
    assert (await asyncio.to_thread(subprocess.run, command, cwd=REPO)).returncode == 9
    async with opened() as pilot:
        await pilot.press("2")
        table = pilot.app.screen.query_one("#decisions", Table)
        rows = range(table.size.height)
        await until(pilot, lambda: any("r resumes the interrupted run" in table.render_line(row).text for row in rows))
