"""Luck in what commands print: results, reports, comparisons."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.tui.commands.conftest import Run


def test_a_result_says_how_lucky_it_is(run: Run, paperdesk_home: Path) -> None:
    flags = ("--symbols", "ORVL,HLXM", "--from", "2025-02-03", "--to", "2025-03-14", "--json")
    held = run("backtest", "--strategy", "buy-and-hold", *flags).json
    luck = held["luck"]
    assert luck["trials"] == 1 and luck["deflated_sharpe"] == luck["psr"]
    assert luck["random"]["traders"] == 1000 and luck["random"]["percentile"] == 50.0
    random = held["baselines"]["random"]
    assert random["metrics"]["total_return"] == pytest.approx(luck["random"]["p50"], abs=1e-9)
    assert len(random["equity"]) == held["sessions"] and random["trades"] >= 2
    assert f"({luck['random']['p5']:+.2%} to {luck['random']['p95']:+.2%})" in run("report", "--format", "html").out
    assert luck["beta"] == pytest.approx(1) and luck["information_ratio"] is None
    assert luck["worst_month"]["month"] in ("2025-02", "2025-03")
    again = run("backtest", "--strategy", "random", *flags).json["luck"]
    assert again["trials"] == 2 and again["deflated_sharpe"] < again["psr"]
    # The first run is read again, with the second look in sight.
    assert run("report", "--run", held["run"], "--json").json["luck"]["trials"] == 2
    assert again["sentence"] in " ".join(run("report").out.split())
    short = run("backtest", "--strategy", "cash", *flags, "--to", "2025-02-07").json["luck"]
    assert short["psr"] is short["random"] is short["value_at_risk"] is None and len(short["notes"]) == 3


def test_sharpebench_scores_a_run_by_our_count_of_trials(run: Run, paperdesk_home: Path) -> None:
    judge = pytest.importorskip("sharpebench", reason="sharpebench is a development dependency")
    flags = ("--symbols", "ORVL", "--from", "2025-02-03", "--to", "2025-03-14")
    run("backtest", "--strategy", "macd", *flags)
    made = run("backtest", "--preset", "finvision-no-reflection", *flags, "--json").json
    board = run("report", "--format", "sharpebench").out
    (scored,) = json.loads(judge.rank_board(board))
    assert scored["in_sample_trials"] == made["luck"]["trials"] == 2
    assert scored["psr"] == pytest.approx(made["luck"]["psr"], abs=1e-6)
    (submitted,) = json.loads(board)[0]["runs"]
    events = [one["event"] for one in submitted["trace"]["events"]]
    assert events.count("order_placed") == len(made["trades"])
    assert events.count("decision_rationale") == len(made["decisions"])
    stated = [one for made in made["decisions"] for one in made["opinions"] if one["confidence"] is not None]
    assert len(submitted["confidences"]) == len(submitted["outcomes"]) <= len(stated)


def test_the_page_has_months_years_and_falls(run: Run, paperdesk_home: Path) -> None:
    flags = ("--symbols", "ORVL", "--from", "2024-12-02", "--to", "2025-02-28", "--strategy", "buy-and-hold")
    made = run("backtest", *flags, "--json").json
    page = run("report", "--format", "html").out
    section = page[page.index("By month and year") : page.index("By symbol")]
    rows = [re.findall(r"<t[hd](?: [^>]*)?>([^<]*)", row) for row in section.split("<tr>")]
    (months,) = (row for row in rows if row[:1] == ["2024"] and len(row) == 13)
    assert months[1:12] == [""] * 11 and months[12].endswith("%")
    (year,) = (row for row in rows if row[:1] == ["2025"] and len(row) == 4)
    assert year[1] == year[2], "it is buy and hold itself"
    fall = next(row for row in rows if len(row) == 5 and row[0].startswith("-"))
    values = {"the start": float(made["initial_value"]), **{p["session"]: float(p["value"]) for p in made["equity"]}}
    assert fall[0] == f"{100 * (values[fall[2]] / values[fall[1]] - 1):+.2f}%"
    assert fall[0] == f"{-100 * made['metrics']['max_drawdown']:+.2f}%"
    assert made["luck"]["sentence"] in page
