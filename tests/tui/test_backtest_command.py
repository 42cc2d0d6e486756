"""`paperdesk backtest`, `paperdesk report`: from the command line to exit codes, JSON and files."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from engine.market.trading_hours import exchange_calendar
from tui.cli import main
from tui.shell.interruption import interruptible

REPO = Path(__file__).resolve().parents[2]
WINDOW = ("--from", "2024-03-04", "--to", "2024-03-28")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two symbols over XNYS sessions: UP rises by one a day, SAW goes up and down."""
    made = tmp_path_factory.mktemp("data")
    (made / "prices").mkdir()
    sessions = exchange_calendar().sessions(date(2024, 1, 2), date(2024, 4, 5))
    for symbol in ("UP", "SAW"):
        rows = ["date,open,high,low,close,adj_close,volume"]
        for number, day in enumerate(sessions):
            close = 100 + (number if symbol == "UP" else 5 * (number % 4))
            rows.append(f"{day},{close - 0.5},{close + 1},{close - 1},{close},{close},1000000")
        (made / "prices" / f"{symbol}.csv").write_text("\n".join(rows) + "\n")
    return made


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert isinstance(ended.value.code, int)
    return ended.value.code


def backtest(folder: Path, *arguments: str) -> int:
    return run("backtest", "--data", str(folder), *arguments)


def document(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    return found


def assert_books_add_up(made: dict[str, Any]) -> None:
    assert made["sessions"] == len(made["equity"]) > 0
    for point in made["equity"]:
        held = sum(Fraction(one["quantity"]) * Fraction(one["price"]) for one in point["positions"].values())
        assert abs(Fraction(point["cash"]) + held - Fraction(point["value"])) <= Fraction(1, 100)


def test_buying_and_holding_what_rises_by_one_a_day(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = backtest(folder, "--symbols", "up,UP,up", *WINDOW, "--strategy", "buy-and-hold", "--slippage", "0", "--json")
    said = capsys.readouterr()
    made = document(said.out)
    assert code == 0
    assert said.err == ""
    sessions = exchange_calendar().sessions(date(2024, 3, 4), date(2024, 3, 28))
    before = len(exchange_calendar().sessions(date(2024, 1, 2), date(2024, 3, 1)))
    opened, closed = Decimal(100 + before) - Decimal("0.5"), Decimal(100 + before + len(sessions) - 1)
    assert (made["strategy"], made["symbols"], made["sessions"]) == ("buy-and-hold", ["UP"], len(sessions))
    assert [trade["side"] for trade in made["trades"]] == ["BUY"]
    assert Decimal(made["trades"][0]["price"]) == opened
    assert float(made["final_value"]) == pytest.approx(float(100_000 * closed / opened), abs=0.02)
    assert made["metrics"]["max_drawdown"] == 0
    assert made["metrics"]["win_rate"] == 1
    assert made["metrics"]["excess_return"] == 0
    assert set(made["baselines"]) >= {"buy-and-hold", "equal-weight", "random", "cash"}
    assert made["baselines"]["cash"]["final_value"] == "100000.00"
    assert_books_add_up(made)


def test_agents_leave_a_journal_that_reports_can_be_made_of(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert backtest(folder, "--symbols", "UP,SAW", *WINDOW, "--run", "mine", "--json") == 0
    printed = capsys.readouterr().out
    made = document(printed)
    assert made["label"] == "rules, not a language model"
    assert len(made["decisions"]) == 2 * made["sessions"]
    assert made["decisions"][0]["session"] == "2024-03-01"  # read before the first session of filling
    assert made["model"]["calls"] > 0
    assert_books_add_up(made)

    assert run("report", "--json") == 0
    assert capsys.readouterr().out == printed
    page, tables = tmp_path / "report.html", tmp_path / "tables"
    assert run("report", "--run", "mine", "--out", str(page)) == 0
    assert "rules, not a language model" in page.read_text(encoding="utf-8")
    assert run("report", "--format", "csv", "--out", str(tables)) == 0
    capsys.readouterr()
    rows = list(csv.DictReader(io.StringIO((tables / "equity.csv").read_text())))
    assert [row["value"] for row in rows] == [point["value"] for point in made["equity"]]
    assert run("report", "--run", "mine") == 0
    assert "Backtest mine" in capsys.readouterr().out


def test_the_same_run_has_the_same_fingerprint_and_an_ablation_another_name(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prints, days = [], ("--from", "2024-03-04", "--to", "2024-03-11")
    for _ in range(2):
        assert backtest(folder, "--symbols", "UP,SAW", *days, "--json") == 0
        prints.append(document(capsys.readouterr().out))
    assert prints[0]["run"] != prints[1]["run"]
    assert prints[0]["fingerprint"] == prints[1]["fingerprint"]
    assert backtest(folder, "--symbols", "UP", *days, "--without", "chart, reflections", "--json") == 0
    assert document(capsys.readouterr().out)["settings"]["without"] == ["chart", "reflections"]


def test_the_summary_names_who_decided_and_what_to_do_next(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert backtest(folder, "--symbols", "UP,SAW", *WINDOW[:3], "2024-03-13", "--run", "mine") == 0
    said = capsys.readouterr()
    assert "rules, not a language model" in said.out
    assert "paper money" in said.out
    assert "paperdesk report --run mine" in said.out
    assert "no file of corporate actions for UP, SAW" in " ".join(said.out.split())
    for baseline in ("buy-and-hold", "equal-weight", "macd", "kdj-rsi", "z-score", "random", "cash"):
        assert f"\n{baseline} " in said.out
    assert "\x1b" not in said.out
    assert said.err == ""  # nobody watches, so there is no progress
    assert max(len(line) for line in said.out.splitlines() if "Journal" not in line) <= 100


def test_a_run_of_a_baseline_is_one_row(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert backtest(folder, "--symbols", "UP,SAW", *WINDOW[:3], "2024-03-13", "--strategy", "macd") == 0
    assert capsys.readouterr().out.count("\nmacd ") == 1


def test_without_flags_it_is_the_demo(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("backtest", "--strategy", "macd", "--json") == 0
    made = document(capsys.readouterr().out)
    assert made["settings"]["data"].startswith("demo market")
    assert len(made["symbols"]) > 1
    assert_books_add_up(made)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--preset", "finvision", "--strategy", "macd"], 2, "give one of them"),
        (["--param", "fast=6"], 2, "--strategy"),
        (["--strategy", "macd", "--param", "fast"], 2, "KEY=VALUE"),
        (["--strategy", "macd", "--param", "fst=6"], 2, "did you mean fast"),
        (["--strategy", "mcad"], 2, "did you mean macd"),
        (["--strategy", "macd", "--model", "offline"], 2, "--model"),
        (["--preset", "finvison"], 2, "did you mean finvision"),
        (["--without", "chrt"], 2, "did you mean chart"),
        (["--convention", "finagnt"], 2, "did you mean finagent"),
        (["--from", "2024-02-30"], 2, "2024-02-30"),
        (["--from", "2024-03-28", "--to", "2024-03-04"], 2, "after"),
        (["--from", "2024-03-09", "--to", "2024-03-10"], 2, "no session"),
        (["--to", "2099-01-04"], 2, "future"),
        (["--warm-up-from", "2024-03-11"], 2, "before"),
        (["--cash", "0"], 2, "above zero"),
        (["--cash", "1e26"], 2, "at most"),
        (["--cash", "much"], 2, "much"),
        (["--commission", "-0.1"], 2, "below zero"),
        (["--symbols", " , "], 2, "no symbol"),
        (["--fnord"], 2, "--fnord"),
        (["--symbols", "GONE"], 65, "GONE"),
        (["--data", "/nowhere/at/all"], 65, "/nowhere/at/all"),
        (["--from", "2024-03-04", "--to", "2024-05-03"], 65, "2024-04-05"),
    ],
)
def test_what_cannot_mean_a_run_is_said_in_one_line(
    arguments: list[str],
    code: int,
    said: str,
    folder: Path,
    paperdesk_home: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert backtest(folder, "--symbols", "UP", *WINDOW, *arguments) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert said in printed.err
    assert printed.err.count("\n") == 1
    assert not list(paperdesk_home.rglob("runs/*.db"))


def test_a_run_is_not_written_over(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--symbols", "UP", *WINDOW, "--strategy", "cash", "--run", "mine")
    assert backtest(folder, *arguments) == 0
    capsys.readouterr()
    assert backtest(folder, *arguments) == 2
    assert "this run already exists" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 65, "run `paperdesk backtest`"),
        (["--run", "nope"], 65, "no run nope"),
        (["--format", "pdf"], 2, "pdf"),
        (["--format", "html", "--table", "trades"], 2, "--table"),
        (["--json", "--format", "csv"], 2, "--json"),
        (["--out", "report.pdf"], 2, ".pdf"),
        (["--out", "report"], 2, "html, json, csv or sharpebench"),
        (["--format", "md"], 2, "is not one of"),
    ],
)
def test_what_cannot_be_reported(
    arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("report", *arguments) == code
    printed = capsys.readouterr()
    assert said in printed.err
    assert printed.err.count("\n") == 1


def test_a_report_that_cannot_be_written(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert backtest(folder, "--symbols", "UP", *WINDOW, "--strategy", "cash") == 0
    assert run("report", "--out", str(tmp_path / "no" / "such" / "x.html")) == 65
    assert "--out" in capsys.readouterr().err


def test_help_shows_examples(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("backtest", "report"):
        assert run(command, "--help") == 0
        assert f"paperdesk {command}" in capsys.readouterr().out.split("Examples:")[1]


def test_the_first_ctrl_c_asks_and_the_second_ends() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), interruptible() as stop:
        assert not stop()
        signal.raise_signal(signal.SIGINT)
        assert stop()
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C cannot be sent to one process there")
def test_an_interrupted_run_keeps_what_was_done(paperdesk_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = "import sys; from tui.cli import main; main(sys.argv[1:])"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "backtest", "--run", "cut", "--json"],
        cwd=REPO,
        env=os.environ | {"PAPERDESK_HOME": str(paperdesk_home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        journal = paperdesk_home / "data" / "runs" / "cut.db"
        until = time.monotonic() + 600
        while not journal.exists() and process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=600)
    finally:
        process.kill()
    assert process.returncode == 130, err
    made = document(out)
    assert made["interrupted"] is True
    assert err.splitlines()[-1].startswith("paperdesk: interrupted")
    assert run("report", "--run", "cut", "--json") == 0
    assert capsys.readouterr().out == out


def test_real_prices_by_a_papers_convention(real_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """AMZN held for FinVision's 145 sessions, against a reckoning from the file itself."""
    window = ("--from", "2023-06-01", "--to", "2023-12-29")
    flags = ("--symbols", "AMZN", *window, "--strategy", "buy-and-hold", "--convention", "finvision", "--json")
    assert backtest(real_data, *flags) == 0
    made = document(capsys.readouterr().out)
    with (real_data / "prices" / "AMZN.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if "2023-06-01" <= row["date"] <= "2023-12-29"][:145]
    closes = [float(row["adj_close"]) for row in rows]
    assert (made["sessions"], made["last_session"]) == (145, rows[-1]["date"])
    assert made["metrics"]["ARR"] == pytest.approx(100 * (closes[-1] / closes[0] - 1) * 252 / 144, abs=1e-6)
    assert_books_add_up(made)


def test_real_prices_with_agents_add_up(real_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    window = ("--from", "2023-11-01", "--to", "2023-11-07", "--warm-up-from", "2023-10-27")
    assert backtest(real_data, "--symbols", "AAPL,MSFT", *window, "--json") == 0
    made = document(capsys.readouterr().out)
    assert_books_add_up(made)
    assert made["warm_up"]["last_session"] == "2023-10-31"
    assert made["equity"][0]["session"] == "2023-11-01"
    assert {decision["action"] for decision in made["decisions"]} <= {"BUY", "SELL", "HOLD", "ABSTAIN"}
