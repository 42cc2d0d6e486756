"""The library: the same runs as the command's, as DataFrames; side by side, in a running loop, interrupted."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import paperdesk
from engine.settings import places
from engine.strategies.strategy import StrategyView, number
from paperdesk.results import Run
from tests.long_cases import first_of
from tests.tui.real_terminal import REPO
from tui.cli import main

AGENTS: dict[str, Any] = {
    "symbols": ["ORVL", "WRNN-USD"],
    "start": "2025-02-03",
    "end": date(2025, 2, 14),
    "warm_up": "2025-01-27",
    "preset": "finvision",
    "slippage_bp": 7,
    "commission": 0.001,
    "cash": 50_000,
    "seed": 3,
}
FLAGS = (
    *("--symbols", "ORVL,WRNN-USD", "--from", "2025-02-03", "--to", "2025-02-14", "--warm-up-from", "2025-01-27"),
    *("--preset", "finvision", "--slippage", "7", "--commission", "0.001", "--cash", "50000", "--seed", "3"),
)
RULE: dict[str, Any] = {"symbols": "ORVL,BXWD", "start": "2025-01-02", "end": "2025-03-31", "strategy": "macd"}


def command(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """The document of a command."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main((*arguments, "--json"))
    assert ended.value.code == 0
    return json.loads(capsys.readouterr().out)


def amounts(frame: pd.DataFrame, column: str) -> list[float]:
    assert frame[column].dtype == "float64"
    return list(frame[column])


def test_a_run_is_the_commands_and_its_frames_are_its_document(capsys: pytest.CaptureFixture[str]) -> None:
    ours = paperdesk.backtest(**AGENTS)
    theirs = command(capsys, "backtest", *FLAGS)
    assert ours.document["fingerprint"] == theirs["fingerprint"]
    assert {**ours.document, "run": None} == {**theirs, "run": None}
    assert command(capsys, "report", "--run", ours.run) == ours.document
    assert ours.metrics == theirs["metrics"]

    equity = ours.equity
    assert str(equity.index.dtype) == "datetime64[ns]" and equity.index.name == "session"
    assert [f"{session:%Y-%m-%d}" for session in equity.index] == [point["session"] for point in theirs["equity"]]
    for column in ("value", "cash"):
        assert amounts(equity, column) == [float(point[column]) for point in theirs["equity"]]
    assert equity["exposure"].mean() == pytest.approx(theirs["metrics"]["exposure"])
    assert -equity["drawdown"].min() == pytest.approx(theirs["metrics"]["max_drawdown"])

    for frame, rows in ((ours.trades, theirs["trades"]), (ours.decisions, theirs["decisions"])):
        assert list(frame.columns) == list(rows[0]) and len(frame) == len(rows)
        assert [f"{session:%Y-%m-%d}" for session in frame["session"]] == [row["session"] for row in rows]
        for column in frame.columns.drop("session"):
            said = [row[column] for row in rows]
            if column in ("quantity", "price", "fee"):
                assert amounts(frame, column) == [float(cell) for cell in said]
            else:
                assert frame[column].astype(object).where(frame[column].notna(), None).tolist() == said

    assert list(ours.baselines.index) == list(theirs["baselines"])
    assert ours.baselines.loc["macd", "sharpe"] == theirs["baselines"]["macd"]["metrics"]["sharpe"]
    assert ours.baselines.loc["macd", "final_value"] == float(theirs["baselines"]["macd"]["final_value"])


def test_a_run_is_loaded_listed_explained_drawn_and_reported(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    made = paperdesk.backtest(**{**AGENTS, "end": "2025-02-05"})
    with pytest.raises(paperdesk.UsageError, match="commission"):  # its run is there, and has no result
        paperdesk.backtest(symbols=["ORVL"], start="2025-02-03", end="2025-02-05", strategy="macd", commission=2)
    assert paperdesk.load(made.run).document == paperdesk.load().document == made.document
    listed = paperdesk.runs().set_index("id").loc[made.run]
    assert (listed["name"], listed["first"]) == ("finvision", pd.Timestamp("2025-02-03"))

    decision = made.decisions.iloc[-1]
    trail = made.why(decision["symbol"], decision["session"])
    assert trail == command(capsys, "why", decision["symbol"], f"{decision['session']:%Y-%m-%d}", "--run", made.run)
    assert str(trail).splitlines()[0].startswith(decision["symbol"])
    with pytest.raises(paperdesk.MissingData, match=r"2025-02-04"):
        made.why("ORVL", "2025-06-30")

    figure = made.plot()
    assert figure._repr_png_()[:4] == b"\x89PNG" and len(figure.axes) == 2
    assert len(figure.axes[0].lines) == 1 + len(made.baselines)
    assert json.loads(made.report(tmp_path / "run.json").read_text()) == made.document
    assert made.report(tmp_path / "run.html").read_text().startswith("<!doctype html>")
    assert len(made.report(tmp_path / "run.csv").read_text().splitlines()) == 1 + len(made.equity)
    with pytest.raises(paperdesk.UsageError, match=r"\.html, \.json, \.csv"):
        made.report(tmp_path / "run.pdf")
    assert "Sharpe" in made._repr_html_() and made.run in repr(made)


def test_calls_work_side_by_side_and_in_a_running_loop() -> None:
    once = paperdesk.backtest(**RULE).document["fingerprint"]
    with ThreadPoolExecutor(3) as threads:
        runs = [one.result() for one in [threads.submit(paperdesk.backtest, **RULE) for _ in range(3)]]
    assert {run.document["fingerprint"] for run in runs} == {once}
    assert len({run.run for run in runs}) == 3

    async def notebook() -> list[Run]:
        blocking = [paperdesk.backtest(**RULE) for _ in range(2)]
        return [*blocking, *await asyncio.gather(*(paperdesk.aio.backtest(**RULE) for _ in range(2)))]

    assert {run.document["fingerprint"] for run in asyncio.run(notebook())} == {once}


@dataclass
class Half:
    """A strategy of this module: it is no file's that the program has loaded."""

    share: float = number(0.5, "share of the value", 0.1, 0.9)
    asked: int = field(default=0, init=False)

    def weights(self, view: StrategyView) -> dict[str, float]:
        self.asked += 1
        return {symbol: self.share / len(view.symbols) for symbol in view.symbols}


def half(view: StrategyView) -> dict[str, float]:
    return {symbol: 0.5 / len(view.symbols) for symbol in view.symbols}


class Broken:
    def weights(self, view: StrategyView) -> dict[str, float]:
        raise RuntimeError(f"no idea of {view.session}")


class Spying:
    def weights(self, view: StrategyView) -> None:
        (places.config_file()).read_bytes()


def test_an_own_class_and_an_own_function_are_strategies() -> None:
    run = paperdesk.backtest(**{**RULE, "strategy": Half})
    assert run.document["strategy"] == "<Half>" and len(run.trades) > 2
    assert run.document["settings"]["code"] is None and any("FILE.py:NAME" in note for note in run.document["notes"])
    with_function = paperdesk.backtest(**{**RULE, "strategy": half})
    assert list(with_function.equity["value"]) == list(run.equity["value"])
    less = paperdesk.backtest(**{**RULE, "strategy": Half}, params={"share": 0.2})
    assert less.equity["exposure"].iloc[-1] < run.equity["exposure"].iloc[-1]
    with pytest.raises(paperdesk.UsageError, match="weights"):
        paperdesk.backtest(**{**RULE, "strategy": dict})
    for subject in ({**RULE, "strategy": Half}, {"run": run.run}):
        with pytest.raises(paperdesk.UsageError, match=r"FILE\.py:NAME"):
            paperdesk.audit(**subject)


def test_own_code_that_fails_is_named_by_its_line_and_sees_no_file_of_ours() -> None:
    places.write_whole(places.config_file(), "")
    for strategy, error in ((Broken, "RuntimeError"), (Spying, "PermissionError")):
        with pytest.raises(paperdesk.MalformedData, match=rf"{Path(__file__).name}:\d+: {error}"):
            paperdesk.backtest(**{**RULE, "strategy": strategy})
    assert places.config_file().read_bytes() == b""


def test_frames_are_data_and_are_checked_as_a_file_is(capsys: pytest.CaptureFixture[str]) -> None:
    days = pd.bdate_range("2024-01-02", "2024-06-28")
    days = days[~days.isin(pd.to_datetime(["2024-01-15", "2024-02-19", "2024-03-29", "2024-05-27", "2024-06-19"]))]
    close = pd.Series(range(len(days)), index=days) * 0.25 + 100
    bars = pd.DataFrame({"Open": close, "High": close + 1, "Low": close - 1, "Close": close, "Volume": 1000})
    window = {"start": "2024-03-01", "end": "2024-06-28", "strategy": "buy-and-hold"}
    run = paperdesk.backtest(data={"AAA": bars, "BBB": bars.tz_localize("America/New_York")}, **window)
    assert run.document["symbols"] == ["AAA", "BBB"]
    assert run.document["closes"]["AAA"][-1] == f"{close.iloc[-1]:.2f}"

    again = paperdesk.backtest(data={"AAA": bars, "BBB": bars.tz_localize("America/New_York")}, **window)
    assert again.document["fingerprint"] == run.document["fingerprint"]
    assert paperdesk.audit(run=run.run, cuts=2)["same"] is True

    folder = Path(run.document["settings"]["data"])
    assert (
        paperdesk.backtest(data=folder, symbols=["AAA", "BBB"], **window).document["fingerprint"]
        == run.document["fingerprint"]
    )

    wrong = bars.assign(High=bars["Low"] - 1)
    with pytest.raises(paperdesk.MalformedData, match=r"^data\['AAA'\] as CSV: .*line 2: "):
        paperdesk.backtest(data={"AAA": wrong}, **window)
    with pytest.raises(paperdesk.MissingData, match=r"^data\['AAA'\] as CSV has no column of open; "):
        paperdesk.backtest(data={"AAA": bars.drop(columns="Open")}, **window)
    for frames in ({}, {"AAA": close}, {"../AAA": bars}, {"AAA": bars, "aaa": bars}):
        with pytest.raises(paperdesk.UsageError, match=r"data|symbol"):
            paperdesk.backtest(data=frames, **window)
    coins = bars.set_axis(pd.date_range("2024-01-02", periods=len(bars)))
    pair = paperdesk.backtest(data={"BTC/USD": coins}, **{**window, "start": "2024-03-01", "end": "2024-04-30"})
    assert pair.document["symbols"] == ["BTC-USD"]

    command(capsys, "runs", "prune", again.run, "--yes")
    assert folder.is_dir(), "another run has read it"
    command(capsys, "runs", "prune", "--keep", "0", "--yes")
    assert not folder.exists() and not [*folder.parent.iterdir()]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"start": "2025-03-31", "end": "2025-01-02"}, "start 2025-03-31 is after end 2025-01-02"),
        ({"end": None}, "start and end"),
        ({"start": "yesterday"}, "YYYY-MM-DD"),
        ({"start": 20250102}, "YYYY-MM-DD"),
        ({"start": pd.NaT}, "YYYY-MM-DD"),
        ({"data": pd.DataFrame()}, "symbol: DataFrame"),
        ({"data": {"AAA": [1]}}, "AAA"),
        ({"cash": "much"}, "cash"),
        ({"strategy": "macdd"}, "did you mean macd"),
        ({"params": {"fasd": 3}}, "fast"),
        ({"preset": "desk"}, "preset"),
        ({"model": "openai:gpt-5-mini"}, "model"),
        ({"window": 3}, "'window'; it takes symbols, start"),
        ({"symbols": 5}, "symbols: 5 is not symbols such as"),
        ({"symbols": [5]}, "symbols"),
        ({"params": [1]}, "params: \\[1\\] is not parameters by name"),
        ({"seed": True}, "whole number"),
        ({"strategy": 3}, "a class or a function"),
    ],
)
def test_what_cannot_be_a_run_is_an_error_of_ours(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(paperdesk.UsageError, match=said) as error:
        paperdesk.backtest(**{**RULE, **arguments})
    assert "--" not in str(error.value) and "\n" not in str(error.value)
    assert paperdesk.runs().empty


def test_every_call_refuses_arguments_that_it_does_not_take_and_the_package_shows_its_calls() -> None:
    for call in (
        lambda: paperdesk.load(5),
        lambda: paperdesk.study("grid.toml", jobs="two"),
        lambda: paperdesk.tune(**RULE, test=("2025-04-01",)),
        lambda: paperdesk.audit("macd"),
        lambda: paperdesk.open_desk(7),
        lambda: paperdesk.audit(**RULE, cuts=0),
        lambda: paperdesk.tune(**RULE, jobs=0),
        lambda: paperdesk.tune(**RULE, folds=-1),
        lambda: paperdesk.tune(symbols="ORVL"),
        lambda: paperdesk.compare(repeats=2),
        lambda: paperdesk.compare(models="offline,nobody:x"),
        lambda: asyncio.run(paperdesk.aio.backtest(window=3)),
    ):
        with pytest.raises(paperdesk.UsageError):
            call()
    assert set(dir(paperdesk)) == set(paperdesk.__all__)


def test_a_model_that_costs_too_much_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    monkeypatch.setenv("PAPERDESK_BUDGET__ASK_ABOVE", "0")
    with pytest.raises(paperdesk.UsageError, match=r"budget\.ask_above"):
        paperdesk.backtest(**AGENTS, model="openai:gpt-5-mini")


def test_an_audit_and_a_search_are_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    window = {"symbols": "ORVL", "start": "2025-01-02", "end": "2025-02-28"}
    flags = ("--symbols", "ORVL", "--from", "2025-01-02", "--to", "2025-02-28")
    certificate = paperdesk.audit(**window, strategy="macd", cuts=2)
    assert certificate == command(capsys, "audit", *flags, "--strategy", "macd", "--cuts", "2")
    assert certificate["verdict"] == "clean"
    found = paperdesk.tune(strategy="macd", **window, trials=4, seed=1)
    assert found == command(capsys, "tune", "macd", *flags, "--trials", "4", "--seed", "1")


def test_a_desk_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    command(capsys, "next", "3")
    desk = paperdesk.open_desk()
    status = command(capsys, "status")
    assert desk.name == status["desk"] and desk.status.loc[0, "value"] == float(status["value"])
    held = command(capsys, "positions")["positions"]
    assert list(desk.positions.index) == list(held)
    assert amounts(desk.positions, "quantity") == [float(one["quantity"]) for one in held.values()]
    for table, frame in (("orders", desk.orders), ("decisions", desk.decisions), ("equity", desk.equity.reset_index())):
        rows = command(capsys, table)[table]
        assert [f"{session:%Y-%m-%d}" for session in frame["session"]] == [row["session"] for row in rows]


AUDITS = """
import pandas as pd
import paperdesk

days = pd.bdate_range("2024-04-01", "2024-05-24")
bars = pd.DataFrame({"open": 100, "high": 101, "low": 99, "close": 100, "volume": 1000}, index=days)
window = {"start": "2024-05-01", "end": "2024-05-24", "strategy": "buy-and-hold"}
print(paperdesk.audit(data={"AAA": bars}, cuts=1, **window)["verdict"])
"""
STUDIES = """
from pathlib import Path

import paperdesk

Path("grid.toml").write_text(
    '[study]\\nstrategies = ["macd", "cash"]\\nsymbols = ["ORVL"]\\nwindows = [["2025-01-02", "2025-01-31"]]'
)
print(len(paperdesk.study("grid.toml", jobs=2).rows.dropna(subset="fingerprint")))
"""


@pytest.mark.parametrize(("calls", "prints"), first_of(1, [(STUDIES, "2"), (AUDITS, "clean")]), ids=["study", "audit"])
def test_a_script_whose_calls_begin_processes_is_run_once(tmp_path: Path, calls: str, prints: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(calls, encoding="utf-8")
    environ = {**os.environ, "PAPERDESK_HOME": str(tmp_path), "PYTHONPATH": str(REPO)}
    done = subprocess.run(
        [sys.executable, str(script)], env=environ, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == [prints], done.stderr


INTERRUPTED = """
import os, signal
import paperdesk
from engine.app.research import backtest as use_case
play = use_case.run_backtest

def run_backtest(services, spec, publish, stop):
    def heard(event):
        publish(event)
        if type(event).__name__ == "SessionOpened" and event.session.isoformat() == "2025-01-08":
            os.kill(os.getpid(), signal.SIGINT)
            while not stop():
                pass
    return play(services, spec, heard, stop)

use_case.run_backtest = run_backtest
try:
    paperdesk.backtest(symbols="ORVL", start="2025-01-02", end="2025-03-31", preset="finvision")
except paperdesk.Interrupted as error:
    run = paperdesk.load()
    assert repr(run.run) in str(error) and run.document["interrupted"]
    print(run.document["last_session"], len(run.equity))
"""


STOPPED = """
import os, signal
import paperdesk
from engine.app.audit.subjects import AgentSubject
from paperdesk.threads import stop_requested
whole, played = AgentSubject.whole, []

async def pressed(self):
    os.kill(os.getpid(), signal.SIGINT)
    while not stop_requested():
        pass
    result = await whole(self)
    played.append(len(self.test.equity))
    return result

def weights(view):
    played.append(view.session)
    os.kill(os.getpid(), signal.SIGINT)
    while not stop_requested():
        pass

AgentSubject.whole = pressed
window = {"symbols": "ORVL", "start": "2025-01-02", "end": "2025-03-31"}
for call in (lambda: paperdesk.audit(preset="finvision", **window),
             lambda: paperdesk.backtest(strategy=weights, **window)):
    try:
        call()
    except paperdesk.Interrupted:
        print(played.pop(), len(played))
"""


def test_ctrl_c_stops_an_audit_and_a_strategy_before_the_next_session(tmp_path: Path) -> None:
    environ = {**os.environ, "PAPERDESK_HOME": str(tmp_path), "PYTHONPATH": str(REPO)}
    done = subprocess.run(
        [sys.executable, "-c", STOPPED], env=environ, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["0", "0", "2024-12-31", "0"], done.stderr


def test_ctrl_c_stops_after_a_session_and_keeps_what_was_done(tmp_path: Path) -> None:
    environ = {**os.environ, "PAPERDESK_HOME": str(tmp_path), "PYTHONPATH": str(REPO)}
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], env=environ, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["2025-01-10", "6"], done.stderr  # its orders fill in the next session


def test_a_cancelled_task_ends_when_its_work_has(caplog: pytest.LogCaptureFixture) -> None:
    async def cancelled() -> None:
        task = asyncio.ensure_future(paperdesk.aio.backtest(**{**AGENTS, "end": "2025-06-30"}))
        while not list(places.runs_dir().glob("*.db")):
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert paperdesk.load().document["interrupted"]
    gc.collect()
    assert not caplog.records, "the error that the work ended with was heard"
