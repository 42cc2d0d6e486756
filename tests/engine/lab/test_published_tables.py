"""The printed tables as data: complete, digit by digit, and compared cell by cell."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from engine.conventions.catalog import convention
from engine.conventions.metrics import Track, floats
from engine.errors import UsageError
from engine.lab.published_tables import BENCHES, published
from engine.reports.comparison import compare
from engine.strategies.catalog import strategy_names


def test_the_tables_are_whole() -> None:
    sizes = {table.name: len(table.cells) for bench in BENCHES for table in published(bench)}
    assert sizes == {
        "FinVision Table 2": 8 * 3 * 3,
        "FinAgent Table 4": 13 * 6 * 3,
        "FinAgent Table 6": 18 * 6 * 6,
        "InvestorBench Table 2": 14 * 7 * 4,
        "InvestorBench Table 3": 14 * 2 * 4,
        "InvestorBench Table 4": 13 * 4,
        "TradingGPT §5": 3,
    }


@pytest.mark.parametrize(
    ("bench", "table", "symbol", "who", "metric", "value"),
    [
        ("finagent", 1, "AMZN", "buy-and-hold", "ARR", "42.3337"),
        ("finagent", 1, "TSLA", "FinAgent", "CR", "6.4543"),
        ("finagent", 0, "GOOGL", "kdj-rsi", "SR", "2.13"),
        ("investorbench", 0, "JNJ", "buy-and-hold", "AV", "17.500"),
        ("investorbench", 0, "NIO", "Qwen2.5-72B-Instruct", "SR", "2.181"),
        ("investorbench", 1, "ETH-USD", "GPT-4o", "CR", "4.666"),
        ("investorbench", 2, "SPY", "Palmyra-Fin-70B", "MDD", "8.203"),
        ("finvision", 0, "MSFT", "FinVision", "ARR", "25.57"),
        ("finvision", 0, "AMZN", "kdj-rsi", "MDD", "0.32"),
    ],
)
def test_figures_are_as_printed(bench: str, table: int, symbol: str, who: str, metric: str, value: str) -> None:
    (cell,) = [
        cell for cell in published(bench)[table].cells if (cell.symbol, cell.who, cell.metric) == (symbol, who, metric)
    ]
    assert str(cell.paper) == value


def test_every_cell_can_be_computed_or_says_why_not() -> None:
    for bench in BENCHES:
        for table in published(bench):
            computed = convention(table.convention).metrics(Track(equity=floats([1.0, 1.0, 2.0, 1.5])))
            assert table.first < table.last
            for cell in table.cells:
                assert cell.metric in computed
                if cell.strategy is None:
                    assert cell.note
                else:
                    assert cell.strategy in strategy_names()


def test_windows_differ_by_environment() -> None:
    stocks, crypto, etf = published("investorbench")
    assert (stocks.first, stocks.last) == (date(2020, 10, 1), date(2021, 5, 6))
    assert (crypto.first, crypto.last) == (date(2023, 4, 5), date(2023, 11, 5))
    assert (etf.first, etf.last) == (date(2020, 1, 2), date(2020, 9, 21))


def test_comparison_is_cell_by_cell() -> None:
    (table,) = published("finvision")
    ours = {("AMZN", "buy-and-hold"): {"ARR": 43.5754, "SR": None, "MDD": 17.0}}
    cells = {(cell.symbol, cell.metric): cell for cell in compare(ours, table)}
    assert len(cells) == 9
    exact, missing, apart = (cells["AMZN", metric] for metric in ("ARR", "SR", "MDD"))
    assert exact.as_printed and exact.paper == Decimal("43.57")
    assert exact.rel_diff == pytest.approx(0.0054 / 43.57)
    assert (missing.ours, missing.rel_diff, missing.as_printed) == (None, None, False)
    assert apart.rel_diff == pytest.approx(-0.45 / 17.45) and not apart.as_printed
    assert cells["AAPL", "ARR"].ours is None and cells["AAPL", "ARR"].note


def test_a_bench_without_printed_rows_is_refused() -> None:
    with pytest.raises(UsageError, match="arena"):
        published("arena")
