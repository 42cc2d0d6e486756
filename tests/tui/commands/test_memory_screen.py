"""The memory on the Ops screen lists what `memory list` prints, also of the past, and one memory's life-line."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from connectors.wiring.services import services
from engine.app.desk.run import run_daily
from engine.app.open_desk import OpenDesk
from engine.domain.decision import LAYERS
from engine.settings.config import load_config
from tests.tui.commands.conftest import SESSIONS, Run
from tests.tui.conftest import arrived, cells, drawn, opened, pane_text, until
from tui.screens.memory import memory_columns, memory_rows
from tui.text.memory_lines import DECIDED
from tui.widgets.table import Table


async def test_a_memory_without_a_session_names_none(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = {"session": None, "memories": [], "forgotten": []}
    monkeypatch.setattr(OpenDesk, "memories", lambda *what, **more: nothing)
    async with opened() as pilot:
        await pilot.press("5", "v")
        await until(pilot, lambda: "no memories yet" in drawn(pilot))
        assert "None" not in drawn(pilot)


async def test_keys_on_memories_that_are_not_read_yet_say_so(
    run: Run, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def later(reading: Any, go_on: threading.Event) -> Any:
        return lambda *what, **more: go_on.wait(60) and reading(*what, **more)

    await asyncio.to_thread(run, "--daily", "--session", str(SESSIONS[0]))
    listed, told = threading.Event(), threading.Event()
    monkeypatch.setattr(OpenDesk, "memories", later(OpenDesk.memories, listed))
    monkeypatch.setattr(OpenDesk, "lifeline", later(OpenDesk.lifeline, told))
    async with opened() as pilot:
        await pilot.press("5", "v", "P")
        said = [note.message for note in pilot.app._notifications]
        assert said == ["no memory is chosen: loading"]
        listed.set()
        await until(pilot, lambda: bool(cells(pilot, "memories")))
        await pilot.press("d")
        said = [note.message for note in pilot.app._notifications]
        assert said[-1] == "the memory under the cursor is still loading"
        await pilot.press("P")
        await until(pilot, lambda: "pin" in cells(pilot, "memories")[0])
        told.set()


async def test_a_memory_is_pinned_and_forgotten_and_the_list_says_so(run: Run, fresh: Path) -> None:
    await asyncio.to_thread(run, "--daily", "--session", str(SESSIONS[0]))
    async with opened() as pilot:
        await pilot.press("5", "v")
        await until(pilot, lambda: bool(cells(pilot, "memories")))
        await pilot.press("slash", *"nothing such", "enter")
        await until(pilot, lambda: cells(pilot, "memories") == [])
        await pilot.press("escape")
        await until(pilot, lambda: "P pin" in drawn(pilot) and "F forget" in drawn(pilot))
        table = pilot.app.screen.query_one("#memories", Table)
        counted = str(table.border_title).split()[1::2]
        assert len(counted) > 2 and counted == [layer for layer in LAYERS if layer in counted]
        assert any(row[table.fields.index("kind")].endswith("-reflection") for row in cells(pilot, "memories"))
        assert not any("reflec…" in line or "refl…" in line for line in drawn(pilot).splitlines())
        while "layer, rising" not in table.sort_next():
            pass
        layers = [row[table.fields.index("layer")] for row in cells(pilot, "memories")]
        assert layers == sorted(layers, key=LAYERS.index)
        while table.sort_next() != "as they come":
            pass
        await pilot.press("P")
        await until(pilot, lambda: "pin" in cells(pilot, "memories")[0])
        await pilot.press("P")
        await until(pilot, lambda: "pin" not in cells(pilot, "memories")[0])
        await pilot.press("F", *"stale", "enter")
        await until(pilot, lambda: cells(pilot, "memories")[-1][2] == "forgotten")
        # The cursor is on it, and in sight: the same key brings it back.
        forgotten = cells(pilot, "memories")[-1]
        await until(pilot, lambda: any("›" in line and "forgotten" in line for line in drawn(pilot).splitlines()))
        await pilot.press("F")
        await until(pilot, lambda: cells(pilot, "memories")[-1][2] != "forgotten")
        await pilot.press("F", *"stale", "enter")
        await until(pilot, lambda: cells(pilot, "memories")[-1][:2] == forgotten[:2])
        await until(pilot, lambda: cells(pilot, "memories")[-1][2] == "forgotten")
    assert len((await asyncio.to_thread(run, "memory", "list", "--json")).json["forgotten"]) == 1


@pytest.mark.slow
async def test_memories_as_of_the_moment_that_is_shown(run: Run, fresh: Path) -> None:
    config = load_config(None).config
    for session in SESSIONS[:2]:
        await asyncio.to_thread(lambda: asyncio.run(run_daily(services(config), session)))  # noqa: B023
    now = run("memory", "list", "--limit", "0", "--json").json
    then = run("memory", "list", "--session", str(SESSIONS[0]), "--limit", "0", "--json").json
    life = run("memory", "lifeline", now["memories"][0]["id"], "--json").json
    cited = [one["by"].split()[:2] for one in life["changes"] if one["cause"] in DECIDED]
    why = cited[-1] if cited else [life["session"], life["symbol"]]
    async with opened() as pilot:
        await pilot.press("5", "v")
        await until(pilot, lambda: len(cells(pilot, "memories")) == now["count"])
        await until(pilot, lambda: now["memories"][0]["text"][:20] in pane_text(pilot, "recorded"))
        # d asks why: the last decision that cited it, else that of the session in which it was written.
        await pilot.press("d")
        await until(pilot, lambda: bool(getattr(pilot.app.screen, "_decision", None)))
        key = pilot.app.screen._decision.key  # type: ignore[attr-defined]
        assert [str(key.session), key.symbol] == why
        await pilot.press("escape")
        first, second = (one["id"] for one in now["memories"][:2])
        await pilot.press("P")
        await until(pilot, lambda: "pin" in cells(pilot, "memories")[0])
        await pilot.press("j", "F", *"stale", "enter")
        await until(pilot, lambda: cells(pilot, "memories")[-1][2] == "forgotten")
        assert pilot.app.last_command == f"paperdesk memory forget {second[:8]} --reason stale"  # type: ignore[attr-defined]
        listed = await pilot.app.bridge.snapshot().opened.ask.memory(None)  # type: ignore[attr-defined]
        assert [one["id"] for one in listed["memories"] if one["pinned"]] == [first]
        assert [one["id"] for one in listed["forgotten"]] == [second]
        await pilot.press("F")
        await until(pilot, lambda: all(row[2] != "forgotten" for row in cells(pilot, "memories")))
        await pilot.press("slash", *"orvl", "enter")
        symbol = [one for one in now["memories"] if "orvl" in f"{one['symbol']} {one['text']}".lower()]
        await until(pilot, lambda: len(cells(pilot, "memories")) == len(symbol))
        await pilot.press("slash", *["backspace"] * 4, "enter", "less_than_sign")
        # Before the end of the second run there is nothing of its session yet.
        await arrived(pilot)
        await until(pilot, lambda: f"while deciding on {SESSIONS[1]}" in drawn(pilot))
        written = {one["session"] for one in then["memories"]}
        await until(pilot, lambda: {row[0] for row in cells(pilot, "memories")} == written)
        await pilot.press("left_curly_bracket")
        await arrived(pilot)
        await until(pilot, lambda: len(cells(pilot, "memories")) == then["count"])
    assert then["count"] < now["count"]


def test_owners_are_named_where_several_remember() -> None:
    one = {"id": "1", "session": "2025-03-11", "symbol": "ORVL", "kind": "note", "text": "it rose"}
    ours, theirs = {**one, "owner": "value"}, {**one, "id": "2", "owner": "trend"}
    assert "OWNER" not in [column.title for column in memory_columns([ours])]
    titles = [column.title for column in memory_columns([ours, theirs])]
    shown = [row.cells[titles.index("OWNER")].text for row in memory_rows([ours, theirs])]
    assert shown == ["value", "trend"] and {len(row.cells) for row in memory_rows([ours, theirs])} == {len(titles)}
