"""Groups of symbols to look at: changed by command and by key, kept for all desks, traded by none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.tui.commands.conftest import Run
from tests.tui.commands.test_book_screen import cells
from tests.tui.conftest import opened, until
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
        (("add", "core"), 2, "add needs a group and symbols"),
        (("group",), 2, "group needs one name"),
        (("list", "core"), 2, "list takes nothing more"),
        (("add", "desk", "NVDA"), 2, "change desk.symbols in the configuration"),
        (("add", "My List", "NVDA"), 2, "cannot name a watchlist"),
        (("add", "core", "N V"), 2, "is no symbol"),
        (("remove", "core", "NVDA"), 65, "there is no watchlist core: none was made yet"),
        (("group", "core", "--delete"), 65, "there is no watchlist core: none was made yet"),
        (("add", "core", "NVDA", "--delete"), 2, "--delete belongs to group"),
        (("import", "nix.csv"), 65, "there is no such file"),
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
        assert ended.err == "paperdesk: there is no watchlist cors: those that exist are core, chips\n"
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
    assert (ended.code, ended.err.count("\n")) == (65, 1) and "is no file of watchlists" in ended.err


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
