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
from tests.tui.conftest import cells, drawn, opened, pane_text, until
from tui.text.owners_text import JUDGED, MEANINGS
from tui.text.run_text import reason_words
from tui.widgets.candle_chart import CandleChart
from tui.widgets.table import Table


async def on_decisions(pilot: Pilot[Any]) -> Table:
    await pilot.press("2")
    await until(pilot, lambda: bool(cells(pilot, "decisions")))
    return pilot.app.screen.query_one("#decisions", Table)


async def on_calibration(pilot: Pilot[Any]) -> None:
    await on_decisions(pilot)
    while not pilot.app.screen.query_one("#calibration").display:
        await pilot.press("v")
    await until(pilot, lambda: bool(cells(pilot, "calibration")))


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


async def test_columns_are_explained_where_a_table_leaves_rows_and_are_named_as_in_the_command(
    run: Run, desk: Path
) -> None:
    async with opened((80, 24)) as pilot:
        await on_calibration(pilot)
        await until(pilot, lambda: "JUDGED     opinions that took a side" in drawn(pilot))
        assert all(row[0] in drawn(pilot) for row in cells(pilot, "calibration"))
        await pilot.resize_terminal(80, 16)
        await until(pilot, lambda: "opinions that took a side" not in drawn(pilot))
    printed = (await asyncio.to_thread(run, "decisions", "--owners")).out.splitlines()
    words = {word for line in printed if line.startswith("WHO") for word in line.split()}
    assert {"ALL", "JUDGED", "RIGHT%", "ABSTAINED"} <= words <= {*MEANINGS, "WHO", "RANK,"}
    assert [line.split()[0] for line in printed if line.split()[:1] in [[name] for name in MEANINGS]] == [*MEANINGS]


async def test_calibration_is_that_of_the_document_with_bars_of_stated_confidence(run: Run, debating: Path) -> None:
    async with opened() as pilot:
        await on_calibration(pilot)
        assert not pilot.app.screen.query_one("#decisions").display
        rows = {(row[0], row[1]): row for row in cells(pilot, "calibration")}
        explained = [line.split()[0] for line in pane_text(pilot, "columns").splitlines()]
        assert ["WHO", *explained] == [column.title for column in JUDGED]
        assert explained == list(MEANINGS)
        bands: dict[str, str] = {}
        for row in cells(pilot, "calibration"):
            await pilot.pause()
            bands[f"{row[0]} {row[1]}"] = pane_text(pilot, "bands")
            await pilot.press("down")
        await pilot.press("v")
        assert pilot.app.screen.query_one("#decisions").display
        assert not pilot.app.screen.query_one("#calibrated").display
    document = (await asyncio.to_thread(run, "decisions", "--owners", "--json")).json
    stated = 0
    for owner, own in document["per_owner"].items():
        for after in own["horizons"]:
            row, made = rows[owner, f"+{after['sessions']}"], after["calibration"]
            right = "-" if after["hit_rate"] is None else f"{after['hit_rate'] * 100:.0f}"
            assert (row[2], row[3], row[11]) == (str(after["n"]), right, str(own["abstentions"]))
            assert row[5] == ("-" if made is None else f"{made['confidence'] * 100:.0f}")
            told = bands[f"{owner} +{after['sessions']}"]
            for band in made["bands"] if made else ():
                assert f"{band['low']:.1f} to {band['high']:.1f}  {band['n']} judged" in told
                assert f"{band['hit_rate'] * 100:>4.0f} %" in told
                stated += 1
            assert made is not None or "states no confidence" in told
    assert stated
    agents = {(f"{one['owner']}: {one['agent']}", "+1"): one for one in document["per_agent"]}
    assert agents and all(rows[key][2] == str(one["horizons"][0]["n"]) for key, one in agents.items())


async def test_without_stated_confidence_the_table_has_all_the_room(desk: Path) -> None:
    async with opened() as pilot:
        await on_calibration(pilot)
        assert not pilot.app.screen.query_one("#bands").display
        assert {row[0] for row in cells(pilot, "calibration")} == {"chart", "desk", "news"}


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
        await pilot.press("v", "v", "v")
        assert not screen.query_one("#decided-so").display
        await pilot.press("v")
        assert screen.query_one("#decided-so").display and table.region.height <= 30
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: screen.query_one("#summary").region.width == 80)
        assert table.region.height == 10 and not screen.query_one("#said").display
        await pilot.resize_terminal(120, 40)
        await until(pilot, lambda: screen.query_one("#summary").region.height > 16)
        assert screen.query_one("#said").display and not screen.query_one(CandleChart).display
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
