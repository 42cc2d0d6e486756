"""`paperdesk memory map`: what came in by its retrieval types in two dimensions (FinAgent figure 5b, A2)."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.tui.commands.conftest import Run

REFLECTIONS = {"low-level-reflection", "high-level-reflection"}


@pytest.fixture
def remembered(run: Run, fresh: Path) -> None:
    window = ("--symbols", "ORVL,HLXM", "--from", "2025-03-10", "--to", "2025-03-13")
    assert run("backtest", *window, "--preset", "finagent", "--run", "mapped").code == 0


@pytest.mark.usefixtures("remembered")
def test_a_map_holds_each_labelled_item_once_at_its_principal_components(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "types.html"
    document = run("memory", "map", str(page), "--run", "mapped", "--json").json
    memories = document["memories"]
    listed = run("memory", "list", "--run", "mapped", "--limit", "0", "--json").json["memories"]
    labelled = {(one["text"], *one["types"]) for one in listed if one["types"] and one["kind"] not in REFLECTIONS}
    assert {(one["text"], *one["types"]) for one in memories} >= labelled
    assert len(memories) == document["count"] == len({(one["text"], *one["types"]) for one in memories}) > 10
    places = np.array([(one["x"], one["y"]) for one in memories])
    assert places.mean(axis=0) == pytest.approx([0, 0], abs=1e-5)
    (across, mixed), (_, up) = np.cov(places.T)
    assert across >= up > 0 and mixed == pytest.approx(0, abs=1e-5)
    assert 0 < document["explained"] <= 1
    assert run("memory", "map", "--run", "mapped", "--json").json == document
    few = run("memory", "map", "--run", "mapped", "--limit", "3", "--json").json
    assert (few["memories"], few["count"]) == (memories[:3], document["count"])
    # A chart for each family of types, which has every item.
    charts = page.read_text().split("<h2>")[1:]
    assert len(charts) == 4
    for chart in charts:
        texts = re.findall(r"<circle [^>]+><title>(\w[^:]*): ", chart)
        assert len(texts) >= len(memories)
    bullish = sum("bullish trend" in one["types"] for one in memories)
    assert page.read_text().count("<title>bullish trend: ") == bullish > 0


@pytest.mark.usefixtures("remembered")
def test_a_map_is_of_one_symbol_where_it_is_named(run: Run) -> None:
    document = run("memory", "map", "--symbol", "hlxm", "--run", "mapped", "--json").json
    assert {one["symbol"] for one in document["memories"]} == {"HLXM"}
    text = run("memory", "map", "--symbol", "HLXM", "--run", "mapped").out
    assert re.search(r"^news +\d+ +[+-]\d\.\d{3} +[+-]\d\.\d{3}$", text, re.MULTILINE)
    assert run("memory", "map", "--symbol", "NONE", "--run", "mapped").code == 65
    assert run("memory", "map", "--layer", "deep", "--run", "mapped").code == 2
