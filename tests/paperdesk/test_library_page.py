"""docs/library.md and docs/library.ipynb: their code runs, and does what they say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import pytest
from nbclient import NotebookClient

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


def test_the_notebook_runs_in_ten_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.setenv("PYTHONPATH", str(REPO))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert len(notebook.cells) <= 10
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()

    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    shown = [{kind for out in cell.outputs for kind in out.get("data", {})} for cell in cells]
    assert all("text/plain" in kinds for kinds in shown) and "image/png" in shown[1]
    assert not [out for cell in cells for out in cell.outputs if out.output_type in ("error", "stream")]
    runs = paperdesk.runs().set_index("name")
    assert sorted(runs.index) == ["<Calm>", "finvision"] and set(runs["outcome"]) == {"done"}
    (audited,) = (
        out.data["text/plain"]
        for cell in cells
        for out in cell.outputs
        if "'clean'" in out.get("data", {}).get("text/plain", "")
    )
    assert audited == "('clean', True)"
