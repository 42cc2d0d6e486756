"""`paperdesk bench tradinggpt` (G8): one trader against debate, every character's book in a row of its own."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from tests.connectors.wiring.short_bench import write_folder
from tests.tui.commands.conftest import Run

ROWS = ["TradingGPT", *(f"TradingGPT, {owner}" for owner in ("seeking", "neutral", "averse")), "one trader"]


def test_the_demo_market_has_a_row_for_each_book_and_no_printed_column(run: Run, fresh: Path, tmp_path: Path) -> None:
    window = ("--warm-up-from", "2025-02-13", "--from", "2025-02-20", "--to", "2025-03-04")
    page = tmp_path / "curves.html"
    document = run("bench", "tradinggpt", *window, "--keep", "--out", str(page), "--json").json
    ours = [cell for cell in document["cells"] if cell.get("answered_by") == "offline"]
    assert list(dict.fromkeys(cell["model"] for cell in ours)) == ROWS
    assert [cell["metric"] for cell in ours[:3]] == ["CR", "VOL", "SR"]
    assert {cell["paper"] for cell in document["cells"]} == {None}
    assert len({cell["symbol"] for cell in document["cells"]}) == 1
    assert {cell["strategy"] for cell in document["cells"] if "strategy" in cell} == {"buy-and-hold"}
    assert any("prints no results" in note for note in document["notes"])
    assert any("made up" in note for note in document["notes"])
    # The figures are those of the books in the journal.
    debate, single = (run("report", "--run", name, "--json").json for name in document["runs"])
    books = {"TradingGPT": debate, "one trader": single}
    books |= {f"TradingGPT, {owner}": book for owner, book in debate["per_owner"].items()}
    grown = {cell["model"]: cell["ours"] for cell in ours if cell["metric"] == "CR"}
    for row, book in books.items():
        exact = 100 * (Decimal(book["final_value"]) / Decimal(book["initial_value"]) - 1)
        assert grown[row] == pytest.approx(float(exact), abs=1e-9)
    # Figure 4: every row's curve ends at its cumulative return, in the document and on the page.
    (figure,) = document["curves"]
    grown["buy-and-hold"] = next(cell["ours"] for cell in document["cells"] if cell.get("strategy"))
    assert {row.removesuffix(" (offline)"): 100 * curve[-1] for row, curve in figure["rows"].items()} == pytest.approx(
        grown
    )
    assert all(len(curve) == len(figure["sessions"]) for curve in figure["rows"].values())
    drawn = page.read_text()
    assert drawn.count("<polyline") == len(figure["rows"]) == 6
    assert all(f"<title>{row}</title></polyline>" in drawn for row in figure["rows"])
    assert {(pair["row"], pair["other"]) for pair in document["pairs"]} >= {
        ("TradingGPT (offline)", "one trader (offline)")
    }


def test_a_folder_of_ones_own_takes_any_symbol_and_window(run: Run, fresh: Path, tmp_path: Path) -> None:
    folder = ("--data", str(write_folder(tmp_path / "data")), "--symbols", "AMZN")
    done = run("bench", "tradinggpt", *folder, "--from", "2023-07-03", "--to", "2023-07-10", "--ablations")
    assert done.code == 0
    assert "TradingGPT §5, AMZN" in done.out and "TradingGPT without debate, averse (offline)" in done.out
    assert "no training, test from 2023-07-03 to 2023-07-10" in done.out and "made up" not in done.out
    assert "cells:" not in done.out and " paper " not in done.out.partition("[1]")[0]


@pytest.mark.parametrize(
    "window",
    [
        ("--from", "2025-02-20"),
        ("--from", "2025-02-20", "--to", "2025-02-10"),
        ("--warm-up-from", "2025-02-21", "--from", "2025-02-20", "--to", "2025-02-28"),
        ("--from", "2025-02-20", "--to", "2999-02-28"),
    ],
)
def test_a_window_that_there_cannot_be_is_refused(run: Run, fresh: Path, window: tuple[str, ...]) -> None:
    for flags in (("tradinggpt",), ("tradinggpt", "--baselines"), ("finagent",)):
        assert run("bench", *flags, *window).code == 2


def test_without_training_own_agents_and_strategies_run_on_the_test_alone(run: Run, fresh: Path) -> None:
    own = ("--preset", "tradinggpt-single", "--strategy", "macd", "--from", "2025-02-20", "--to", "2025-02-26")
    document = run("bench", "tradinggpt", *own, "--json").json
    rows = {cell.get("model") for cell in document["cells"] if cell["ours"] is not None}
    assert {"tradinggpt-single", "macd"} <= rows
    assert any(note.startswith("no training, ") for note in document["notes"])


def test_rows_are_printed_where_the_page_finds_no_room(run: Run, fresh: Path, tmp_path: Path) -> None:
    (page := tmp_path / "full.html").symlink_to("/dev/full")
    window = ("--from", "2025-06-02", "--to", "2025-06-06")
    full = run("bench", "tradinggpt", "--baselines", *window, "--out", str(page))
    assert full.code == 65 and "buy-and-hold" in full.out and "--out" in full.err


@pytest.mark.parametrize(("out", "code"), [("x.pdf", 2), ("x", 2), ("nodir/x.html", 65), ("folder.html", 65)])
def test_a_page_that_cannot_be_written_is_refused_before_anything_runs(
    run: Run, fresh: Path, tmp_path: Path, out: str, code: int
) -> None:
    (tmp_path / "folder.html").mkdir()
    before = sorted(fresh.rglob("*"))
    for command in (("bench", "tradinggpt", "--out"), ("memory", "map")):
        refused = run(*command, str(tmp_path / out))
        assert (refused.code, refused.out, refused.err.count("\n")) == (code, "", 1)
    assert sorted(fresh.rglob("*")) == before


@pytest.mark.parametrize(
    "flags",
    [
        ("finagent", "--preset", "finvision", "--without", "news"),
        ("finagent", "--preset", "finvision", "--ablations"),
        ("investorbench", "--preset", "tradinggpt"),
    ],
)
def test_what_a_bench_cannot_do_with_a_preset_is_refused_before_it_runs(
    run: Run, fresh: Path, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    refused = run("bench", *flags, "--data", str(write_folder(tmp_path / "data")), "--symbols", "TSLA")
    assert (refused.code, refused.out) == (2, "") and "--convention" not in refused.err
