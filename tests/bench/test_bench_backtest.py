"""The bench measures the same work: on the same bars another engine comes to the same trades and nearly our value."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

REPO = Path(__file__).resolve().parent.parent.parent


def measured(engine: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.bench.bench_backtest", "--engine", engine]
    command += ["--symbols", "3", "--bars", "300", "--repeats", "1"]
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.slow
def test_backtesting_py_trades_the_same_bars_the_same_way() -> None:
    pytest.importorskip("backtesting")

    ours, theirs = measured("paperdesk"), measured("backtesting")

    assert ours["trades"] == theirs["trades"] > 10
    # It holds whole shares alone, so a little of its cash stays idle.
    assert ours["value"] == pytest.approx(theirs["value"], rel=5e-4)


def test_an_unknown_bench_is_said() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench", "nonsense"], cwd=REPO, capture_output=True, text=True, check=False
    )

    assert done.returncode == 2
    assert done.stderr.startswith("unknown bench nonsense; there are ")
    assert "backtest" in done.stderr
