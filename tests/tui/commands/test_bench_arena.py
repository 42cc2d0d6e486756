"""`paperdesk bench arena`: the printed tables as they stand, our arms beside them, and what cannot be had."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from random import Random
from statistics import fmean

import pytest

from engine.journal.reader import JournalReader
from engine.market.trading_hours import calendar_for
from engine.settings import places
from tests.tui.commands.conftest import Run


@pytest.mark.slow
def test_our_arms_stand_beside_the_printed_tables(run: Run, fresh: Path) -> None:
    document = run("bench", "arena", "--models", "offline", "--json").json
    counts = [(3, 5), (4, 8), (4, 8), (5, 18), (6, 12), (8, 6), (9, 6)]
    assert [(one["table"], len(one["rows"])) for one in document["tables"]] == counts
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
    usual = [(6, f"offline, {shown}, 10 days") for shown in ("text", "charts", "both")]
    assert set(ours) == {*rows, *usual, (3, "offline"), (9, "offline, text"), (9, "offline, charts")}
    assert ours[usual[0]] == ours[5, "offline, text, reflection"]
    assert ours[3, "offline"]["TR"] == ours[5, "offline, both, reflection"]["TR"]
    assert ours[3, "offline"]["Difference"] == pytest.approx(ours[3, "offline"]["TR"] - ours[3, "offline"]["Trend"])
    trader = run("arena", "--resume", f"{document['runs'][5]}-1", "--model", "replay", "--json").json["agents"][0]
    assert trader["name"] == "ArenaTrader"
    assert 100 * trader["metrics"]["total_return"] == pytest.approx(ours[3, "offline"]["TR"])
    for table in ("Table 4", "Table 8"):
        assert any(table in text and "not delivered with Paperdesk" in text for text in document["absent"])


def test_options_of_other_benches_are_refused(run: Run, fresh: Path) -> None:
    done = run("bench", "arena", "--tune", "3")
    assert done.code == 2 and "bench arena takes no --tune" in done.err


SEVEN = ("AAPL", "AMZN", "GOOGL", "MSFT", "NFLX", "NVDA", "TSLA")
CSI = ("600519.SS", "600036.SS", "300750.SZ", "002594.SZ", "601012.SS", "000063.SZ", "300760.SZ")
LEARNED = ("StockFormer", "TimesNet", "StockMixer")
INPUTS, WINDOWS = ("text", "charts", "both"), (5, 10, 15, 20)
ARMS = [f"{shown}, {window} days" for shown in INPUTS for window in WINDOWS]


def prices(
    folder: Path, symbols: Sequence[str] = SEVEN, last: date = date(2024, 10, 29)
) -> dict[str, list[tuple[date, float]]]:
    """A data folder of the paper's stocks with random prices through its window; closes by symbol."""
    first = date(2024, 5, 1) if symbols == SEVEN else date(2023, 10, 9)
    days = calendar_for(symbols[0], places.session_table).sessions(first, last)
    (folder / "prices").mkdir(parents=True)
    closes: dict[str, list[tuple[date, float]]] = {}
    for seed, symbol in enumerate(symbols):
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
    (sixth,) = document["tables"]
    printed = {one["row"]: one["figures"]["TR"] for one in sixth["rows"]}
    assert list(printed) == [f"GPT-4o, {arm}" for arm in ARMS]
    assert (sixth["table"], printed["GPT-4o, text, 15 days"], printed["GPT-4o, charts, 5 days"]) == (6, "6.47", "8.21")
    arm = {"table": 6, "row": "arena, offline, both, 10 days", "figures": document["ours"][-2]["figures"]}
    assert document["ours"][-1] == arm
    ours = {one["row"]: one["figures"] for one in document["ours"] if one["table"] == 4}
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
    text = run(*asked, *short).out
    words = " ".join(text.split())
    assert "rows of Tables 4 and 6 are of another window" in words and "GPT" not in text
    # Stocks that are not of the CSI have no printed rows, and rules alone no row of Tables 6 and 8.
    assert "Table 6:" not in text and "Table 8: our trend" in text and "Table 8: two" not in text
    assert [line.split()[0] for line in text.splitlines()[2:6]] == ["Buy", "SMA", "ZMR", "MACD"]
    assert all(f"{name}: not trained: pip install 'paperdesk[rl]'" in words for name in LEARNED)
    late = run(*asked, "--from", "2024-10-01", "--to", "2024-11-15")
    assert (late.code, late.err.count("\n")) == (65, 1) and "with --from and --to" in late.err
    half = run(*asked, "--from", "2024-10-01")
    assert half.code == 2 and "a window needs two ends" in half.err
    foreign = run(*asked, "--repeats", "3")
    assert foreign.code == 2 and "leave out --repeats" in foreign.err


def test_two_stocks_are_played_with_every_input_and_window_and_stand_beside_their_trend(
    run: Run, fresh: Path, tmp_path: Path
) -> None:
    closes = prices(tmp_path, CSI[:2], date(2024, 1, 8))
    window = ("--from", "2024-01-02", "--to", "2024-01-08")
    asked = ("bench", "arena", "--data", str(tmp_path), "--symbols", ",".join(CSI[:2]), *window)
    document = run(*asked, "--models", "offline", "--ablations", "--json").json
    agent = [f"arena, offline{words}" for words in ("", ", without charts", ", without reflection")]
    rows = {number: [one for one in document["ours"] if one["table"] == number] for number in (4, 6, 8)}
    assert [one["row"] for one in rows[4]] == ["Buy & Hold", "SMA", "ZMR", "MACD", *agent]
    assert [one["row"] for one in rows[6]] == [f"arena, offline, {arm}" for arm in ARMS]
    # Of another window: no printed rows of Table 6. The stocks of Table 8 are not named, its rows are printed.
    assert [(one["table"], len(one["rows"])) for one in document["tables"]] == [(6, 0), (8, 6)]
    changes = [
        100 * (of[-1] / of[0] - 1) for of in ([p for day, p in of if day >= date(2024, 1, 2)] for of in closes.values())
    ]
    trend = {"Average": fmean(changes), "Min": min(changes), "Max": max(changes)}
    assert [one["row"] for one in rows[8]] == agent
    for of_table_4, one in zip(rows[4][4:], rows[8], strict=True):
        figures = trend | {name: of_table_4["figures"][name] for name in ("TR", "SR")}
        assert one["figures"] == pytest.approx(figures)
    # Each run keeps its own preset, shows its agent that much, and decides the same again.
    other_arms = [one for one in rows[6] if not one["row"].endswith("both, 10 days")]
    for run_id, row in zip(document["runs"][3:], other_arms, strict=True):
        kept = run("report", "--run", run_id, "--format", "json").json
        portfolio = json.loads(kept["settings"]["preset_text"])["portfolio"]
        assert row["row"] == f"arena, offline, {portfolio['input']}, {portfolio['window']} days"
    with JournalReader(places.run_journal(document["runs"][3])) as reader:
        answers = reader.answers(run=document["runs"][3])
    assert all("closes of the last 5 sessions" in one.messages[0].text and not one.charts for one in answers)
    again = run("why", CSI[0], "2024-01-05", "--run", document["runs"][3], "--redecide", "--json").json
    assert again["same_throughout"]
    # Another kind of agent has no such inputs, and is left without the steps that it has.
    document = run(*asked, "--preset", "finvision", "--models", "offline", "--ablations", "--json").json
    assert {one["row"] for one in document["ours"] if one["table"] in (6, 8)} == {
        *("finvision, offline", "finvision, offline, without charts")
    }
    assert not any("arms of Table 6" in note for note in document["notes"])
    # What a model was asked and left open is told by model, over all of its runs.
    (used,) = document["models"]
    kept = [run("report", "--run", one, "--format", "json").json["model"] for one in document["runs"]]
    assert used["spec"] == "offline" and used["calls"] == sum(one["calls"] for one in kept) > 0
    assert (used["cost"], used["abstentions"], used["refusals"]) == ("0", 0, 0)
    text = " ".join(run(*asked).out.split())
    assert "Table 8: two CSI stocks" in text and "GPT4o, falling paper -5.86 -13.77 -0.21 -0.50 -0.021" in text


def test_the_paper_s_csi_stocks_have_its_year_and_stand_beside_its_rows(run: Run, fresh: Path, tmp_path: Path) -> None:
    prices(tmp_path, CSI, date(2024, 12, 31))
    asked = ("bench", "arena", "--data", str(tmp_path), "--symbols", ",".join(CSI), "--baselines", "--json")
    document = run(*asked).json
    assert (document["first_session"], document["last_session"]) == ("2024-01-02", "2024-12-31")
    assert document["printed"]["rows"][0]["figures"]["TR"] == "0.73"
    # Table 6 is of NASDAQ.
    assert [(one["table"], one["rows"]) for one in document["tables"]] == [(6, [])]


def test_a_window_of_sma_that_the_bars_do_not_reach_for_is_null(run: Run, fresh: Path, tmp_path: Path) -> None:
    prices(tmp_path)
    asked = ("bench", "arena", "--data", str(tmp_path), "--symbols", "AAPL,AMZN", "--baselines", "--json")
    # Eight bars up to the first session of the validation, then none before the test.
    some = run(*asked, "--from", "2024-06-14", "--to", "2024-06-28").json
    assert [name for name, figure in some["validation"]["TR"].items() if figure is not None] == ["5"]
    assert some["validation"]["window"] == 5 and "window of 10, 15, 20 sessions." in " ".join(some["notes"])
    none = run(*asked, "--from", "2024-05-01", "--to", "2024-06-28").json
    assert none["validation"]["window"] is None and "its row is left out" in " ".join(none["notes"])
    assert [one["row"] for one in none["ours"]] == ["Buy & Hold", "ZMR", "MACD"]
    assert "SMA 5 is" not in run(*asked[:-1], "--from", "2024-05-01", "--to", "2024-06-28").out


@pytest.mark.slow
@pytest.mark.skipif(find_spec("stable_baselines3") is None, reason="the extra rl is not installed")
def test_learned_rows_stand_beside_the_rules(
    run: Run, fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.app.bench.learned.SEEDS", 2)
    prices(tmp_path)
    asked = ("bench", "arena", "--data", str(tmp_path), "--baselines", "--symbols", "AAPL,TSLA", "--json")
    document = run(*asked, "--from", "2024-10-01", "--to", "2024-10-09").json
    rows = [one["row"] for one in document["ours"]]
    assert rows[4:] == [row for name in LEARNED for row in (name, f"{name}, permuted")]
    assert all(one["figures"]["TR"] is not None for one in document["ours"])
    assert sum("buy and hold of that exposure" in note for note in document["notes"]) == 6
