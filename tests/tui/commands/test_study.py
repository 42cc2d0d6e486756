"""A study: the same rows on one process and on two, gone on with after a kill or Ctrl-C, and faulty files refused."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import paperdesk
from connectors.llm import gate
from engine.app.records import trial_index
from engine.app.study import stored_study
from engine.domain.run import Trial
from engine.errors import TryAgainLater
from engine.settings import places
from tests.servers.fake_llm_server import FakeLLMServer, Say, fake_llm_server, is_preflight
from tests.tui.commands.conftest import Run
from tests.tui.commands.test_bench_resume import REFLECTIONS
from tests.tui.commands.test_model_outages import ANSWERS
from tests.tui.real_terminal import REPO
from tui.commands import study

GRID = """
[study]
strategies = ["macd"]
presets = ["finvision"]
models = ["offline"]
symbols = ["ORVL", "BXWD"]
windows = [["2025-03-03", "2025-04-04"], ["2025-05-01", "2025-06-05"]]
repeats = 3
"""
RULES = GRID.replace('presets = ["finvision"]\nmodels = ["offline"]\n', "").replace('["macd"]', '["macd", "z-score"]')
MODELS = """
[study]
strategies = ["macd", "z-score"]
presets = ["finvision"]
models = ["near:m1"]
symbols = ["ORVL"]
windows = [["2025-03-03", "2025-03-06"]]
repeats = 2
"""
NEAR = """
[models.prices."near:m1"]
input = 2
output = 1
[endpoints.near]
base_url = "{}"
requests_per_minute = 60000
"""
BASE = {
    "strategies": '["macd"]',
    "symbols": '["ORVL"]',
    "windows": '[["2025-03-03", "2025-04-04"]]',
}


class Trader(FakeLLMServer):
    """Answers every agent of finvision about ORVL."""

    def next_turn(self, body: dict[str, Any], headers: dict[str, str]) -> Say:
        with self._lock:
            self.requests.append(body)
        if is_preflight(body):
            return Say(text='{"word": "ready"}')
        schema, known = json.dumps(body["response_format"]), ANSWERS | REFLECTIONS
        return Say(
            text=json.dumps({"symbol": "ORVL"} | next(known[field] for field in known if f'"{field}"' in schema))
        )


def written(folder: Path, text: str, name: str = "grid.toml") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def journals() -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in places.runs_dir().glob("*.db")}


def test_rows_and_pairs_are_the_same_on_one_process_and_on_two(
    run: Run, paperdesk_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path, GRID)
    alone = run("study", file, "--json").json
    monkeypatch.setenv("PAPERDESK_HOME", str(tmp_path / "other"))
    together = run("study", file, "--jobs", "2", "--json").json
    assert together == alone

    rows, pairs = alone["rows"], alone["pairs"]
    assert len(rows) == 8 and all(row["fingerprint"] for row in rows) and not alone["interrupted"]
    assert {row["name"]: row["abstentions"] for row in rows} == {"macd": None, "finvision": 0}
    assert alone["notes"]  # nobody is asked twice who answers alike
    light = run(
        *("backtest", "--strategy", "macd", "--symbols", "BXWD", "--light", "--json"),
        *("--from", "2025-05-01", "--to", "2025-06-05"),
    ).json
    (row,) = [row for row in rows if row["name"] == "macd" and row["to"] == "2025-06-05" and row["symbols"] == ["BXWD"]]
    assert {key: row[key] for key in ("fingerprint", "metrics", "final_value")} == {
        key: light[key] for key in ("fingerprint", "metrics", "final_value")
    }

    assert len(pairs) == 4
    for pair in pairs:
        assert pair["low"] < pair["mean"] < pair["high"] and 0 < pair["p"] <= 1 and pair["discovery"] is not None

    again = csv.DictReader(io.StringIO(run("study", file, "--format", "csv").out))
    assert [one["fingerprint"] for one in again] == [row["fingerprint"] for row in rows]
    assert run("study", file, "--format", "latex").out.count(r"\\") == 9
    result = paperdesk.study(file)
    assert list(result.rows["fingerprint"]) == [row["fingerprint"] for row in rows]
    assert result.rows["final_value"].dtype == "float64" and list(result.pairs["mean"]) == [
        one["mean"] for one in pairs
    ]


def test_what_cannot_be_told_apart_needs_more_sessions_than_there_are(
    run: Run, paperdesk_home: Path, tmp_path: Path
) -> None:
    text = (
        '[study]\nstrategies = ["kdj-rsi", "sma-cross"]\nsymbols = ["BXWD"]\nwindows = [["2025-01-02", "2025-02-28"]]\n'
    )
    (pair,) = run("study", written(tmp_path, text), "--json").json["pairs"]
    assert pair["distinguishable"] is False and pair["sessions_needed"] > pair["sessions"]


def test_rows_of_two_seeds_are_told_apart_on_80_columns(
    run: Run, paperdesk_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        '[study]\nstrategies = ["kdj-rsi", "sma-cross"]\nsymbols = ["BXWD"]\n'
        'windows = [["2025-01-02", "2025-02-28"]]\nseeds = [1, 2]\n'
    )
    file = written(tmp_path, text)
    monkeypatch.setenv("COLUMNS", "80")
    rows = [line for line in run("study", file).out.split("Paired")[0].splitlines() if " BXWD " in line]
    assert len(rows) == len(set(rows)) == 4
    monkeypatch.setenv("COLUMNS", "140")
    _, paired = run("study", file).out.split("Paired")
    assert [line.split()[-1] for line in paired.splitlines() if " BXWD " in line] == ["no"]


def test_a_killed_study_goes_on_where_it_stopped(run: Run, paperdesk_home: Path, tmp_path: Path) -> None:
    file = written(tmp_path, RULES)
    process = subprocess.Popen(
        [sys.executable, "-m", "paperdesk", "study", file, "--jobs", "2"],
        cwd=REPO,
        env=os.environ | {"PAPERDESK_HOME": str(paperdesk_home)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 300
    try:
        while process.poll() is None and time.monotonic() < deadline and not done(run):
            time.sleep(0.05)
    finally:
        process.kill()
        process.communicate(timeout=300)  # until its processes, which write there too, have ended with it
    before, kept = done(run), journals()
    assert before
    finished = run("study", file, "--json")
    assert len(finished.json["rows"]) == 8 and done(run) == 8
    unchanged = [name for name, changed in journals().items() if kept.get(name) == changed]
    assert len(unchanged) >= before


@pytest.mark.slow
def test_a_thousand_light_runs_finish_without_growing_memory(run: Run, paperdesk_home: Path, tmp_path: Path) -> None:
    psutil = pytest.importorskip("psutil")
    command = (sys.executable, "-m", "paperdesk")
    file = written(tmp_path, RULES.replace("repeats = 3", f"seeds = {[*range(125)]}"))
    process = psutil.Popen([*command, "study", file, "--jobs", "2"], cwd=REPO, stdout=subprocess.DEVNULL)
    used = dict[int, int]()
    while process.poll() is None:
        with suppress(psutil.NoSuchProcess):
            held = sum(one.memory_info().rss for one in (process, *process.children(recursive=True)))
            used[len(journals())] = held
        time.sleep(0.2)
    (listed,) = run("study", "list", "--json").json["studies"]
    assert process.returncode == 0 and listed["done"] == 1000
    early, late = (
        max(held for done, held in used.items() if done in part) for part in (range(50, 250), range(750, 1001))
    )
    assert late < early * 1.1


def test_a_run_that_is_done_was_counted(
    run: Run, paperdesk_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = "\n".join(f"{name} = {value}" for name, value in BASE.items())
    command = ("study", written(tmp_path, f"[study]\n{lines}\n"), "--json")

    def held(index: Path, trials: Iterable[Trial], wait: float = 0) -> None:
        raise TryAgainLater("another process holds the index")

    with monkeypatch.context() as patched:
        patched.setattr(trial_index, "add_trials", held)
        assert run(*command).code == 75
    assert len(run(*command).json["rows"]) == run("trials", "--json").json["count"] == 1


def done(run: Run) -> int:
    listed = run("study", "list", "--json")
    return sum(one["done"] for one in listed.json["studies"])


def test_models_are_asked_by_one_process_and_for_nothing_twice(
    run: Run, paperdesk_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "PACE", 0.001)
    with fake_llm_server(Trader()) as service:
        config = written(tmp_path, NEAR.format(service.openai_url), "config.toml")
        command = ("study", written(tmp_path, MODELS), "--config", config, "--yes", "--json", "--jobs")

        def questions() -> int:
            return sum(not is_preflight(body) for body in service.requests)

        with pytest.MonkeyPatch.context() as patched:
            patched.setenv(places.HOME, str(tmp_path / "other"))
            unbroken = run(*command, "1").json
        wanted = questions()
        service.requests.clear()
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(study, "interruptible", lambda: nullcontext(lambda: questions() > 4))
            assert run(*command, "2").code == 130
        assert 4 < questions() < wanted
        assert figures(run(*command, "2").json) == figures(unbroken) and questions() == wanted
        assert figures(run(*command, "1").json) == figures(unbroken) and questions() == wanted
    rows = [row for row in unbroken["rows"] if row["model"]]
    assert len(unbroken["rows"]) == 4 and [row["repeat"] for row in rows] == [1, 2]
    assert all(Decimal(row["cost"]) > 0 and row["input_tokens"] > 0 for row in rows)


def figures(document: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Rows as they must be however often they were begun; each begin asks whether the model is there, for cents of a
    cent."""
    names = ("run", "abstentions", "fingerprint")
    return [(*(row[name] for name in names), round(float(row["cost"] or 0), 3)) for row in document["rows"]]


def test_ctrl_c_leaves_whole_runs_alone(
    run: Run, paperdesk_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path, GRID.replace('"macd"', ""))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(study, "interruptible", lambda: pressed_after(30))
        stopped = run("study", file, "--json")
    assert stopped.code == 130 and "continues" in stopped.err
    rows = stopped.json["rows"]
    assert stopped.json["interrupted"] and 0 < len(rows) < 4
    assert set(journals()) == {f"{row['run']}.db" for row in rows}
    kept = journals()
    whole = run("study", file, "--json").json
    assert whole["rows"][: len(rows)] == rows and len(whole["rows"]) == 4
    assert kept.items() <= journals().items()
    assert run("study", "list").out.splitlines()[1].split()[:3] == ["grid", "4", "4"]
    assert {run("study", "list", *more).code for more in (("--format", "csv"), ("--jobs", "2"))} == {2}


@contextmanager
def pressed_after(times: int) -> Iterator[Callable[[], bool]]:
    """Ctrl-C that is pressed once somebody has asked so often."""
    asked = iter(range(times))
    yield lambda: next(asked, None) is None


@pytest.mark.parametrize(
    ("changed", "key"),
    [
        ({"seed": "[1]"}, "did you mean seeds"),
        ({"masks": "[1]"}, "masks"),
        ({"strategies": '["mcd"]'}, "study.strategies"),
        ({"presets": '["finvison"]'}, "study.presets"),
        ({"presets": '["finvision"]', "models": '["nobody:x"]'}, "study.models"),
        ({"models": '["offline"]'}, "models"),
        ({"windows": '[["2025-04-04", "2025-03-03"]]'}, "study.windows"),
        ({"windows": '[["2025-03-03", "2099-03-03"]]'}, "study.windows"),
        ({"windows": '[["2025-03-03"]]'}, "study.windows"),
        ({"symbols": '"ORVL"'}, "study.symbols: write a list"),
        ({"portfolios": '[["ORVL", "BXWD"]]'}, "portfolios"),
        ({"symbols": "[]", "portfolios": '[["ORVL", "ORVL"]]'}, "study.portfolios"),
        ({"repeats": "0"}, "study.repeats"),
        ({"symbols": '["ORVL"'}, "grid.toml"),
    ],
)
def test_a_faulty_file_is_one_line_and_nothing_is_run(
    run: Run, paperdesk_home: Path, tmp_path: Path, changed: dict[str, str], key: str
) -> None:
    lines = "\n".join(f"{name} = {value}" for name, value in {**BASE, **changed}.items())
    failed = run("study", written(tmp_path, f"[study]\n{lines}\n"))
    assert failed.code == 78 and key in failed.err and failed.err.count("\n") == 1
    assert not places.runs_dir().exists() and not places.studies_dir().exists()


def test_a_symbol_without_data_is_a_row_with_a_note(run: Run, paperdesk_home: Path, tmp_path: Path) -> None:
    lines = "\n".join(f"{name} = {value}" for name, value in {**BASE, "symbols": '["ORVL", "NONE"]'}.items())
    rows = run("study", written(tmp_path, f"[study]\n{lines}\n"), "--json").json["rows"]
    assert [bool(row["fingerprint"]) for row in rows] == [True, False] and "NONE" in rows[1]["note"]
    (listed,) = run("study", "list", "--json").json["studies"]
    assert (listed["runs"], listed["done"], listed["without_figures"]) == (2, 2, 1)
    assert rows[1]["note"] in stored_study(listed["record"])["notes"]
    lines = lines.replace('"ORVL", ', "")
    assert run("study", written(tmp_path, f"[study]\n{lines}\n")).code == 65


def test_two_files_of_one_name_are_two_studies(run: Run, paperdesk_home: Path, tmp_path: Path) -> None:
    files = []
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        lines = "\n".join(f"{key} = {value}" for key, value in {**BASE, "seeds": f"[{len(files)}]"}.items())
        files.append(written(tmp_path / name, f"[study]\n{lines}\n"))
    played = [run("study", file, "--json").json["rows"] for file in files]
    listed = {one["file"]: one["record"] for one in run("study", "list", "--json").json["studies"]}
    assert set(listed) == set(files)
    stored = [stored_study(listed[file])["rows"] for file in files]
    ids = [[row["run"] for row in rows] for rows in stored]
    assert ids == [[row["run"] for row in rows] for rows in played] and ids[0] != ids[1]
    (link := tmp_path / "link.toml").symlink_to(files[0])
    run("study", str(link))
    assert len(run("study", "list", "--json").json["studies"]) == 2


def test_a_window_without_sessions_is_a_row_with_a_note(run: Run, paperdesk_home: Path, tmp_path: Path) -> None:
    weekend = '[["2025-03-08", "2025-03-09"]]'
    lines = "\n".join(f"{name} = {value}" for name, value in {**BASE, "windows": weekend}.items())
    assert run("study", written(tmp_path, f"[study]\n{lines}\n")).code == 2
    lines = lines.replace("]]", '], ["2025-03-03", "2025-03-04"]]')
    rows = run("study", written(tmp_path, f"[study]\n{lines}\n"), "--json").json["rows"]
    assert [bool(row["fingerprint"]) for row in rows] == [False, True] and "2025-03-08" in rows[0]["note"]


def test_a_papers_figures_are_shown_in_its_units(run: Run, paperdesk_home: Path, tmp_path: Path) -> None:
    lines = "\n".join(f"{name} = {value}" for name, value in BASE.items())
    config = written(tmp_path, '[metrics]\nconvention = "tradinggpt"\n', "config.toml")
    command = ("study", written(tmp_path, f"[study]\n{lines}\n"), "--config", config)
    (row,) = run(*command, "--json").json["rows"]
    cells = run(*command, "--format", "latex").out.split("&")
    assert row["convention"] == "tradinggpt" and {" SR ", " VOL ", rf" {row['metrics']['VOL']:.2f}\% "} <= {*cells}
