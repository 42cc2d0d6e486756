"""Averages by kind and size of model, against those that the paper prints."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from engine.lab.published_tables import published, published_agents
from engine.reports.comparison import AgentRow, agent_cells, averages, compare

AGENTS = published_agents("investorbench")


def of(table: int, rows: list[AgentRow], held: dict[str, float] | None = None) -> list[dict[str, Any]]:
    printed = published("investorbench")[table]
    ours = {(symbol, "buy-and-hold"): held or {} for symbol in printed.symbols()}
    cells = [*compare(ours, printed), *agent_cells(rows, printed)]
    return averages(printed, AGENTS.models, cells)


def figure(found: list[dict[str, Any]], group: str, symbol: str, metric: str) -> dict[str, Any]:
    (one,) = [a for a in found if a["group"] == group and symbol in a["symbols"] and a["metric"] == metric]
    return one


@pytest.mark.parametrize(
    ("table", "group", "symbol", "metric", "printed"),
    [
        # Tables 3 and 4 print these averages themselves.
        (1, "proprietary", "BTC-USD", "CR", "23.595"),
        (1, "proprietary", "ETH-USD", "AV", "37.501"),
        (1, "open source", "BTC-USD", "MDD", "17.382"),
        (1, "open source", "ETH-USD", "SR", "0.062"),
        (2, "proprietary", "SPY", "CR", "12.108"),
        (2, "open source", "SPY", "AV", "28.835"),
        # Table 2 has one model of this kind, whose average it prints.
        (0, "financial domain", "NIO", "CR", "-0.453"),
        (0, "financial domain", "TSLA", "AV", "63.660"),
    ],
)
def test_the_papers_own_averages_come_out(table: int, group: str, symbol: str, metric: str, printed: str) -> None:
    mean = figure(of(table, []), group, symbol, metric)["mean"]
    assert abs(Decimal(repr(mean)) - Decimal(printed)) < Decimal("0.001")


def test_the_percentage_is_of_buy_and_hold_over_the_same_symbols() -> None:
    stocks = figure(of(0, []), "financial domain", "TSLA", "AV")
    assert stocks["symbols"] == ["TSLA", "AAPL", "NIO"]
    # The table prints 63.660 and 74.012.
    assert stocks["percent_of_buy_and_hold"] == pytest.approx(100 * 63.660 / 74.012, abs=0.01)


def test_sizes_are_compared_among_open_models_alone() -> None:
    groups = {a["group"] for a in of(0, [])}
    assert groups == {
        "financial domain",
        "proprietary",
        "open source",
        "open source, large",
        "open source, medium",
        "open source, small",
    }
    assert figure(of(1, []), "open source, small", "BTC-USD", "CR")["mean"] == pytest.approx(
        (7.953 + 20.521 + 19.477) / 3
    )


def test_ours_are_measured_by_our_own_buy_and_hold() -> None:
    row = AgentRow(
        symbol="SPY", model="offline", answered_by="offline", metrics={"CR": 3.0, "SR": None, "AV": 10.0, "MDD": 5.0}
    )
    found = of(2, [row], {"CR": 2.0, "SR": -0.1, "AV": 40.0, "MDD": 20.0})
    assert figure(found, "offline", "SPY", "CR")["percent_of_buy_and_hold"] == 150.0
    assert figure(found, "offline", "SPY", "AV")["percent_of_buy_and_hold"] == 25.0
    assert not [a for a in found if a["group"] == "offline" and a["metric"] == "SR"]


def test_a_share_of_a_loss_is_none() -> None:
    row = AgentRow(symbol="SPY", model="offline", answered_by="offline", metrics={"CR": -3.0})
    found = figure(of(2, [row], {"CR": -1.0}), "offline", "SPY", "CR")
    assert (found["mean"], found["percent_of_buy_and_hold"]) == (-3.0, None)


def test_a_row_that_lacks_a_symbol_has_no_average_over_it() -> None:
    rows = [
        AgentRow(symbol="TSLA", model="offline", answered_by="offline", metrics={"CR": 3.0}),
        AgentRow(symbol="AAPL", model="offline", answered_by="offline", metrics={"CR": 1.0}),
    ]
    assert not [a for a in of(0, rows, {"CR": 1.0}) if a["of"] == "ours"]
