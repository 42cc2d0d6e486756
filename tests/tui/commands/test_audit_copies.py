"""The legs of an audit on copies of the data folder: whoever opens the original is caught, in whatever way."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pandas
import pytest

from engine.app.audit import audit as audit_copies
from engine.app.audit.subjects import opened_files
from engine.market.trading_hours import calendar_for
from tests.tui.commands import audit_leaks
from tests.tui.commands.conftest import Run, Said

WINDOW = ("--symbols", "UP", "--from", "2024-03-04", "--to", "2024-03-15", "--cuts", "all")


@pytest.fixture
def folder(fresh: Path, tmp_path: Path) -> Path:
    """A share that goes up and down by no rule that can be seen."""
    prices = tmp_path / "data" / "prices"
    prices.mkdir(parents=True)
    rows, close = ["date,open,high,low,close,adj_close,volume"], 100
    for n, day in enumerate(calendar_for("UP").sessions(date(2024, 1, 2), date(2024, 3, 28))):
        opened, close = close, close + (1 if n * n % 7 in (1, 2) else -1)
        rows.append(f"{day},{opened},{max(opened, close) + 1},{min(opened, close) - 1},{close},{close},1000")
    (prices / "UP.csv").write_text("\n".join(rows) + "\n")
    return tmp_path / "data"


def audited(run: Run, folder: Path, name: str, source: str = audit_leaks.SOURCE) -> Said:
    file = folder.parent / f"{name.lower()}.py"
    file.write_text(source.format(file=str(folder / "prices" / "UP.csv"), folder=str(folder)))
    return run("audit", "--strategy", f"{file}:{name}", *WINDOW, "--data", str(folder), "--json")


def test_native_reading_is_seen_in_what_is_decided(folder: Path, run: Run) -> None:
    """No hook hears of it: the folder that it reads is the copy."""
    said = audited(run, folder, "Native")
    copies = said.json["folder_copies"]
    if not copies["hidden"]:
        pytest.skip("this system gives a process no mounts of its own")
    assert (said.code, said.json["verdict"], said.json["opened_files"]) == (1, "leak", [])
    assert said.json["truncation"]["differing"] == 0 < copies["differing"]
    assert any("decided otherwise on a copy of the folder cut at" in finding for finding in said.json["findings"])


def test_reading_before_the_first_decision_is_seen(folder: Path, run: Run) -> None:
    said = audited(run, folder, "AtImport", audit_leaks.AT_IMPORT)
    file = folder / "prices" / "UP.csv"
    assert (said.code, said.json["opened_files"]) == (1, [str(file)])
    assert said.json["findings"][0].startswith(f"{folder.parent / 'atimport.py'}:")
    assert said.json["findings"][0].endswith(f" opens {file}")


def test_where_the_folder_cannot_be_hidden_python_is_refused(
    folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_copies, "begin", audit_leaks.begin_without_mounts)
    said = audited(run, folder, "Python")
    assert said.code == 1 and said.json["opened_files"] == [str(folder / "prices" / "UP.csv")]
    copies = said.json["folder_copies"]
    assert not copies["hidden"] and copies["differing"] > 0
    assert "the data folder could not be hidden" in said.json["notes"][0]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Python", "Shell"])
def test_other_ways_of_reading_are_seen(folder: Path, run: Run, name: str) -> None:
    said = audited(run, folder, name)
    assert (said.code, said.json["verdict"]) == (1, "leak")


@pytest.mark.slow
def test_agents_decide_the_same_on_copies(folder: Path, run: Run) -> None:
    (folder / "news").mkdir()
    lines = ('{"date": "2024-03-05", "headline": "UP earns more"}', '{"date": "2024-03-20", "headline": "UP fails"}')
    (folder / "news" / "UP.jsonl").write_text("\n".join(lines))
    said = run("audit", "--preset", "finvision", *WINDOW, "--data", str(folder), "--json")
    made = said.json
    assert (said.code, made["folder_copies"]["differing"]) == (0, 0)
    assert made["folder_copies"]["compared"] == made["truncation"]["compared"] > 0
    demo = ("--symbols", "ORVL", "--from", "2025-02-03", "--to", "2025-02-05", "--cuts", "1")
    said = run("audit", "--strategy", "macd", *demo, "--json")
    assert (said.code, said.json["folder_copies"]) == (0, None)


@pytest.mark.slow
def test_stamps_before_the_release_are_flagged_and_do_not_count(folder: Path, run: Run) -> None:
    (folder / "news").mkdir()
    (folder / "filings").mkdir()
    news = [
        {
            "date": "2024-03-05",
            "time": "14:00:00",
            "created": "2024-03-12T14:00:00Z",
            "headline": "stamped a week early",
        },
        {"date": "2024-03-06", "published": "2024-03-13", "headline": "dated a week early"},
        {"date": "2024-03-06", "time": "14:00:00", "created": "2024-03-06T14:00:30Z", "headline": "at once"},
        {"date": "2024-03-06", "created": "2024-03-07T02:00:00Z", "headline": "in the evening of New York"},
    ]
    filings = [{"date": "2024-03-06", "accepted": "2024-03-13T21:00:00Z", "form": "8-K", "summary": "Dated early."}]
    (folder / "news" / "UP.jsonl").write_text("\n".join(map(json.dumps, news)))
    (folder / "filings" / "UP.jsonl").write_text("\n".join(map(json.dumps, filings)))
    flags = ("--preset", "finvision-no-reflection", "--symbols", "UP", "--from", "2024-03-07", "--to", "2024-03-12")
    said = run("audit", *flags, "--cuts", "1", "--data", str(folder), "--json")
    assert [line.partition(": ")[0] for line in said.json["stamped_early"]] == [
        "news/UP.jsonl, line 1",
        "news/UP.jsonl, line 2",
        "filings/UP.jsonl, line 1",
    ]
    assert "stamped 2024-03-05 14:00:00+00:00, released 2024-03-12 14:00:00+00:00" in said.json["stamped_early"][0]
    read = {one["source"]: one["items"] for one in said.json["inputs"]}
    assert (said.code, read["news"], read["filings"]) == (0, 2, 0)
    assert "texts with a stamp before their release" in run("audit", *flags, "--cuts", "1", "--data", str(folder)).out


WAYS: dict[str, Callable[[Path], object]] = {
    "open": lambda file: open(file).close(),  # noqa: PTH123
    "os.open": lambda file: os.close(os.open(file, os.O_RDONLY)),
    "pathlib": lambda file: file.read_text(),
    "pandas": lambda file: pandas.read_csv(file),
    "sqlite": lambda file: sqlite3.connect(file).close(),
    "a command": lambda file: subprocess.run([sys.executable, "-c", "", str(file)], check=True),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_in_which_python_opens_a_file_is_heard_of(folder: Path, way: str) -> None:
    file = folder / "prices" / "UP.csv"
    with opened_files(str(folder)) as opened:
        WAYS[way](file)
    assert len(opened) == 1 and next(iter(opened)).startswith(str(folder))
    with opened_files(str(folder), refuse=True), pytest.raises((PermissionError, sqlite3.OperationalError)):
        WAYS[way](file)
    WAYS[way](file)
    assert len(opened) == 1
