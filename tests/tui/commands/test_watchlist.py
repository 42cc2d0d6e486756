"""Groups of symbols to look at: changed by command and by key, kept for all desks, traded by none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from tests.tui.commands.conftest import Run
from tests.tui.conftest import cells, opened, shown, until
from tui.screens.symbol_search import SymbolSearchScreen
from tui.settings import app_settings
from tui.widgets.candle_chart import CandleChart
from tui.widgets.navigation_bars import Hints
from tui.widgets.table import Table


def groups(run: Run) -> dict[str, list[str]]:
    return {one["group"]: one["symbols"] for one in run("watchlist", "--json").json["groups"]}


def test_groups_are_made_changed_exported_and_imported(run: Run, fresh: Path, tmp_path: Path) -> None:
    traded = groups(run)["desk"]
    made = run("watchlist", "add", "core", "nvda", "BRK.B", "btc/usd", "--json").json
    assert (made["symbols"], made["changed"]) == (["NVDA", "BRK.B", "BTC-USD"], True)
    assert run("watchlist", "add", "core", "NVDA", "--json").json["changed"] is False
    assert run("watchlist", "remove", "core", "BRK.B").out == "core: NVDA, BTC-USD\n"
    run("watchlist", "group", "empty")
    assert groups(run) == {"desk": traded, "core": ["NVDA", "BTC-USD"], "empty": []}
    text = run("watchlist").out
    assert "what the desk demo trades" in text and "NVDA, BTC-USD" in text

    for name in ("kept.csv", "kept.json"):
        file = tmp_path / name
        assert run("watchlist", "export", str(file), "--json").json["symbols"] == 2
        assert run("watchlist", "export", str(file)).code == 65
        assert run("watchlist", "group", "core", "--delete").code == 0
        assert "core" not in groups(run)
        assert run("watchlist", "import", str(file)).code == 0
        assert groups(run)["core"] == ["NVDA", "BTC-USD"]
    plain = tmp_path / "mine.txt"
    plain.write_text("AAPL\n\nmsft\n")
    run("watchlist", "import", str(plain))
    assert groups(run)["mine"] == ["AAPL", "MSFT"]
    # What is watched is not traded.
    assert {one["symbol"] for one in run("status", "--json").json.get("decisions", ())} <= set(traded)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("add", "core"), 2, "write it as `paperdesk watchlist add GROUP SYMBOL..."),
        (("group",), 2, "write it as `paperdesk watchlist group GROUP"),
        (("list", "core"), 2, "write it as `paperdesk watchlist list`"),
        (("add", "desk", "NVDA"), 2, "change desk.symbols in the configuration"),
        (("add", "My List", "NVDA"), 2, "is not a valid watchlist name"),
        (("add", "core", "N V"), 2, "is not a symbol"),
        (("remove", "core", "NVDA"), 65, "no watchlist core: none exists yet"),
        (("group", "core", "--delete"), 65, "no watchlist core: none exists yet"),
        (("add", "core", "NVDA", "--delete"), 2, "watchlist add takes no --delete"),
        (("import", "nix.csv"), 65, "file not found"),
    ],
)
def test_what_cannot_be_meant_is_said_in_one_line(
    run: Run, fresh: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    ended = run("watchlist", *arguments)
    assert (ended.code, ended.err.count("\n")) == (code, 1) and said in ended.err


def test_a_group_that_is_not_there_is_told_from_one_without_the_symbol(run: Run, fresh: Path) -> None:
    run("watchlist", "add", "core", "NVDA")
    run("watchlist", "group", "chips")
    for arguments in (("remove", "cors", "NVDA"), ("group", "cors", "--delete")):
        ended = run("watchlist", *arguments)
        assert ended.code == 65
        assert ended.err == "paperdesk: no watchlist cors: existing: core, chips\n"
    assert "AAPL is not in the watchlist core: NVDA\n" in run("watchlist", "remove", "core", "AAPL").err
    assert "NVDA is not in the watchlist chips: it is empty\n" in run("watchlist", "remove", "chips", "NVDA").err
    assert set(groups(run)) == {"desk", "core", "chips"}


@pytest.mark.parametrize("line", ["core,N V", "core,", ",NVDA", "core,NVDA,MSFT"])
def test_a_bad_file_is_named_with_its_line_and_changes_nothing(
    run: Run, fresh: Path, tmp_path: Path, line: str
) -> None:
    file = tmp_path / "bad.csv"
    file.write_text(f"group,symbol,\ncore,NVDA,,\n{line}\n")
    ended = run("watchlist", "import", str(file))
    assert (ended.code, ended.err.count("\n")) == (65, 1) and f"{file}, line 3" in ended.err
    assert set(groups(run)) == {"desk"}


BROKEN = ("[]", "", '{"groups": {"core": "NVDA"}}', '{"groups": {"core": [null]}}', '{"groups": ' + "[" * 100_000)


@pytest.mark.parametrize("text", [*BROKEN, '{"groups": {"desk": ["NVDA"]}}', '{"groups": {"A B": ["NVDA"]}}', "\udcff"])
def test_a_store_that_holds_something_else_is_refused(run: Run, fresh: Path, text: str) -> None:
    (fresh / "data").mkdir(exist_ok=True)
    (fresh / "data" / "watchlists.json").write_text(text, errors="surrogateescape")
    ended = run("watchlist")
    assert (ended.code, ended.err.count("\n")) == (65, 1) and "is not a watchlist file" in ended.err


@pytest.mark.parametrize("text", [*BROKEN[2:], 'core,"NVDA\n', 'core,"NVDA\n' + "x" * 200_000, "core,N\x1bV\n"])
def test_a_file_that_is_neither_csv_nor_groups_is_not_imported(
    run: Run, fresh: Path, tmp_path: Path, text: str
) -> None:
    file = tmp_path / "bad.csv"
    file.write_text(text)
    ended = run("watchlist", "import", str(file))
    assert (ended.code, ended.err.count("\n")) == (65, 1) and str(file) in ended.err and "\x1b" not in ended.err
    assert set(groups(run)) == {"desk"}


async def test_the_desk_goes_through_groups_and_changes_one(run: Run, desk: Path) -> None:
    run("watchlist", "add", "core", "HLXM", "ZZZZ")
    async with opened((160, 40)) as pilot:
        await until(pilot, lambda: len(cells(pilot, "watchlist")) == 4)
        await until(pilot, lambda: "w group" in str(pilot.app.screen.query_one(Hints).render()))
        own = [row[0] for row in cells(pilot, "watchlist")]
        await pilot.press("w")
        await until(pilot, lambda: [row[0] for row in cells(pilot, "watchlist")] == ["HLXM", "ZZZZ"])
        known, unknown = cells(pilot, "watchlist")
        assert known[1] != "-" and unknown[1] == "-"
        assert "core" in str(pilot.app.screen.query_one("#watchlist").border_title)
        await shown(pilot)
        known, unknown = cells(pilot, "watchlist")
        await pilot.press("w", "w")
        assert cells(pilot, "watchlist") == [known, unknown], "what was read of a group stays"
        await pilot.press("W", *"AAPL -HLXM", "enter")
        await until(pilot, lambda: [row[0] for row in cells(pilot, "watchlist")] == ["ZZZZ", "AAPL"])
        assert pilot.app.last_command == "paperdesk watchlist remove core HLXM"  # type: ignore[attr-defined]
        await pilot.press("w")
        await until(pilot, lambda: [row[0] for row in cells(pilot, "watchlist")] == own)
        await pilot.press("w")
        # Keys are about the symbol under the cursor, in the group that is shown.
        screen, table = pilot.app.screen, pilot.app.screen.query_one("#watchlist", Table)
        for keys in ((), ("j",), ("w",), ("j", "j", "w")):
            await pilot.press(*keys)
            await pilot.pause()
            assert screen.symbol == table.cursor_key != "", keys  # type: ignore[attr-defined]
            assert screen.query_one(CandleChart).data.title in (f"{table.cursor_key} 1D", "")
        await until(pilot, lambda: [row[0] for row in cells(pilot, "watchlist")] == ["ZZZZ", "AAPL"])
    assert groups(run)["core"] == ["ZZZZ", "AAPL"]
    async with opened() as pilot:
        await until(pilot, lambda: [row[0] for row in cells(pilot, "watchlist")] == ["ZZZZ", "AAPL"])
    assert json.loads((desk / "state" / "app.json").read_text())["watchlist"] == {"group": "core"}
    run("watchlist", "group", "core", "--delete")
    async with opened() as pilot:
        await until(pilot, lambda: [row[0] for row in cells(pilot, "watchlist")] == own)
        assert "core" not in str(pilot.app.screen.query_one("#watchlist").border_title)


async def searched(pilot: Pilot[Any], text: str, first: str) -> None:
    """Types into the search, and waits until a symbol is the first that fits."""
    await pilot.press("S")
    await until(pilot, lambda: isinstance(pilot.app.screen, SymbolSearchScreen))
    await pilot.press(*text)
    await until(pilot, lambda: bool(cells(pilot, "found")) and cells(pilot, "found")[0][0] == first)


def drawn(widget: Any) -> str:
    """The text of a widget that draws lines."""
    return "\n".join(widget.render_line(y).text for y in range(widget.size.height))


def said(pilot: Pilot[Any]) -> str:
    """The line at the foot of the search."""
    return str(pilot.app.screen.query_one("#complaint", Static).render())


async def test_a_symbol_is_found_by_symbol_and_company_and_shown(run: Run, desk: Path) -> None:
    run("watchlist", "add", "mine", "ZZZZ")
    async with opened() as pilot:
        screen: Any = pilot.app.screen_stack[0]
        await searched(pilot, "", "ORVL")
        every = {row[0]: row[1:] for row in cells(pilot, "found")}
        assert every["ORVL"] == ["Orvelle Semiconductors", "desk, data, runs"]
        assert every["ZZZZ"] == ["", "mine"] and every["FABX"][1] == "data"
        # What begins so comes first: the symbol, then a word of the name, then a part of either.
        await pilot.press("v")
        await until(pilot, lambda: cells(pilot, "found")[0][0] == "VDRL")
        assert [row[0] for row in cells(pilot, "found")].index("ORVL") > 0
        await pilot.press("backspace", *"thera")
        await until(pilot, lambda: [row[0] for row in cells(pilot, "found")] == ["HLXM"])
        await pilot.press("enter")
        await until(pilot, lambda: screen.symbol == "HLXM" and pilot.app.screen is screen)
        own = [row[0] for row in cells(pilot, "watchlist")]
        # One that the desk does not trade gets a row under the group, with its last close and its chart.
        await searched(pilot, "index f", "FABX")
        await pilot.press("enter")
        await until(pilot, lambda: bool(len(screen.query_one(CandleChart).data)) and screen.symbol == "FABX")
        assert screen.query_one(CandleChart).data.title == "FABX 1D"
        assert [row[0] for row in cells(pilot, "watchlist")] == [*own, "FABX"]
        assert cells(pilot, "watchlist")[-1][1] != "-"
        # A symbol without prices here says so.
        await searched(pilot, "zz", "ZZZZ")
        await pilot.press("enter")
        await until(pilot, lambda: screen.query_one(CandleChart).data.title == "ZZZZ 1D")
        assert "no prices yet" in drawn(screen.query_one(CandleChart))
        await pilot.press("S", *"nothing of that name", "enter")
        found = pilot.app.screen.query_one("#found")
        await until(pilot, lambda: "no known symbol matches" in drawn(found))
        assert said(pilot) == "esc leaves"
        await pilot.press("escape")
        assert pilot.app.screen is screen


async def test_a_searched_symbol_is_added_to_the_present_group(run: Run, desk: Path) -> None:
    async with opened((80, 24)) as pilot:
        await searched(pilot, "fab", "FABX")
        await pilot.press("z")
        await until(pilot, lambda: said(pilot) == "esc leaves")
        await pilot.press("backspace")
        await until(pilot, lambda: said(pilot) == "enter shows it   + adds it to the group core   esc leaves")
        await pilot.press("plus")
        assert said(pilot) == "FABX is in the group core"
        assert pilot.app.last_command == "paperdesk watchlist add core FABX"  # type: ignore[attr-defined]
        assert pilot.app.screen.query_one(Input).value == "fab"
        await pilot.press("escape", "w")
        await until(pilot, lambda: [row[0] for row in cells(pilot, "watchlist")] == ["FABX"])
        await searched(pilot, "kest", "KSTO")
        await pilot.press("plus", "escape")
        await until(pilot, lambda: [row[0] for row in cells(pilot, "watchlist")] == ["FABX", "KSTO"])
    assert run("watchlist", "--json").json["groups"][-1] == {
        "group": "core",
        "symbols": ["FABX", "KSTO"],
        "traded": False,
    }


async def test_other_screens_show_it_on_the_desk_also_where_nothing_may_be_changed(
    run: Run, desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = app_settings.app_settings(read_only=True)
    async with opened(settings=reading) as pilot:
        await pilot.press("3")
        await searched(pilot, "tamb", "TMBK")
        assert "group" not in said(pilot)
        await pilot.press("plus")
        assert "read-only" in said(pilot)
        await pilot.press("down", "up", "enter")
        await until(pilot, lambda: pilot.app.current_mode == "desk")
        chart: Any = pilot.app.screen_stack[0]
        await until(pilot, lambda: chart.query_one(CandleChart).data.title == "TMBK 1D")
        # The keys go on from it to the desk's symbols.
        await pilot.press("right_square_bracket")
        await until(pilot, lambda: chart.query_one(CandleChart).data.title == "ORVL 1D")
    assert [one["group"] for one in run("watchlist", "--json").json["groups"]] == ["desk"]
