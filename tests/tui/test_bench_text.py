"""A bench as text: rows, repeats, what is cut and what is not."""

from __future__ import annotations

from decimal import Decimal

import pytest

from engine.domain.model_call import Usage
from engine.domain.run import ModelUse
from engine.lab.published_tables import published
from engine.reports.comparison import AgentRow, Spread, agent_cells
from engine.reports.documents.research import Bench
from tui.text.bench_text import lines


def bench(note: str = "of the test") -> Bench:
    table = published("finagent")[1]
    figures = {"ARR": 31.0, "SR": 1.5, "MDD": 10.0, "SOR": None, "CR": 2.0, "VOL": 0.0101}
    spreads = {metric: Spread(value, value, value, 3) for metric, value in figures.items() if value is not None}
    spreads["ARR"] = Spread(-12.5, 44.25, 30.5, 3)
    rows = [
        AgentRow(
            symbol="AAPL",
            model="FinAgent",
            answered_by="openai:gpt-5.4-mini",
            metrics=figures,
            note=note,
            spreads=spreads,
        ),
        AgentRow(symbol="AAPL", model="mine", answered_by="offline", metrics=figures),
    ]
    use = ModelUse(
        spec="openai:gpt-5.4-mini",
        calls=1200,
        cached_calls=200,
        abstentions=3,
        refusals=2,
        usage=Usage(2_000_000, 0, 150_000),
        cost=Decimal("2.175"),
    )
    cells = tuple(cell for cell in agent_cells(rows, table) if cell.symbol == "AAPL")
    return Bench(
        name="finagent",
        cells=cells,
        notes=("a note",),
        runs=("bench-1",),
        models=(use,),
        unresolved={use.spec: {"decision": 7}},
    )


@pytest.mark.parametrize("width", [80, 120])
def test_repeats_stand_between_ours_and_the_papers(width: int) -> None:
    shown = list(lines(bench(), width, True))
    assert max(map(len, shown)) <= width
    at = next(n for n, line in enumerate(shown) if line.startswith("FinAgent (openai:gpt-5.4-mini)"))
    block = [line.replace("FinAgent (openai:gpt-5.4-mini)", "") for line in shown[at : at + 6]]
    words = [line.split()[:2] for line in block if line.split()][:5]
    assert words == [
        ["ours", "31.0000"],
        ["low", "-12.5000"],
        ["median", "30.5000"],
        ["high", "44.2500"],
        ["paper", "31.8972"],
    ]


def test_a_figure_that_is_undefined_is_a_dash_and_the_papers_digits_are_ours() -> None:
    shown = list(lines(bench(), 120, True))
    ours = next(line for line in shown if "gpt-5.4-mini" in line and "ours" in line)
    assert ours.split()[3:] == ["31.0000", "1.5000", "10.0000", "-", "2.0000", "0.0101", "[1]"]
    mine = next(line for line in shown if line.startswith("mine (offline)"))
    assert mine.split()[2:] == ["ours", "31.000", "1.500", "10.000", "-", "2.000", "0.010"]


def test_what_the_models_were_asked_and_cost_is_said_at_the_end() -> None:
    text = "\n".join(lines(bench("x" * 30), 80, True))
    assert "openai:gpt-5.4-mini: 1,200 calls, 200 of them recorded" in text
    assert "2,000,000 tokens in, 150,000 out" in " ".join(text.split()) and "$2.1" in text
    assert "3 without an answer, 2 of them refused; 7 figures" in " ".join(text.split())
    assert "a note" in text and "bench-1" in text
    # Only cells that the paper prints are counted; of ours, one ratio is undefined.
    printed = sum(len(t.cells) for t in published("finagent")[1:]) // 6 - 4 * 6
    assert f"{printed} cells:" in text
