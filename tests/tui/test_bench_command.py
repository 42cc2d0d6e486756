"""`paperdesk bench`: published rows from the command line."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from engine.app.bench import bench as bench_module
from engine.domain.model_call import Usage
from engine.domain.run import ModelUse
from engine.lab.published_tables import PublishedTable, published
from engine.reports.comparison import AgentRow, Spread, agent_cells
from engine.reports.documents.research import Bench
from tui.cli import main
from tui.text.bench_text import lines

FINAGENT = ("AAPL", "AMZN", "GOOGL", "MSFT", "TSLA")


@pytest.fixture
def one_month(monkeypatch: pytest.MonkeyPatch) -> None:
    """The papers' tables over the first month of their tests, after one month of training."""

    def shortened(table: PublishedTable) -> PublishedTable:
        month = timedelta(days=31)
        return replace(table, last=table.first + month, warm_up_from=table.first - month)

    monkeypatch.setattr(bench_module, "published", lambda name: tuple(map(shortened, published(name))))


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert isinstance(ended.value.code, int)
    return ended.value.code


def cells(text: str) -> list[dict[str, Any]]:
    document = json.loads(text)
    assert document["schema"] == 1
    found: list[dict[str, Any]] = document["cells"]
    return found


@pytest.mark.parametrize("symbols", [("AMZN",), pytest.param(FINAGENT, marks=pytest.mark.slow)])
def test_finagents_rules_come_out_within_three_in_a_thousand(
    real_data: Path, capsys: pytest.CaptureFixture[str], symbols: tuple[str, ...]
) -> None:
    flags = ("--baselines", "--symbols", ",".join(symbols), "--data", str(real_data), "--json")
    assert run("bench", "finagent", *flags) == 0
    found = [c for c in cells(capsys.readouterr().out) if c["table"] == "FinAgent Table 6"]
    models = {name: [c for c in found if c.get("model") == name] for name in {c.get("model") for c in found}}
    assert all(c["ours"] is None for name in ("LSTM", "PPO", "SAC", "FinGPT") for c in models[name])
    assert all("paperdesk[rl]" in c["note"] for c in models["PPO"]) and "rl]" not in models["FinGPT"][0]["note"]
    for c in models["LGBM"]:
        assert c["paper"] is not None and (c["ours"] == c["median"] or c["metric"] != "SR")
        assert c["repeats"] == 5 and c["low"] <= c["ours"] <= c["high"] and "buy and hold of that exposure" in c["note"]
    assert all("held nearly always" in c["note"] for c in models["LGBM"] if c["symbol"] == "AMZN")
    assert all(c["ours"] is not None and c["paper"] is None for c in models["LGBM, permuted"])
    table = [c for c in found if "strategy" in c]
    assert len(table) == len(symbols) * 4 * 6
    for cell in table:
        assert set(cell) == {"table", "symbol", "strategy", "metric", "ours", "paper", "rel_diff", "note"}
        if cell["metric"] != "VOL":
            assert abs(cell["rel_diff"]) < 0.003, cell
            assert cell["rel_diff"] == pytest.approx((cell["ours"] - cell["paper"]) / abs(cell["paper"]))
        if cell["strategy"] == "buy-and-hold" and cell["symbol"] in ("AMZN", "GOOGL", "TSLA"):
            assert round(cell["ours"], 4) == pytest.approx(cell["paper"], abs=1e-9), cell


def test_the_rows_of_a_table_are_tested_together(real_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("bench", "finvision", "--baselines", "--data", str(real_data), "--json") == 0
    families = json.loads(capsys.readouterr().out)["families"]
    assert [one["symbol"] for one in families] == ["AAPL", "MSFT", "AMZN"]
    for one in families:
        assert [row["row"] for row in one["rows"]] == ["kdj-rsi", "macd"] and one["trials"] == 3
        for row in one["rows"]:
            assert 0 < row["p"] <= row["adjusted"] <= 1 and row["deflated_sharpe"] < row["psr"]
            assert row["discovery"] is False, "no rule beats holding these shares in 2023"
        assert one["superior"] >= min(row["p"] for row in one["rows"])
    assert run("bench", "finvision", "--baselines", "--data", str(real_data)) == 0
    assert "among all" in capsys.readouterr().out


def test_investorbench_comes_out_to_the_printed_digit(real_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("bench", "investorbench", "--baselines", "--data", str(real_data), "--json") == 0
    by_symbol: dict[str, list[dict[str, Any]]] = {}
    out = capsys.readouterr().out
    ends = {one["symbol"]: one["rows"]["buy-and-hold"][-1] for one in json.loads(out)["curves"]}
    for cell in (one for one in cells(out) if "strategy" in one):
        by_symbol.setdefault(cell["symbol"], []).append(cell)
    for symbol in ("MSFT", "JNJ", "UVV", "HON", "TSLA", "BTC-USD"):
        assert [c["metric"] for c in by_symbol[symbol]] == ["CR", "SR", "AV", "MDD"]
        assert all(abs(c["ours"] - c["paper"]) < 0.001 for c in by_symbol[symbol]), symbol
        assert 100 * ends[symbol] == pytest.approx(by_symbol[symbol][0]["ours"])
    # SPY's adjusted closes are blank and its dividends not in the folder: the table's own data has them.
    spy = {c["metric"]: c for c in by_symbol["SPY"]}
    assert all(abs(spy[metric]["ours"] - spy[metric]["paper"]) < 0.001 for metric in ("CR", "MDD"))
    assert spy["AV"]["ours"] == pytest.approx(46.20, abs=0.01) and "does not name the ETF" in spy["AV"]["note"]
    assert all("missing days" in c["note"] for c in by_symbol["ETH-USD"])


def test_a_symbol_or_window_that_the_folder_lacks_leaves_its_cells_empty(
    real_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "prices").mkdir()
    shutil.copy(real_data / "prices" / "AMZN.csv", tmp_path / "prices")
    rows = (real_data / "prices" / "TSLA.csv").read_text().splitlines()
    short = [rows[0], *(row for row in rows[1:] if row < "2023-03")]
    (tmp_path / "prices" / "TSLA.csv").write_text("\n".join(short) + "\n")
    assert run("bench", "finagent", "--baselines", "--data", str(tmp_path), "--json") == 0
    found = [c for c in cells(capsys.readouterr().out) if "strategy" in c]
    assert all(c["ours"] is not None for c in found if c["symbol"] == "AMZN")
    lacking = [c for c in found if c["symbol"] != "AMZN"]
    assert lacking and all(c["ours"] is None and c["rel_diff"] is None for c in lacking)
    assert all("AAPL" in c["note"] for c in lacking if c["symbol"] == "AAPL")
    assert all("its bars end on 2023-02-28" in c["note"] for c in lacking if c["symbol"] == "TSLA")


def test_text_sets_a_row_of_ours_above_the_printed_one(real_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("bench", "finagent", "--baselines", "--symbols", "amzn,ETH-USD", "--data", str(real_data)) == 0
    out = capsys.readouterr().out
    assert "FinAgent Table 6" in out and "AAPL" not in out
    lines = [line.split() for line in out.splitlines()]
    kept = next(n for n, line in enumerate(lines) if line[:3] == ["buy-and-hold", "ours", "42.3337"])
    assert lines[kept + 1][:2] == ["paper", "42.3337"] and lines[kept + 2][:2] == ["difference", "+0.000%"]
    off = next(n for n, line in enumerate(lines) if line[:2] == ["paper", "29.2588"])
    assert "ours" in lines[off - 1] and lines[off - 1][-1].startswith("[1]")
    assert lines[off + 1][:2] == ["difference", "-11.042%"]
    assert "[1] rests on prices of another source" in out
    # What is printed of models stays beside the rules, and ours above it where it was trained.
    assert ["FinGPT", "paper", "42.9331"] in [line[:3] for line in lines]
    printed = next(n for n, line in enumerate(lines) if line[:2] == ["paper", "29.3395"])
    assert [line[0] for line in lines[printed - 3 : printed]] == ["low", "median", "high"]
    assert "\x1b" not in out


@pytest.mark.usefixtures("one_month")
def test_finvisions_agents_run_beside_the_papers_rows(real_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ("--ablations", "--symbols", "AMZN", "--model", "offline", "--data", str(real_data), "--json")
    assert run("bench", "finvision", *flags) == 0
    document = json.loads(capsys.readouterr().out)
    ours = [c for c in document["cells"] if c.get("answered_by")]
    assert [(c["model"], c["metric"]) for c in ours] == [
        (row, metric) for row in ("FinVision", "FinVision w/o reflection") for metric in ("ARR", "SR", "MDD")
    ]
    assert all(isinstance(c["ours"], float) and isinstance(c["paper"], float) for c in ours)
    assert all(c["answered_by"] == "offline" and "not a language model" in c["note"] for c in ours)
    assert [c["ours"] for c in ours[:3]] != [c["ours"] for c in ours[3:]]
    rules = {c["strategy"] for c in document["cells"] if "strategy" in c}
    assert rules == {"buy-and-hold", "macd", "kdj-rsi"}
    alone = {c["model"] for c in document["cells"] if c.get("answered_by", 1) is None}
    assert alone == {"PPO", "DQN", "FinAgent"}
    assert document["runs"] == [] and document["interrupted"] is None
    assert [use["spec"] for use in document["models"]] == ["offline"] and document["models"][0]["calls"] > 100


@pytest.mark.usefixtures("one_month")
def test_the_etfs_agent_is_measured_by_its_decisions(real_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ("--symbols", "SPY", "--data", str(real_data))
    assert run("bench", "investorbench", *flags, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    ours = [c for c in document["cells"] if c.get("answered_by") == "offline"]
    assert [(c["model"], c["metric"], c["paper"]) for c in ours] == [("offline", m, None) for m in METRICS]
    assert all("no news of SPY" in c["note"] for c in ours)
    groups = {(a["group"], a["of"]) for a in document["averages"]}
    assert ("proprietary", "paper") in groups and ("open source, large", "paper") in groups
    proprietary = next(a for a in document["averages"] if a["group"] == "proprietary" and a["metric"] == "CR")
    assert proprietary["mean"] == pytest.approx(12.108, abs=0.001)


METRICS = ("CR", "SR", "AV", "MDD")


@pytest.mark.usefixtures("one_month")
def test_text_of_agents_fits_80_and_120_columns(
    real_data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:

    shown: list[Any] = []
    monkeypatch.setattr("tui.text.bench_text.lines", lambda *given: shown.append(given) or ())
    assert run("bench", "finvision", "--symbols", "AAPL", "--repeats", "2", "--data", str(real_data)) == 0
    ((bench, _, agents, families),) = shown
    for width in (80, 120):
        out = "\n".join(lines(bench, width, agents, families))
        assert max(map(len, out.splitlines())) <= width
        row = next(n for n, line in enumerate(out.splitlines()) if line.startswith("FinVision (offline)"))
        beside = out.splitlines()[row + 1]
        assert "paper" in beside and beside.split()[-3:] == ["14.79", "1.20", "14.38"]
        assert "rules, not a language model" in out and out.count("were run once") == 1


def test_ctrl_c_prints_what_is_done_and_ends_with_130(
    real_data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import os
    import signal

    from engine.app.bench import jobs

    play = jobs.play_job

    def pressed(*arguments: Any, stop: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return play(*arguments, stop)

    monkeypatch.setattr(jobs, "play_job", pressed)
    assert run("bench", "finvision", "--symbols", "AMZN", "--data", str(real_data), "--json") == 130
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert document["interrupted"].startswith(
        "interrupted: 0 of 1 rows are done; `paperdesk bench finvision --resume bench-"
    )
    assert "interrupted: 0 of 1 rows are done" in captured.err
    # The rules were done before it.
    assert any(c["ours"] is not None for c in document["cells"])


def test_a_paid_model_is_forecast_and_asked_about_only_at_a_terminal(
    real_data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "of-no-use")
    ran: list[object] = []

    def no_run(services: Any, prepared: Any, *rest: Any, **more: Any) -> Any:
        from engine.reports.documents.research import Bench

        ran.append(prepared)
        return Bench(name=prepared.request.name, cells=())

    monkeypatch.setattr("engine.app.bench.bench.run_bench", no_run)
    flags = ("bench", "finvision", "--symbols", "AMZN", "--models", "openai:gpt-5.4-mini", "--data", str(real_data))
    assert run(*flags) == 2
    assert not ran
    err = capsys.readouterr().err
    assert "Forecast for 1 run," in err and "openai:gpt-5.4-mini: about" in err and "$" in err
    monkeypatch.setattr("tui.shell.cost_confirmation.asks", lambda: True)
    monkeypatch.setattr("click.confirm", lambda *a, **k: False)
    assert run(*flags) == 0
    assert not ran and "nothing was run" in capsys.readouterr().err
    assert run(*flags, "--yes") == 0
    assert len(ran) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("finagent", "--baselines"), 65, "--data DIR"),
        (("finvision",), 65, "--data DIR"),
        (("finagent", "--baselines", "--data", "no/such/folder"), 65, "no data folder no/such/folder"),
        (("finagent",), 65, "--data DIR"),
        (("finagent", "--models", "offlin", "--data", "."), 2, "offlin"),
        (("finagent", "--models", ",", "--data", "."), 2, "--models names no model"),
        (("finagent", "--models", "openai:gpt-5.5", "--data", "."), 77, "OPENAI_API_KEY"),
        (("finagent", "--repeats", "0", "--data", "."), 2, "--repeats"),
        (("finagant", "--baselines"), 2, "unknown bench finagant"),
        (("finagent", "--baselines", "--symbols", "NVDA", "--data", "."), 2, "have no NVDA"),
        (("finagent", "--baselines", "--data", "."), 65, "no row of ours can be had"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    arguments: tuple[str, ...],
    code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("bench", *arguments) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err and captured.err.count("\n") == 1


HOLDER = """
from collections.abc import Mapping

class Holder:
    def weights(self, view) -> Mapping[str, float]:
        return dict.fromkeys(view.symbols, 1.0)
"""


def test_an_own_preset_and_an_own_strategy_run_in_a_papers_environment(
    real_data: Path, tmp_path: Path, one_month: None, capsys: pytest.CaptureFixture[str]
) -> None:
    preset, strategy = tmp_path / "mine.toml", tmp_path / "holder.py"
    preset.write_text('extends = "finmem"\nname = "mine"\n', encoding="utf-8")
    strategy.write_text(HOLDER, encoding="utf-8")
    own = ("--preset", str(preset), "--strategy", f"{strategy}:Holder", "--symbols", "MSFT,JNJ")
    assert run("bench", "investorbench", *own, "--data", str(real_data), "--json") == 0
    document = json.loads(capsys.readouterr().out)
    ours = [cell for cell in document["cells"] if cell["ours"] is not None and cell.get("model")]
    rows = {(cell["model"], cell["symbol"]) for cell in ours}
    assert rows == {(name, s) for name in ("offline, mine", "Holder", "buy-and-hold") for s in ("MSFT", "JNJ")}
    figures = {(c["model"], c["symbol"], c["metric"]): c["ours"] for c in ours}
    for symbol in ("MSFT", "JNJ"):
        assert figures["Holder", symbol, "CR"] == pytest.approx(figures["buy-and-hold", symbol, "CR"])
    pairs = {(pair["row"], pair["other"]): pair for pair in document["pairs"]}
    assert len(pairs) == 3
    same = pairs["Holder (rules)", "buy-and-hold (rules)"]
    assert (same["value"], same["distinguishable"]) == (pytest.approx(0.0), False)
    assert same["symbols"] == ["MSFT", "JNJ"] and same["sessions"] > 15
    for pair in pairs.values():
        assert pair["low"] <= pair["value"] <= pair["high"]


def test_an_own_agent_joins_the_arena_on_real_prices(
    real_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    strategy = tmp_path / "holder.py"
    strategy.write_text(HOLDER.replace("1.0)", "1 / len(view.symbols))"), encoding="utf-8")
    window = ("--symbols", "AAPL,MSFT", "--from", "2023-09-05", "--to", "2023-09-29", "--data", str(real_data))
    code = run("bench", "arena", "--strategy", f"{strategy}:Holder", "--preset", "arena", *window, "--yes", "--json")
    document = json.loads(capsys.readouterr().out)
    assert code == 0
    rows = [row["row"] for row in document["ours"]]
    assert "Holder" in rows and "arena, offline" in rows
    namesake = HOLDER.replace("Holder", "MACD").replace("1.0)", "1 / len(view.symbols))")
    (tmp_path / "macd.py").write_text(namesake, encoding="utf-8")
    own = f"{tmp_path / 'macd.py'}:MACD"
    assert run("bench", "arena", "--strategy", own, *window, "--json") == 0
    rows = [row["row"] for row in json.loads(capsys.readouterr().out)["ours"]]
    assert {"MACD", own} <= set(rows), "the rule's row stays beside one of the same name"


def test_an_unknown_own_row_is_one_line(real_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for own, hint in (
        (("--preset", "finmen"), "did you mean finmem?"),
        (("--strategy", "macdd"), "did you mean macd?"),
    ):
        assert run("bench", "investorbench", *own, "--symbols", "MSFT", "--data", str(real_data)) == 2
        said = capsys.readouterr()
        assert said.err.count("\n") == 1 and hint in said.err


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
    assert "openai:gpt-5.4-mini: 1,200 calls (200 recorded), 3 without an answer" in text
    assert "2,000,000 tokens in, 150,000 out" in " ".join(text.split()) and "$2.1" in text
    assert "; 2 refused; 7 figures" in " ".join(text.split())
    assert "a note" in text and "bench-1" in text
    # Only cells that the paper prints are counted; of ours, one ratio is undefined.
    printed = sum(len(t.cells) for t in published("finagent")[1:]) // 6 - 4 * 6
    assert f"{printed} cells:" in text
