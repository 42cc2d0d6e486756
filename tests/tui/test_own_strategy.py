"""`--strategy FILE:CLASS`: whatever is wrong with a file of one's own is one line with the right exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tui.cli import main

HEAD = """
from dataclasses import dataclass, field
from engine.strategies.strategy import number
"""
HOLD = (
    HEAD
    + """
@dataclass
class Hold:
    share: float = number(0.5, "share of each symbol", 0.1, 0.9)
    asked: int = field(default=0, init=False)

    def weights(self, view):
        self.asked += 1
        return {symbol: self.share / len(view.symbols) for symbol in view.symbols}

@dataclass
class Fails:
    def weights(self, view):
        return self._bars(view)

    def _bars(self, view):
        return {"ORVL": 1 / 0}

@dataclass
class Learns:
    def fit(self, history):
        raise RuntimeError("no\\nidea")

    def weights(self, view):
        return None

class Signals:
    def signals(self, history):
        return [0.5] * len(history)

class NotANumber:
    def weights(self, view):
        return {"ORVL": float("nan")}

class OneNumber:
    def weights(self, view):
        return 0.5

class Unseeing:
    def weights(self):
        return None

@dataclass
class Listed:
    names: list = None

    def weights(self, view):
        return None

class Nothing:
    pass

VALUE = 3
"""
)
WINDOW = ("--symbols", "ORVL", "--from", "2025-01-02", "--to", "2025-01-31", "--warm-up-from", "2024-12-02")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PAPERDESK_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(HOLD)
    (tmp_path / "broken.py").write_text("x = 1\nimport nothing_of_the_kind\n")
    (tmp_path / "syntax.py").write_text("x = 1\nclass Broken(:\n")
    return tmp_path


@pytest.mark.parametrize("command", [("backtest",), ("audit", "--cuts", "1")])
@pytest.mark.parametrize(
    ("strategy", "code", "says"),
    [
        ("none.py:Hold", 2, "none.py:Hold: file not found: {folder}/none.py"),
        ("own.py", 2, "own.py: not of the form FILE.py:NAME"),
        ("own.py:Absent", 2, "own.py:Absent: the file defines no Absent"),
        ("own.py:Nothing", 2, "not a strategy, which is a class with weights(view) or signals(history)"),
        ("own.py:VALUE", 2, "own.py:VALUE: not a strategy"),
        ("own.py:Listed", 2, "the field names is neither int, float nor str with a default"),
        ("broken.py:X", 65, "{folder}/broken.py:2: ModuleNotFoundError: No module named 'nothing_of_the_kind'"),
        ("syntax.py:X", 65, "{folder}/syntax.py:2: SyntaxError: invalid syntax"),
        ("own.py:Fails", 65, "{folder}/own.py:20: ZeroDivisionError: division by zero"),
        ("own.py:Learns", 65, "{folder}/own.py:25: RuntimeError: no idea"),
        ("own.py:NotANumber", 65, "strategy NotANumber: its weights after 2024-11-29 are invalid: {{'ORVL': nan}}"),
        ("own.py:OneNumber", 65, "strategy OneNumber: its weights after 2024-11-29 are invalid: 0.5 is not a mapping"),
        ("own.py:Unseeing", 65, "{folder}/own.py: TypeError: "),
        ("own.py:Signals", 65, "signals has to return one whole number from -1 to 3 for each of the"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_line(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    command: tuple[str, ...],
    strategy: str,
    code: int,
    says: str,
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*command, "--strategy", strategy, *WINDOW])

    said = capsys.readouterr().err
    assert ended.value.code == code, said
    assert says.format(folder=folder) in said
    assert said.count("\n") == 1 and said.startswith("paperdesk: ")


PRESSED = """
import os, signal
from pathlib import Path

class Pressed:
    def weights(self, view):
        asked = Path("asked.txt")
        asked.write_text((asked.read_text() if asked.exists() else "") + f"{view.session}\\n")
        if len(asked.read_text().split()) == 3:
            os.kill(os.getpid(), signal.SIGINT)
"""


def test_ctrl_c_ends_a_strategy_after_its_session_and_the_run_goes_on(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "own.py").write_text(PRESSED)
    for arguments, code in ((("--strategy", "own.py:Pressed", *WINDOW), 130), (("--resume",), 0)):
        run = [one.stem for one in folder.glob("home/data/runs/*.db")]
        with pytest.raises(SystemExit) as ended:
            main(["backtest", *arguments, *run])
        assert ended.value.code == code, capsys.readouterr().err
        asked = (folder / "asked.txt").read_text().split()
        assert len(asked) == 3 if code else len(asked) > 20


@pytest.mark.parametrize(
    ("param", "says"),
    [
        ("shre=0.3", "has no parameter shre (did you mean share?); it takes share"),
        ("share=0.95", "share must lie between 0.1 and 0.9"),
        ("asked=3", "has no parameter asked"),
    ],
)
def test_parameters_are_checked_as_those_of_a_rule(
    folder: Path, capsys: pytest.CaptureFixture[str], param: str, says: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["backtest", "--strategy", "own.py:Hold", "--param", param, *WINDOW])

    assert ended.value.code == 2
    assert says in capsys.readouterr().err


FITTED = (
    HEAD
    + """
from engine.strategies.strategy import StrategyView, TrainingHistory

@dataclass
class Fitted:
    share: float = number(0.5, "share of each symbol", 0.1, 0.9)
    trained: object = field(default=None, init=False)

    def fit(self, history):
        self.trained = history.last
        with open("trained.txt", "a") as file:
            print(history.first, history.last, file=file)

    def weights(self, view):
        assert self.trained is not None
        return {symbol: self.share for symbol in view.symbols}
"""
)


def test_a_search_fits_each_trial_before_its_window(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "fitted.py").write_text(FITTED)
    flags = ["--symbols", "ORVL", "--from", "2024-07-01", "--to", "2024-09-30", "--warm-up-from", "2024-01-02"]
    flags += ["--test-from", "2024-10-01", "--test-to", "2024-10-31", "--trials", "3"]

    with pytest.raises(SystemExit) as ended:
        main(["tune", "fitted.py:Fitted", *flags, "--json"])

    assert ended.value.code == 0, capsys.readouterr().err
    (tuned,) = json.loads(capsys.readouterr().out)["tuned"]
    assert 0.1 <= float(tuned["params"]["share"]) <= 0.9
    # In the window fitted on what is before it, in the test window on everything before that.
    assert set((folder / "trained.txt").read_text().splitlines()) == {"2024-01-02 2024-06-28", "2024-01-02 2024-09-30"}


def test_a_search_without_what_to_fit_on_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "fitted.py").write_text(FITTED)

    with pytest.raises(SystemExit) as ended:
        main(["tune", "fitted.py:Fitted", "--symbols", "ORVL", "--from", "2024-07-01", "--to", "2024-09-30"])

    assert ended.value.code == 2
    assert "is fitted before it trades: --warm-up-from names the first session" in capsys.readouterr().err
