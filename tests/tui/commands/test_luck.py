"""Luck in what commands print: results, reports, comparisons."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.commands.conftest import Run


def test_a_result_says_how_lucky_it_is(run: Run, paperdesk_home: Path) -> None:
    flags = ("--symbols", "ORVL,HLXM", "--from", "2025-02-03", "--to", "2025-03-14", "--json")
    held = run("backtest", "--strategy", "buy-and-hold", *flags).json
    luck = held["luck"]
    assert luck["trials"] == 1 and luck["deflated_sharpe"] == luck["psr"]
    assert luck["random"]["traders"] == 1000 and luck["random"]["percentile"] == 50.0
    assert luck["beta"] == pytest.approx(1) and luck["information_ratio"] is None
    assert luck["worst_month"]["month"] in ("2025-02", "2025-03")
    again = run("backtest", "--strategy", "random", *flags).json["luck"]
    assert again["trials"] == 2 and again["deflated_sharpe"] < again["psr"]
    # The first run is read again, with the second look in sight.
    assert run("report", "--run", held["run"], "--json").json["luck"]["trials"] == 2
    assert again["sentence"] in " ".join(run("report").out.split())
    short = run("backtest", "--strategy", "cash", *flags, "--to", "2025-02-07").json["luck"]
    assert short["psr"] is short["random"] is short["value_at_risk"] is None and len(short["notes"]) == 3
