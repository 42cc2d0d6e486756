"""A file's adj_close is adjusted by everything that came later: user code sees none of it, and the audit's copies hold
none of it."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from engine.market.trading_hours import calendar_for
from tests.long_cases import first_of
from tests.tui.commands.conftest import Run

STRATEGIES = '''
import json
from pathlib import Path

FOLDER = {folder!r}


def cheapest(ratios):
    """All in the symbol whose adjusted close lies furthest below its close."""
    if not ratios or len(set(ratios.values())) == 1:
        return {{symbol: 0.0 for symbol in ratios}}
    best = min(ratios, key=ratios.get)
    return {{symbol: float(symbol == best) for symbol in ratios}}


class ByBars:
    name = "by-bars"

    def weights(self, view):
        bars = {{s: view.market.bars(s, 30) for s in view.symbols}}
        assert all(b.adj_close[-1] == b.close[-1] for b in bars.values())
        return cheapest({{s: b.adj_close[-1] / b.close[-1] for s, b in bars.items()}})


class ByAdjusted:
    """In whichever returned more, dividends included, over thirty sessions: what adjusted closes are for."""

    name = "by-adjusted"

    def weights(self, view):
        bars = {{s: view.market.adjusted(s, 30) for s in view.symbols}}
        assert all(b.adj_close[-1] == b.close[-1] == view.market.bars(s, 1).close[-1] for s, b in bars.items())
        grown = {{s: b.close[-1] / b.close[0] for s, b in bars.items()}}
        total = sum(grown.values())
        return {{s: 0.9 * part / total for s, part in grown.items()}}


class BySignals:
    name = "by-signals"

    def signals(self, history):
        import numpy as np
        ratio = np.array(history.adj_close) / np.array(history.close)
        return np.where((ratio > 0) & (ratio < 0.5), 2, -1).astype(np.int8)

    def explain(self, history, row):
        return "far below"


class ByFile:
    name = "by-file"

    def weights(self, view):
        ratios = {{}}
        for symbol in view.symbols:
            rows = [line.split(",") for line in (Path(FOLDER) / "prices" / f"{{symbol}}.csv").read_text().split()[1:]]
            row = [row for row in rows if row[0] <= str(view.session)][-1]
            ratios[symbol] = float(row[5]) / float(row[4])
        return cheapest(ratios)
'''

WINDOW = ("--symbols", "FLAT,STAR", "--from", "2024-03-04", "--to", "2024-04-30")


WAYS = ["without actions", "with actions"]


@pytest.fixture(params=WAYS)
def folder(request: pytest.FixtureRequest, fresh: Path, tmp_path: Path) -> Path:
    """STAR doubles and splits ten for one in June; FLAT does nothing. The window ends in April."""
    data = tmp_path / "data"
    (data / "prices").mkdir(parents=True)
    days = calendar_for("STAR").sessions(date(2024, 1, 2), date(2024, 6, 28))
    split = days.index(date(2024, 6, 3))
    for symbol in ("STAR", "FLAT"):
        rows = ["date,open,high,low,close,adj_close,volume"]
        for n, day in enumerate(days):
            price = 100 + (n if symbol == "STAR" else n * n % 5)
            traded, adjusted = (price, price / 10) if symbol == "STAR" else (price, price)
            if symbol == "STAR" and n >= split:
                traded = adjusted
            rows.append(f"{day},{traded},{traded},{traded},{traded},{adjusted:.6f},1000")
        (data / "prices" / f"{symbol}.csv").write_text("\n".join(rows) + "\n")
        if request.param == "with actions":
            (data / "actions").mkdir(exist_ok=True)
            action = "2024-06-03,split,10\n" if symbol == "STAR" else ""
            (data / "actions" / f"{symbol}.csv").write_text(f"ex_date,kind,value\n{action}")
    (tmp_path / "own.py").write_text(STRATEGIES.format(folder=str(data)))
    return data


@pytest.mark.parametrize("name", first_of(1, ["ByBars", "BySignals"]))
def test_whoever_ranks_by_adj_close_learns_nothing_of_later_splits(folder: Path, run: Run, name: str) -> None:
    own = ("--strategy", f"{folder.parent / 'own.py'}:{name}", "--data", str(folder))
    said = run("backtest", *own, *WINDOW, "--json")
    assert said.code == 0, said
    assert said.json["trades"] == []  # STAR doubles, and its ratio is the lowest
    audit = run("audit", *own, *WINDOW, "--cuts", "4", "--json")
    assert (audit.code, audit.json["verdict"], audit.json["truncation"]["differing"]) == (0, "clean", 0)


@pytest.mark.parametrize("folder", first_of(1, WAYS), indirect=True)
def test_returns_with_dividends_are_there_and_clean(folder: Path, run: Run) -> None:
    """Cut copies lack the column, and that it is missing there is no finding."""
    own = ("--strategy", f"{folder.parent / 'own.py'}:ByAdjusted", "--data", str(folder))
    assert len(run("backtest", *own, *WINDOW, "--json").json["trades"]) > 2
    audit = run("audit", *own, *WINDOW, "--cuts", "4", "--json")
    assert (audit.code, audit.json["findings"], audit.json["folder_copies"]["differing"]) == (0, [], 0)


@pytest.mark.parametrize("folder", first_of(1, WAYS), indirect=True)
def test_whoever_reads_the_column_in_the_file_is_caught_by_what_is_decided(folder: Path, run: Run) -> None:
    own = ("--strategy", f"{folder.parent / 'own.py'}:ByFile", "--data", str(folder))
    audit = run("audit", *own, *WINDOW, "--cuts", "2", "--json")
    assert (audit.code, audit.json["verdict"]) == (1, "leak")
    assert audit.json["folder_copies"]["differing"] > 0


@pytest.mark.slow
def test_agents_that_read_adjusted_closes_decide_the_same_without_the_column(folder: Path, run: Run) -> None:
    audit = run("audit", "--preset", "finmem", *WINDOW[:3], "2024-04-15", *WINDOW[4:], "--data", str(folder),
                "--cuts", "3", "--json")  # fmt: skip
    assert (audit.code, audit.json["findings"], audit.json["folder_copies"]["differing"]) == (0, [], 0)
