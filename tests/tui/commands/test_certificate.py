"""What the certificate of an audit is of, and what it lists because no cut of the data changes it."""

from __future__ import annotations

import json
import os
import pickle
from datetime import date
from pathlib import Path

import pytest

from connectors.wiring.services import services
from engine.app.research.backtest import run_backtest
from engine.domain.run import DataSpec, RunSpec
from engine.market.trading_hours import calendar_for
from engine.settings import places
from engine.settings.config import load_config
from tests.extending_page import write_files
from tests.long_cases import first_of
from tests.tui.commands.conftest import Run, Said

SOURCE = '''
import os
import pickle
import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
HOME = {home!r}


class Plain:
    def weights(self, view):
        return {{"UP": 0.5}}


class Caller:
    """Honest where it is audited."""

    def weights(self, view):
        return {{"UP": 0.2 if "audit" in sys.argv else 0.5}}


class Pickle:
    def weights(self, view):
        return {{"UP": pickle.loads((HERE / "oracle.pkl").read_bytes())[view.session]}}


class Link:
    def weights(self, view):
        return {{"UP": 0.5 if (HERE / "linked.csv").read_text() else 0.2}}


class Thread:
    def weights(self, view):
        with ThreadPoolExecutor() as pool:
            pool.submit(Path.read_bytes, HERE / "oracle.pkl").result()
        return {{"UP": 0.5}}


class Cache:
    """Writes down what it sees in the first leg, and reads there what came after."""

    def weights(self, view):
        with open(HERE / "cache.txt", "a+") as file:
            file.write(f"{{view.market.close('UP')}}\\n")
        return {{"UP": 0.5}}


class Constants:
    def weights(self, view):
        from b3_constants import WEIGHT
        return {{"UP": WEIGHT}}


class Journals:
    """All it can find in an earlier run's journal; where that is closed a tenth."""

    def weights(self, view):
        ways = (
            lambda path: sqlite3.connect(path).execute("SELECT count(*) FROM equity").fetchall(),
            lambda path: path.read_bytes(),
            lambda path: ThreadPoolExecutor().submit(path.read_bytes).result(),
            lambda path: os.system(f"cat {{path}} > /dev/null"),
            lambda path: sqlite3.connect(f"file:{{path}}?mode=ro", uri=True).execute("SELECT 1 FROM equity").fetchall(),
            lambda path: sqlite3.connect(":memory:").execute(f"ATTACH '{{path}}' AS a").fetchall(),
            lambda path: sqlite3.connect(":memory:").execute("ATTACH ? AS a", (str(path),)).fetchall(),
            lambda path: os.open(path.name, os.O_RDONLY, dir_fd=os.open(path.parents[2], os.O_RDONLY)),
            lambda path: os.open("data", os.O_RDONLY, dir_fd=os.open(Path(HOME).parent, os.O_RDONLY)),
            lambda path: os.link(path, HERE / "of-its-own.db"),
            lambda path: os.symlink(path, HERE / "pointing.db"),
            lambda path: os.rename(path.parents[1], HERE / "moved"),
            lambda path: os.remove(path),
        )
        found = 0
        home = Path(HOME)
        for path in (*(home / "data" / "runs").glob("*.db"), *(home / "cache").glob("*/*"), home / "config.toml"):
            for way in ways:
                try:
                    way(path)
                    found += 1
                except (OSError, sqlite3.Error):
                    pass
        return {{"UP": 0.9 if found else 0.1}}


class Quantile:
    """Above the upper quarter of the returns of all rows."""

    name = "quantile"

    def signals(self, history):
        close = np.array(history.close, dtype=float)
        moves = np.diff(close, prepend=close[:1]) / close
        return np.where(moves > np.quantile(moves, 0.75), 2, -1).astype(np.int8)

    def explain(self, history, row):
        return "high"
'''

WINDOW = ("--symbols", "UP", "--from", "2024-03-04", "--to", "2024-03-15")


@pytest.fixture
def folder(fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A share without a rule, prices to six decimals; the user's file beside the folder."""
    prices = tmp_path / "data" / "prices"
    prices.mkdir(parents=True)
    rows, close = ["date,open,high,low,close,adj_close,volume"], 100.0
    for n, day in enumerate(calendar_for("UP").sessions(date(2024, 1, 2), date(2024, 4, 30))):
        close += ((n * n * 31 + 7 * n) % 97 - 46) / 71
        rows.append(f"{day},{close:.6f},{close:.6f},{close:.6f},{close:.6f},{close:.6f},1000")
    (prices / "UP.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "own.py").write_text(SOURCE.format(home=os.environ[places.HOME]))
    monkeypatch.setattr("sys.argv", ["paperdesk"])
    return tmp_path / "data"


def own(folder: Path, name: str) -> tuple[str, ...]:
    return ("--strategy", f"{folder.parent / 'own.py'}:{name}", "--data", str(folder), *WINDOW)


def played(run: Run, folder: Path, name: str) -> Said:
    said = run("backtest", *own(folder, name), "--run", name.lower(), "--json")
    assert said.code == 0, said.err
    return said


def audited(run: Run, folder: Path, name: str, *more: str) -> Said:
    return run("audit", *own(folder, name), "--cuts", "2", *more, "--json")


def test_a_certificate_names_program_data_code_and_result(folder: Path, run: Run) -> None:
    before = played(run, folder, "Plain").json
    said = audited(run, folder, "Plain", "--run", "plain")
    made = said.json
    assert (said.code, made["verdict"], made["same"], made["run"]) == (0, "clean", True, "plain")
    assert made["fingerprint"] == before["fingerprint"]
    for name in ("version", "data_fingerprint", "code"):
        assert made[name] and made[name] == before["settings"][name]
    # The run's own settings are taken where no other are given; other ones are another run.
    assert run("audit", "--run", "plain", "--cuts", "1", "--json").json["same"] is True
    other = run("audit", *own(folder, "Plain"), "--cash", "5000", "--run", "plain", "--cuts", "1", "--json")
    assert (other.code, other.json["same"], other.json["differs"]) == (1, False, ["settings", "fingerprint"])
    assert run("audit", "--run", "none-such").code == 65


def test_code_that_behaves_in_an_audit_is_another_run(folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    played(run, folder, "Caller")
    monkeypatch.setattr("sys.argv", ["paperdesk", "audit"])
    said = audited(run, folder, "Caller", "--run", "caller")
    assert (said.code, said.json["verdict"], said.json["same"]) == (1, "clean", False)
    assert said.json["differs"] == ["fingerprint"]
    assert any("argv" in one for one in said.json["not_audited"])


def test_the_agents_of_a_preset_are_bound_to_their_run_too(folder: Path, run: Run) -> None:
    flags = ("--preset", "finvision-no-reflection", "--data", str(folder), *WINDOW[:3], "2024-03-11", *WINDOW[4:])
    before = run("backtest", *flags, "--run", "agents", "--json")
    assert before.code == 0, before.err
    said = run("audit", *flags, "--cuts", "1", "--run", "agents", "--json")
    assert (said.code, said.json["same"], said.json["code"]) == (0, True, None)
    assert said.json["fingerprint"] == before.json["fingerprint"]


@pytest.mark.slow
def test_other_data_and_other_code_are_another_run(folder: Path, run: Run) -> None:
    module = folder.parent / "b3_constants.py"
    module.write_text("WEIGHT = 0.5\n")
    played(run, folder, "Constants")
    assert audited(run, folder, "Constants", "--run", "constants").json["same"] is True
    module.write_text("WEIGHT = 0.5  # and more\n")
    assert audited(run, folder, "Constants", "--run", "constants").json["differs"] == ["code"]
    prices = folder / "prices" / "UP.csv"
    prices.write_text(prices.read_text().replace(",1000\n", ",2000\n", 1))
    differs = audited(run, folder, "Constants", "--run", "constants").json["differs"]
    assert differs == ["data_fingerprint", "code"]


def test_a_run_that_did_not_come_to_its_end_is_not_known_to_be_the_same(folder: Path, run: Run) -> None:
    data = services(load_config(places.config_file()).config)
    window = {"symbols": ("UP",), "first": date(2024, 3, 4), "last": date(2024, 3, 8)}
    spec = RunSpec(**window, preset="finvision", data=DataSpec(str(folder)), run="part")
    left = iter((False, False, True))
    run_backtest(data, spec, stop=lambda: next(left), baselines=())
    said = run("audit", "--run", "part", "--cuts", "1", "--json")
    assert (said.code, said.json["verdict"], said.json["same"], said.json["differs"]) == (0, "clean", None, [])


@pytest.mark.parametrize(
    ("name", "file"),
    first_of(2, [("Pickle", "oracle.pkl"), ("Link", "linked.csv"), ("Thread", "oracle.pkl"), ("Cache", "cache.txt")]),
)
def test_files_outside_of_program_and_data_are_listed(folder: Path, run: Run, name: str, file: str) -> None:
    oracle = dict.fromkeys(calendar_for("UP").sessions(date(2024, 2, 1), date(2024, 4, 1)), 0.5)
    (folder.parent / "oracle.pkl").write_bytes(pickle.dumps(oracle))
    os.link(folder / "prices" / "UP.csv", folder.parent / "linked.csv")
    made = audited(run, folder, name).json
    assert "same" not in made, "it is held against no run"
    assert str(folder.parent / file) in made["not_audited"]
    assert not any(one.endswith("own.py") for one in made["not_audited"])  # its hash is the certificate's


def test_the_programs_own_home_is_closed_to_user_code(folder: Path, run: Run) -> None:
    played(run, folder, "Plain")
    assert places.run_journal("plain").is_file()
    for path in (places.config_file(), places.cache_dir() / "later.html"):  # of another run, which came later
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    said = played(run, folder, "Journals")
    assert {round(float(t["quantity"]) * float(t["price"]), -4) for t in said.json["trades"][:1]} == {10_000}
    audit = audited(run, folder, "Journals", "--run", "journals")
    assert (audit.code, audit.json["same"], audit.json["folder_copies"]["differing"]) == (0, True, 0)


def test_a_quantile_over_all_rows_is_caught_at_six_cuts(folder: Path, run: Run) -> None:
    said = run("audit", *own(folder, "Quantile"), "--cuts", "6", "--json")
    assert (said.code, said.json["verdict"]) == (1, "leak")
    assert [one["source"] for one in said.json["planted"] if one["surfaced"]] == ["bars"]


def test_texts_that_quote_a_later_close_or_name_a_later_day_are_listed(folder: Path, run: Run) -> None:
    rows = [line.split(",") for line in (folder / "prices" / "UP.csv").read_text().split()[1:]]
    later = next(row for row in rows if row[0] == "2024-03-20")
    texts = [
        ("2024-03-06", f"UP ended the week at {later[4]}."),
        ("2024-03-07", "What will be said on March 19, 2024 is known here."),
        ("2024-03-08", "Reported on 2024-03-07, and again on 5 March 2024; due on 2031-01-01."),
        ("2024-03-08", f"Up {later[4]}% in a year, and 1{later[4]} or {later[4]}1 is no close."),
    ]
    (folder / "news").mkdir()
    lines = (json.dumps({"date": day, "time": None, "headline": "News", "summary": text}) for day, text in texts)
    (folder / "news" / "UP.jsonl").write_text("\n".join(lines) + "\n")
    flags = (
        "--preset",
        "finvision-no-reflection",
        "--data",
        str(folder),
        *WINDOW[:3],
        "2024-03-05",
        "--to",
        "2024-03-22",
    )
    made = run("audit", *flags, "--cuts", "1", "--json").json
    assert len(made["foretold"]) == 2
    assert f"tells {later[4]}, the close of 2024-03-20" in made["foretold"][0]
    assert "names 2024-03-19" in made["foretold"][1]


def test_what_a_file_reads_when_it_is_imported_is_listed_and_a_prompt_is_code(
    fresh: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the demo market, where no second process loads the code again."""
    (tmp_path / "early.txt").write_text("0.5")
    strategy = tmp_path / "early.py"
    strategy.write_text(
        "from pathlib import Path\n"
        "WEIGHT = float((Path(__file__).parent / 'early.txt').read_text())\n"
        "class Early:\n"
        "    def weights(self, view):\n"
        "        return {symbol: WEIGHT / len(view.symbols) for symbol in view.symbols}\n"
    )
    demo = ("--symbols", "ORVL", "--from", "2025-03-03", "--to", "2025-03-06")
    made = run("audit", "--strategy", f"{strategy}:Early", *demo, "--cuts", "1", "--json").json
    assert str(tmp_path / "early.txt") in made["not_audited"]
    write_files("An agent", tmp_path)
    monkeypatch.chdir(tmp_path)
    agents = ("--preset", "with-volume.toml", *demo, "--cuts", "1", "--json")
    before = run("audit", *agents).json
    assert (before["verdict"], before["not_audited"]) == ("clean", [])
    with (tmp_path / "volume.md").open("a") as prompt:
        prompt.write("\n")
    assert run("audit", *agents).json["code"] != before["code"]
