"""Every figure of a bench, computed again from the journals of `bench --keep` by the rule under the table."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from statistics import fmean, pstdev, stdev
from typing import Any

import pytest

from engine.app.bench import bench as bench_module
from engine.journal.reader import JournalReader
from engine.lab.published_tables import PublishedTable, published, published_agents
from engine.reports.stored import document_of
from engine.settings import places
from engine.strategies.catalog import tuned_params
from tests.long_cases import first_of
from tui.cli import main

ROWS = {"finvision": ("FinVision",), "finagent": ("FinAgent", "FinMem"), "investorbench": ("offline",)}
"""The rows of ours without their ablations, by bench."""


def month_of(table: PublishedTable) -> PublishedTable:
    month = timedelta(days=31)
    return replace(table, last=table.first + month, warm_up_from=table.first - month)


def command(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--json"])
    assert ended.value.code == 0
    return json.loads(capsys.readouterr().out)


def finvision(cash: float, closes: list[float], periods: int) -> dict[str, float | None]:
    moves = [b / a - 1 - 0.02 / 252 for a, b in pairwise(closes)]
    peaks = [max(closes[: n + 1]) for n in range(len(closes))]
    return {
        "ARR": 100 * (closes[-1] / closes[0] - 1) * 252 / (len(closes) - 1),
        "SR": None if stdev(moves) < 1e-12 else math.sqrt(252) * fmean(moves) / stdev(moves),
        "MDD": 100 * max(1 - c / p for c, p in zip(closes, peaks, strict=True)),
    }


def finagent(cash: float, closes: list[float], periods: int) -> dict[str, float | None]:
    levels = [cash, *closes]
    returns = [0.0, *(b / a - 1 for a, b in zip(levels, closes, strict=False))]
    fall = max(1 - level / max([cash, *closes[:n]]) for n, level in enumerate(levels))
    spread, losses = pstdev(returns), [r for r in returns if r < 0]
    yearly, down = fmean(returns) * 252, pstdev(losses) if losses else 0.0
    return {
        "ARR": 100 * (math.prod(1 + r for r in returns) - 1) * 252 / len(returns),
        "SR": fmean(returns) * math.sqrt(len(returns)) / spread if spread else None,
        "MDD": 100 * fall,
        "SOR": yearly / down if down else None,
        "CR": yearly / fall if fall else None,
        "VOL": spread,
    }


def investorbench(closes: list[float], positions: list[float], periods: int) -> dict[str, float | None]:
    earned = [p * math.log(b / a) for p, (a, b) in zip(positions, pairwise(closes), strict=False)]
    levels = [1.0, *(math.prod(1 + e for e in earned[: n + 1]) for n in range(len(earned)))]
    spread = stdev(earned) * math.sqrt(periods)
    return {
        "CR": 100 * sum(earned),
        "SR": sum(earned) / (len(closes) / 252) / spread if spread else None,
        "AV": 100 * spread,
        "MDD": 100 * max(1 - level / max(levels[: n + 1]) for n, level in enumerate(levels)),
    }


def by_journal(name: str, run: str) -> tuple[dict[str, float | None], dict[str, float | None]]:
    """The figures of a kept run, from its journal's closes and decisions, and of buy and hold, from its equity."""
    with JournalReader(places.run_journal(run)) as journal:
        document, points = document_of(journal, run), journal.equity(run, part="test")
        decisions = {made.key.session: str(made.proposal.action) for made in journal.decisions(run)}
        cash = float(journal.initial_values(run)["test"])
    held = document["baselines"]["buy-and-hold"]
    beside = [float(value) for value in held["equity"]]
    if name != "investorbench":
        formulas = finvision if name == "finvision" else finagent
        values = [float(point.value) for point in points]
        return formulas(cash, values, 252), formulas(float(held["initial_value"]), beside, 252)
    (symbol,) = document["symbols"]
    sides: list[float] = []
    for point in points:
        action = decisions.get(point.session, "HOLD")
        sides.append({"BUY": 1.0, "SELL": -1.0, "HOLD": 0.0}.get(action, sides[-1] if sides else 0.0))
    periods = 252 if symbol in ("MSFT", "JNJ", "UVV", "HON") else 365
    closes = [float(point.prices[symbol]) for point in points]
    return investorbench(closes, sides, periods), investorbench(beside, [1.0] * len(beside), periods)


@pytest.mark.parametrize(
    ("name", "symbols"),
    first_of(
        2, [("finvision", "AAPL"), ("investorbench", "MSFT,TSLA"), ("finagent", "MSFT"), ("investorbench", "BTC-USD")]
    ),
)
def test_every_row_comes_out_of_its_journal_by_the_rule_under_the_table(
    name: str, symbols: str, real_data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench_module, "published", lambda name: tuple(map(month_of, published(name))))
    bench = command(capsys, "bench", name, "--keep", "--yes", "--symbols", symbols, "--data", str(real_data))
    assert any(note.startswith("measured by the") for note in bench["notes"])
    presets = dict(zip(ROWS[name], (published_agents(name).preset, "finmem-whole"), strict=False))
    ours: dict[tuple[str, str, str], float | None] = {}
    for run in bench["runs"]:
        with JournalReader(places.run_journal(run)) as journal:
            spec = journal.run(run).spec
        assert spec is not None
        row = next(row for row, preset in presets.items() if preset == spec.preset)
        agent, held = by_journal(name, run)
        if name == "investorbench":  # decisions are measured, and not the books, which hold ten percent
            with JournalReader(places.run_journal(run)) as journal:
                values = [float(point.value) for point in journal.equity(run, part="test")]
            books = investorbench(values, [1.0] * len(values), 252)["AV"]
            assert agent["AV"] is not None and books is not None and agent["AV"] > 2 * books
        ours |= {(spec.symbols[0], row, metric): value for metric, value in agent.items()}
        ours |= {(spec.symbols[0], "buy-and-hold", metric): value for metric, value in held.items()}
    cells = [c for c in bench["cells"] if c["ours"] is not None]
    compared = set()
    for cell in cells:
        key = cell["symbol"], cell.get("strategy") or cell["model"], cell["metric"]
        if key in ours:
            assert cell["ours"] == pytest.approx(ours[key], rel=1e-6, abs=1e-6), key
            compared.add(key)
    # Whatever the journals have a figure of stands in the table, and every agent's row of the table was compared.
    assert {key for key, value in ours.items() if value is not None} <= compared
    assert all((c["symbol"], c["model"], c["metric"]) in compared for c in cells if c.get("model"))
    # A rule that trades is measured by its equity, or by the weight that it asks for, as any backtest of it is.
    for cell in cells:
        if name == "investorbench" or cell.get("strategy") in (None, "buy-and-hold"):
            continue
        assert cell["ours"] == pytest.approx(rule_figures(name, cell, real_data, capsys)[cell["metric"]], abs=1e-6)


def rule_figures(
    name: str, cell: dict[str, Any], data: Path, capsys: pytest.CaptureFixture[str]
) -> dict[str, float | None]:
    table = month_of(next(one for one in published(name) if one.name == cell["table"]))
    params = tuned_params(cell["strategy"], cell["symbol"])
    given = [part for key, value in params.items() for part in ("--param", f"{key}={value}")]
    window = ("--from", f"{table.first}", "--to", f"{table.last}", "--symbols", cell["symbol"], "--data", str(data))
    run = command(capsys, "backtest", "--strategy", cell["strategy"], "--convention", name, *window, *given)
    values = [float(point["value"]) for point in run["equity"]]
    return (finvision if name == "finvision" else finagent)(float(run["initial_value"]), values, 252)


def test_what_decisions_cannot_give_is_null_with_a_note(real_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    window = ("--symbols", "MSFT,JNJ", "--from", "2020-10-01", "--to", "2020-10-30", "--data", str(real_data))
    run = command(capsys, "backtest", "--strategy", "equal-weight", "--convention", "investorbench", *window)
    assert set(run["metrics"].values()) == {None}
    assert [note for note in run["notes"] if "CR, SR, AV, MDD are null" in note]
    assert None not in run["per_symbol"]["JNJ"]["metrics"].values()
