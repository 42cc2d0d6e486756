"""`paperdesk bench arena`: the printed tables as they stand, our arms beside them, and what cannot be had."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.commands.conftest import Run


def test_our_arms_stand_beside_the_printed_tables(run: Run, fresh: Path) -> None:
    document = run("bench", "arena", "--models", "offline", "--json").json
    assert [(one["table"], len(one["rows"])) for one in document["tables"]] == [(3, 5), (4, 8), (4, 8), (5, 18), (9, 6)]
    paper = {(one["table"], row["row"]): row for one in document["tables"] for row in one["rows"]}
    assert paper[3, "GPT-4o"]["figures"]["TR"] == "47.6851" and paper[3, "GPT-4o"]["uneven"] is None
    # Printed Sharpe ratios that are not Mean / Std of their row are marked with that quotient.
    marked = [row["row"] for one in document["tables"] for row in one["rows"] if row["uneven"] is not None]
    assert {"StockFormer", "LLaMa-3, text, no reflection", "ArenaTrader w/ GPT-4o"} <= set(marked)
    assert marked.count("StockFormer") == 2
    ours = {(one["table"], one["row"]): one["figures"] for one in document["ours"]}
    rows = [
        (5, f"offline, {shown}, {words}")
        for words in ("no reflection", "reflection")
        for shown in ("text", "charts", "both")
    ]
    assert list(ours) == [*rows, (3, "offline"), (9, "offline, text"), (9, "offline, charts")]
    assert ours[3, "offline"]["TR"] == ours[5, "offline, both, reflection"]["TR"]
    assert ours[3, "offline"]["Difference"] == pytest.approx(ours[3, "offline"]["TR"] - ours[3, "offline"]["Trend"])
    trader = run("arena", "--resume", f"{document['runs'][5]}-1", "--model", "replay", "--json").json["agents"][0]
    assert trader["name"] == "ArenaTrader"
    assert 100 * trader["metrics"]["total_return"] == pytest.approx(ours[3, "offline"]["TR"])
    assert any("not delivered with Paperdesk" in text for text in document["absent"])


def test_as_text_ours_stand_below_the_papers_rows(run: Run, fresh: Path) -> None:
    text = run("bench", "arena").out
    below = text.split("Table 3")[1].split("Table 4")[0].splitlines()
    assert [line.split()[1] for line in below[2:7]] == ["paper"] * 5 and below[7].split()[:2] == ["offline", "ours"]
    assert "Mean / Std is" in text and "What cannot be had:" in text and "StockFormer" in text


def test_options_of_other_benches_are_refused(run: Run, fresh: Path) -> None:
    done = run("bench", "arena", "--baselines", "--data", "x")
    assert done.code == 2 and "bench arena takes no" in done.err and "--data" in done.err
