"""The settings that a run goes by, as its outputs tell them."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from tests.tui.commands.conftest import Run

CONVENTION = ("--convention", "finagent", "--strategy", "buy-and-hold")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder with some weeks of a coin and of a share."""
    prices = tmp_path / "data" / "prices"
    prices.mkdir(parents=True)
    for symbol in ("ETH-USD", "AAA"):
        rows = ["date,open,high,low,close,adj_close,volume"]
        for row in range(60):
            day, close = date(2024, 1, 1) + timedelta(days=row), 100 + row % 7
            closed = symbol == "AAA" and (day.weekday() > 4 or day in (date(2024, 1, 1), date(2024, 1, 15)))
            if not closed and day != date(2024, 2, 19):
                rows.append(f"{day},{close},{close + 2},{close - 2},{close + 1},{close + 1},1000")
        (prices / f"{symbol}.csv").write_text("\n".join(rows) + "\n")
    return tmp_path / "data"


def test_finagents_eth_has_its_own_cash_and_commission(fresh: Path, folder: Path, run: Run) -> None:
    window = ("--from", "2024-01-16", "--to", "2024-02-09", "--data", str(folder), "--json")
    made = run("backtest", "--symbols", "ETH-USD", *CONVENTION, *window).json
    (bought, *_) = made["trades"]
    assert made["initial_value"] == "100000.00"
    assert Decimal(bought["fee"]) == Decimal(bought["quantity"]) * Decimal(bought["price"]) * Decimal("0.00015")
    share = run("backtest", "--symbols", "AAA", *CONVENTION, *window).json
    (bought, *_) = share["trades"]
    assert share["initial_value"] == "10000.00"
    assert Decimal(bought["fee"]) == Decimal(bought["quantity"]) * Decimal(bought["price"]) * Decimal("0.001")


def test_the_printed_volatility_of_finagents_eth_comes_out(fresh: Path, real_data: Path, run: Run) -> None:
    flags = ("--baselines", "--symbols", "ETH-USD", "--data", str(real_data), "--json")
    cells = run("bench", "finagent", *flags).json["cells"]
    (cell,) = [one for one in cells if one.get("strategy") == "buy-and-hold" and one["metric"] == "VOL"]
    assert round(cell["ours"], 4) == cell["paper"] == 0.0222
