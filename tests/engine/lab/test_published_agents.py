"""How the papers' agents were run, as data: windows, presets, ablations, and a user's own."""

from __future__ import annotations

from datetime import date

import pytest

from engine.lab.published_tables import BENCHES, published, published_agents
from engine.preset import load_preset
from engine.reports.comparison import AgentRow, Spread, agent_cells


@pytest.mark.parametrize(
    ("bench", "warm_up"),
    [
        ("finagent", [date(2022, 6, 1), date(2022, 6, 1)]),
        ("finvision", [date(2023, 4, 1)]),
        ("investorbench", [date(2020, 7, 1), date(2023, 2, 11), date(2019, 7, 29)]),
    ],
)
def test_warm_ups_begin_where_the_papers_say(bench: str, warm_up: list[date]) -> None:
    assert [table.warm_up_from for table in published(bench)] == warm_up


@pytest.mark.parametrize("bench", BENCHES)
def test_presets_and_their_ablations_exist(bench: str) -> None:
    agents = published_agents(bench)
    preset = load_preset(agents.preset)
    tables = published(bench)
    printed = [row for table in tables for row in table.models()]
    assert agents.row is None or agents.row in printed or not printed
    for ablation in agents.ablations:
        left = preset.without(ablation.without)
        less = set(left.steps) < set(preset.steps) or set(left.tools) < set(preset.tools)
        assert less or not (ablation.without or ablation.training), ablation
        assert all(symbol in tables[-1].symbols() for symbol in ablation.symbols)


def test_finagents_ablations_leave_the_components_of_table_5() -> None:
    agents = published_agents("finagent")
    preset = load_preset("finagent")
    left = {a.row: set(preset.without(a.without).steps) for a in agents.ablations}
    parts = {"M": {"intelligence", "memory"}, "L": {"low-level"}, "H": {"high-level"}, "T": {"tools"}}
    for row, kept in {"w/o-MLH": "T", "w/o-LHT": "M", "w/o-HT": "ML", "w/o-T": "MLH"}.items():
        steps = left[f"FinAgent {row}"]
        for part, its in parts.items():
            assert its <= steps if part in kept else not its & steps, (row, part)


def test_models_have_a_kind_a_size_class_and_a_row() -> None:
    agents = published_agents("investorbench")
    assert {m.name for m in agents.models} == set(published("investorbench")[0].models())
    classes = {m.name: m.size_class for m in agents.models}
    assert classes["Yi-1.5-9B-Chat"] == "small" and classes["DeepSeek-V2-Lite (15.7B)"] == "medium"
    assert classes["DeepSeek-67B-Chat"] == "large" and classes["GPT-4"] is None
    assert agents.row_of("openai:gpt-4o") == "GPT-4o" and agents.row_of("offline") == "offline"
    assert published_agents("finagent").row_of("offline") == "FinAgent"


def test_a_row_of_ours_stands_beside_the_printed_one_of_its_name_and_the_rest_alone() -> None:
    (table,) = published("finvision")
    spread = {"SR": Spread(0.1, 0.9, 0.5, 3)}
    rows = [
        AgentRow(
            symbol="AAPL",
            model="FinVision",
            answered_by="a:b",
            metrics={"ARR": 7.395, "SR": None, "MDD": 1.0},
            note="a: b",
            spreads=spread,
        ),
        AgentRow(symbol="AAPL", model="ours alone", answered_by="a:b", metrics={"ARR": 2.0}),
    ]
    cells = {(c.symbol, c.model, c.metric): c for c in agent_cells(rows, table)}
    beside = cells["AAPL", "FinVision", "ARR"]
    assert (beside.ours, str(beside.paper), beside.answered_by) == (7.395, "14.79", "a:b")
    assert beside.rel_diff == pytest.approx(-0.5)
    assert beside.note is not None and beside.note.startswith("a: b; comes from a model")
    assert cells["AAPL", "FinVision", "SR"].ours is None and cells["AAPL", "FinVision", "SR"].spread == spread["SR"]
    alone = cells["AAPL", "ours alone", "ARR"]
    assert (alone.ours, alone.paper, alone.rel_diff, alone.as_printed) == (2.0, None, None, False)
    printed = cells["MSFT", "FinVision", "ARR"]
    assert (printed.ours, str(printed.paper), printed.answered_by) == (None, "25.57", None)
    # Every printed row of an agent or model is there, with or without ours.
    assert {(c.symbol, c.model) for c in cells.values()} >= {(s, m) for s in table.symbols() for m in table.models()}
