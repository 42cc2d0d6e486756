"""`paperdesk bench arena`: the printed tables as they stand, our arms beside them, and what cannot be had."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from random import Random
from statistics import fmean

import pytest

from engine import places
from engine.market.trading_hours import calendar_for
from tests.tui.commands.conftest import Run


@pytest.mark.slow
def test_our_arms_stand_beside_the_printed_tables(run: Run, fresh: Path) -> None:
    document = run("bench", "arena", "--models", "offline", "--json").json
    assert [(one["table"], len(one["rows"])) for one in document["tables"]] == [(3, 5), (4, 8), (4, 8), (5, 18), (9, 6)]
    paper = {(one["table"], row["row"]): row for one in document["tables"] for row in one["rows"]}
    assert paper[3, "GPT-4o"]["figures"]["TR"] == "47.6851" and paper[3, "GPT-4o"]["uneven"] is None
    # Printed Sharpe ratios that are not Mean / Std of their row are marked with that quotient.
    marked = [row["row"] for one in document["tables"] for row in one["rows"] if row["uneven"] is not None]
    assert {"StockFormer", "LLaMa-3, text, no reflection", "ArenaTrader w/ GPT-4o"} <= set(marked)
    assert marked.count("StockFormer") == 2
    ours = {(one["table"], one["row"]): one["figures"] for one in document["ours"]}
    rows = [
        (5, f"offline, {shown}, {words}")
        for words in ("no reflection", "reflection")
        for shown in ("text", "charts", "both")
    ]
    assert list(ours) == [*rows, (3, "offline"), (9, "offline, text"), (9, "offline, charts")]
    assert ours[3, "offline"]["TR"] == ours[5, "offline, both, reflection"]["TR"]
    assert ours[3, "offline"]["Difference"] == pytest.approx(ours[3, "offline"]["TR"] - ours[3, "offline"]["Trend"])
    trader = run("arena", "--resume", f"{document['runs'][5]}-1", "--model", "replay", "--json").json["agents"][0]
    assert trader["name"] == "ArenaTrader"
    assert 100 * trader["metrics"]["total_return"] == pytest.approx(ours[3, "offline"]["TR"])
    for table in ("Table 4", "Table 8"):
        assert any(table in text and "not delivered with Paperdesk" in text for text in document["absent"])


@pytest.mark.slow
def test_as_text_ours_stand_below_the_papers_rows(run: Run, fresh: Path) -> None:
    text = run("bench", "arena").out
    below = text.split("Table 3")[1].split("Table 4")[0].splitlines()
    assert [line.split()[1] for line in below[2:7]] == ["paper"] * 5 and below[7].split()[:2] == ["offline", "ours"]
    assert "Mean / Std is" in text and "What cannot be had:" in text and "StockFormer" in text


def test_options_of_other_benches_are_refused(run: Run, fresh: Path) -> None:
    done = run("bench", "arena", "--baselines", "--tune", "3")
    assert done.code == 2 and "bench arena takes no" in done.err and "--tune" in done.err


SEVEN = ("AAPL", "AMZN", "GOOGL", "MSFT", "NFLX", "NVDA", "TSLA")


def prices(folder: Path) -> dict[str, list[tuple[date, float]]]:
    """A data folder of the paper's stocks with random prices through its window; closes by symbol."""
    days = calendar_for("AAPL", places.session_table).sessions(date(2024, 5, 1), date(2024, 10, 29))
    (folder / "prices").mkdir(parents=True)
    closes: dict[str, list[tuple[date, float]]] = {}
    for seed, symbol in enumerate(SEVEN):
        random, price = Random(seed), 100.0
        lines = ["date,open,high,low,close,adj_close,volume"]
        for day in days:
            price = round(price * (1 + random.gauss(0.0005, 0.015)), 2)
            closes.setdefault(symbol, []).append((day, price))
            lines.append(f"{day},{price},{price},{price},{price},{price},1000")
        (folder / "prices" / f"{symbol}.csv").write_text("\n".join(lines) + "\n")
    return closes


@pytest.mark.slow
def test_real_prices_on_the_paper_s_window_stand_beside_its_rows(run: Run, fresh: Path, tmp_path: Path) -> None:
    closes = prices(tmp_path)
    done = run("bench", "arena", "--data", str(tmp_path), "--models", "offline", "--json")
    assert done.code == 0
    document = done.json
    assert document["sessions"] == 41 and document["symbols"] == list(SEVEN)
    printed = {one["row"]: one["figures"]["TR"] for one in document["printed"]["rows"]}
    assert (printed["Buy & Hold"], printed["ArenaTrader w/ GPT-4o"]) == ("6.06", "15.99")
    ours = {one["row"]: one["figures"] for one in document["ours"]}
    assert list(ours) == ["Buy & Hold", "SMA", "ZMR", "MACD", "arena, offline"]
    # By hand: an equal share of each stock from the first close to the last one.
    window = [[price for day, price in of if day >= date(2024, 9, 3)] for of in closes.values()]
    assert ours["Buy & Hold"]["TR"] == pytest.approx(100 * fmean(of[-1] / of[0] - 1 for of in window), abs=1e-6)
    validation = document["validation"]
    assert (validation["first"], validation["last"]) == ("2024-08-01", "2024-09-02")
    assert validation["window"] == int(max(validation["TR"], key=lambda name: validation["TR"][name]))
    kept = run("report", "--run", document["runs"][0], "--format", "json").json
    assert kept["metrics"]["TR"] == ours["arena, offline"]["TR"] and kept["preset"] == "arena"
    window_of_sma = ("--strategy", "price-cross", "--param", f"window={validation['window']}")
    dates = ("--from", "2024-09-03", "--to", "2024-10-29", "--convention", "arena")
    alone = run("backtest", "--data", str(tmp_path), "--symbols", ",".join(SEVEN), *window_of_sma, *dates, "--json")
    assert alone.json["metrics"]["TR"] == ours["SMA"]["TR"]


def test_another_window_has_no_printed_rows_and_a_missing_one_is_named(run: Run, fresh: Path, tmp_path: Path) -> None:
    prices(tmp_path)
    asked = ("bench", "arena", "--data", str(tmp_path), "--baselines")
    short = ("--from", "2024-07-24", "--to", "2024-07-31", "--symbols", "AAPL,TSLA")
    ablated = run(*asked[:-1], *short, "--models", "offline", "--ablations", "--json").json["ours"]
    assert [one["row"] for one in ablated[4:]] == [
        *("arena, offline", "arena, offline, without charts", "arena, offline, without reflection")
    ]
    text = run(*asked, *short).out
    assert "The paper's rows are of another window" in " ".join(text.split()) and " paper " not in text.split("\n\n")[0]
    assert [line.split()[0] for line in text.splitlines()[2:6]] == ["Buy", "SMA", "ZMR", "MACD"]
    late = run(*asked, "--from", "2024-10-01", "--to", "2024-11-15")
    assert (late.code, late.err.count("\n")) == (65, 1) and "by --from and --to" in late.err
    half = run(*asked, "--from", "2024-10-01")
    assert half.code == 2 and "a window has two ends" in half.err
    foreign = run(*asked, "--repeats", "3")
    assert foreign.code == 2 and "bench arena takes no --repeats" in foreign.err
