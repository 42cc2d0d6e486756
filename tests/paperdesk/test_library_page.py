"""docs/library.md and docs/library.ipynb: their code runs, and does what they say."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import pytest

import paperdesk
from engine.market.trading_hours import exchange_calendar
from tests.tui.real_terminal import REPO

PAGE, NOTEBOOK = REPO / "docs" / "library.md", REPO / "docs" / "library.ipynb"


def test_the_blocks_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    days = exchange_calendar().sessions(pd.Timestamp("2023-12-01").date(), pd.Timestamp("2024-07-05").date())
    close = pd.Series(
        [100 + 5 * (number // 10 % 2) + number % 10 / 4 for number in range(len(days))], pd.Index(days, name="Date")
    )
    bars = pd.DataFrame({"Open": close, "High": close + 1, "Low": close - 1, "Close": close, "Volume": 1000})
    bars.to_csv(tmp_path / "AAPL.csv")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S):
        exec(compile(block, str(PAGE), "exec"), names)
    assert len(names["held"].trades) > 0 and names["mine"].document["strategy"] == "<calm>"
    assert names["certificate"]["verdict"] == "clean" and names["certificate"]["same"] is True
    assert names["best"].document["settings"]["params"].items() >= names["found"]["tuned"][0]["params"].items()
    assert [run.document["strategy"] for run in names["runs"]] == ["macd", "z-score"]


def test_the_notebook_runs_in_ten_cells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert len(notebook.cells) <= 10
    names: dict[str, Any] = {}
    shown = []
    for cell in (one for one in notebook.cells if one.cell_type == "code"):
        *lines, last = ast.parse(cell.source).body
        assert isinstance(last, ast.Expr), "each cell ends in what it shows"
        exec(compile(ast.Module(lines, []), str(NOTEBOOK), "exec"), names)
        shown.append(eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), names))
    assert all(repr(one) for one in shown) and shown[1]._repr_png_()[:4] == b"\x89PNG"
    assert ("clean", True) in [one for one in shown if isinstance(one, tuple)]
    assert capfd.readouterr() == ("", "")
    runs = paperdesk.runs().set_index("name")
    assert sorted(runs.index) == ["<Calm>", "finvision"] and set(runs["outcome"]) == {"done"}
