"""Below its runs the Lab lists the studies of this machine and the books of a desk's owners; each opens as a page."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from engine.settings import places
from tests.tui.commands.conftest import Run
from tests.tui.commands.test_owners import PRESET
from tests.tui.conftest import cells, opened, until
from tui.screens.reading import ReadingScreen
from tui.widgets.navigation_bars import Hints
from tui.widgets.table import Table

GRID = """
[study]
strategies = ["macd", "z-score"]
symbols = ["ORVL"]
windows = [["2025-03-03", "2025-03-14"]]
"""


async def page_of(pilot: Pilot[Any], key: str) -> str:
    """The page that a row opens."""
    table = pilot.app.screen.query_one("#results", Table)
    await until(pilot, lambda: any(row.key == key for row in table.rows))
    table.point_at(key)
    await until(pilot, lambda: "enter report" in str(pilot.app.screen.query_one(Hints).render()))
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(pilot.app.screen, ReadingScreen))
    text: str = pilot.app.screen.text.plain  # type: ignore[attr-defined]
    await pilot.press("escape")
    return text


async def test_a_study_and_the_books_of_owners_are_rows_that_open(fresh: Path, tmp_path: Path, run: Run) -> None:
    grid, preset = tmp_path / "grid.toml", tmp_path / "three.toml"
    grid.write_text(GRID)
    preset.write_text(PRESET.format(mode="books"))
    places.config_file().write_text(f'[desk]\npreset = "{preset}"\nsymbols = ["ORVL", "BXWD"]\n')
    for folder, text in (("a", GRID), ("b", GRID.replace('["ORVL"]', '["ORVL", "NONE"]'))):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.toml").write_text(text)
        await asyncio.to_thread(run, "study", str(tmp_path / folder / "same.toml"))
    played = (await asyncio.to_thread(run, "study", str(grid), "--json")).json
    for day in ("2025-03-10", "2025-03-11"):
        done = await asyncio.to_thread(run, "--daily", "--session", day)
        assert done.code == 0, done.err
    compared = (await asyncio.to_thread(run, "compare", "--json")).json
    window = ("--symbols", "ORVL", "--from", "2025-03-10", "--to", "2025-03-11", "--preset", "finvision")
    assert (await asyncio.to_thread(run, "compare", "--models", "offline", "--mask", "0,4", *window)).code == 0
    assert len((await asyncio.to_thread(run, "study", "list", "--json")).json["studies"]) == 3
    async with opened((120, 40)) as pilot:
        await pilot.press("4")
        study = await page_of(pilot, "study grid")
        assert "Study grid: 2 of 2 runs" in study and all(f"\n{row['name']} " in study for row in played["rows"])
        books = await page_of(pilot, "books of the desk")
        assert all(f"{pair['other']} beside {pair['first']}" in books for pair in compared["pairs"])
        states = {row[0]: row[-1] for row in cells(pilot, "results")}
        (compared,) = [name for name in states if name.startswith("study compare-")]
        assert states[compared] == "2 of 2 done" and not any(name.startswith("finvision ") for name in states)
        assert "finvision" in await page_of(pilot, compared)
        assert (states["study grid"], states["books of the desk"]) == ("2 of 2 done", "3 owners")
        lacking = f"study {tmp_path}/b/same.toml"
        assert states[f"study {tmp_path}/a/same.toml"] == "2 of 2 done"
        assert states[lacking] == "4 of 4 done, 2 without figures"
        assert "NONE" in await page_of(pilot, lacking)
