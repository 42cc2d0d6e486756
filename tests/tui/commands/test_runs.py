"""`paperdesk runs`: every run of a home listed, held against each other, carried away, removed."""

from __future__ import annotations

import csv
import io
import json
import random
import re
import sqlite3
from itertools import chain
from pathlib import Path
from statistics import fmean

import pytest

from engine.app.arena.record import arena_lock
from engine.app.records.desk_journal import run_lock
from engine.clock import LiveClock
from engine.domain.run import RunKind
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.reports.documents.runs import StoredKind
from engine.settings import places
from tests.conftest import MadeHome
from tests.engine.trial_reader import looks_in
from tests.tui.commands.conftest import Run, contents, copied
from tui.cli import main

WINDOW = ("--from", "2025-02-03", "--to", "2025-03-14")


def called(*arguments: str) -> int:
    """The exit code of `paperdesk` with arguments, in this process."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert isinstance(ended.value.code, int)
    return ended.value.code


def played(run: Run, name: str, *flags: str, symbols: str = "ORVL,HLXM") -> None:
    assert run("backtest", "--symbols", symbols, *WINDOW, *flags, "--run", name).code == 0


@pytest.fixture
def runs(made_home: MadeHome, paperdesk_home: Path) -> Path:
    """A home with two runs of one rule, one of another, and an arena."""
    flags = ("backtest", *WINDOW, "--symbols")

    def lives() -> None:
        for call in (
            (*flags, "ORVL,HLXM", "--strategy", "macd", "--run", "slow"),
            (*flags, "ORVL,HLXM", "--strategy", "macd", "--param", "fast=6", "--slippage", "30", "--run", "fast"),
            (*flags, "BXWD", "--strategy", "cash", "--run", "idle"),
            ("arena", "--agents", "controls", "--days", "2", "--run", "ring"),
        ):
            assert called(*call) == 0

    return copied(made_home("runs", lives), paperdesk_home)


def test_every_run_of_a_home_is_listed_and_filtered(run: Run, runs: Path, desk: Path) -> None:
    listed = run("runs", "list", "--json").json
    rows = {one["id"]: one for one in listed["runs"]}
    daily = {f"daily-demo-{day}" for day in ("20250311", "20250312", "20250313", "20250314")}
    assert listed["count"] == len(rows) and set(rows) == {"slow", "fast", "idle", "ring", *daily}
    assert [one["time"] for one in listed["runs"]] == sorted((one["time"] for one in listed["runs"]), reverse=True)
    result = run("report", "--run", "fast", "--json").json
    fast = rows["fast"]
    assert fast["metrics"] == result["metrics"] and fast["sessions"] == result["sessions"]
    assert (fast["kind"], fast["name"], fast["symbols"]) == ("backtest", "macd", ["ORVL", "HLXM"])
    assert (fast["first"], fast["last"], fast["outcome"], fast["finished"]) == (
        "2025-02-03",
        "2025-03-14",
        "done",
        True,
    )
    assert fast["bytes"] >= places.run_journal("fast").stat().st_size > 0
    assert rows["ring"]["kind"] == "arena" and rows["ring"]["metrics"]["average_trend"] is not None
    last = rows["daily-demo-20250314"]
    assert (last["desk"], last["first"], last["bytes"], last["metrics"]) == ("demo", "2025-03-14", 0, {})
    assert listed["bytes"] == sum(one["bytes"] for one in listed["runs"])
    for flags, found in (
        (("--preset", "macd"), {"slow", "fast"}),
        (("--symbol", "bxwd", "--preset", "cash"), {"idle"}),
    ):
        assert {one["id"] for one in run("runs", "list", *flags, "--json").json["runs"]} == found
    text = run("runs", "list", "--limit", "2").out
    assert "the last 2 of 8; --limit 0 shows all" in text and "8 runs, " in text
    assert "no matching run" in run("runs", "list", "--symbol", "ZZZ").out


def test_a_run_that_was_killed_is_listed_as_not_finished(run: Run, fresh: Path) -> None:
    call = ("backtest", "--symbols", "ORVL", *WINDOW, "--preset", "nothing-of-the-kind", "--run", "never")
    assert run(*call).code == 2 and run("runs", "list", "--json").json["runs"] == []
    with JournalWriter(places.run_journal("killed")) as journal:
        entry = RunEntry(id="killed", kind=RunKind.BACKTEST, name="finvision", started=LiveClock().now())
        journal.run_started(entry)
    (row,) = run("runs", "list", "--json").json["runs"]
    assert (row["id"], row["outcome"], row["finished"], row["metrics"]) == ("killed", None, False, {})
    assert "not finished" in run("runs", "list").out


def test_a_journal_that_cannot_be_read_is_named_and_the_others_are_listed(run: Run, runs: Path) -> None:
    places.run_journal("idle").write_bytes(b"nothing of the kind" * 100)
    done = run("runs", "list", "--json")
    assert done.code == 65 and "1 of the runs cannot be read" in done.err and "idle.db" in done.err
    assert {one["id"]: bool(one["problem"]) for one in done.json["runs"] if one["id"] != "ring"} == {
        "slow": False,
        "fast": False,
        "idle": True,
    }


def test_a_result_that_cannot_be_read_is_named(run: Run, runs: Path) -> None:
    with sqlite3.connect(places.run_journal("slow")) as journal:
        for trigger in ("documents_no_update", "documents_no_delete"):
            journal.execute(f"DROP TRIGGER {trigger}")
        journal.execute("UPDATE documents SET json = '{', packed = NULL")
    for call in (("runs", "list"), ("report", "--run", "slow"), ("runs", "compare", "slow", "fast")):
        done = run(*call)
        assert done.code == 65 and "is damaged in the result of the run slow" in done.err


def test_two_runs_are_held_against_each_other(run: Run, runs: Path) -> None:
    found = run("runs", "compare", "slow", "fast", "--json").json
    slow, fast = (run("report", "--run", name, "--json").json for name in ("slow", "fast"))
    (pair,) = found["pairs"]
    changed = {one["setting"]: (one["before"], one["now"]) for one in pair["settings"]}
    assert changed == {"slippage_bp": ("5", "30"), "params.fast": ("12", "6")}
    assert {one["metric"]: one["values"] for one in found["metrics"]} == {
        name: [slow["metrics"][name], fast["metrics"][name]] for name in slow["metrics"]
    }
    returns = [
        [float(b) / float(a) - 1 for a, b in zip([one["initial_value"], *values], values, strict=False)]
        for one in (slow, fast)
        for values in [[point["value"] for point in one["equity"]]]
    ]
    gaps = [b - a for a, b in zip(*returns, strict=True)]
    daily = pair["daily"]
    assert daily["sessions"] == len(gaps) == slow["sessions"]
    assert daily["mean"] == pytest.approx(fmean(gaps))
    # The interval is about that of a resampling day by day, written here once more.
    drawn = random.Random(0)
    means = sorted(fmean(drawn.choices(gaps, k=len(gaps))) for _ in range(2000))
    width = means[1949] - means[49]
    assert daily["low"] < daily["mean"] < daily["high"] and 0.5 < (daily["high"] - daily["low"]) / width < 2
    assert daily["distinguishable"] is (not daily["low"] <= 0 <= daily["high"])
    curves = found["curves"]
    assert curves["sessions"] == [point["session"] for point in slow["equity"]]
    for one, curve in zip((slow, fast), curves["runs"], strict=True):
        values = [float(point["value"]) for point in one["equity"]]
        assert curve == pytest.approx([100 * value / values[0] for value in values])
    assert curves["buy_and_hold"][0] == 100 and len(curves["buy_and_hold"]) == len(curves["sessions"])
    assert pair["equity"]["last"] == f"{float(fast['final_value']) - float(slow['final_value']):.2f}"
    assert pair["decisions"] is None and pair["same"] is False
    alone = {(one["session"], one["run"]) for one in pair["trades"]["rows"]}
    assert pair["trades"]["differing"] == len(alone) == len(slow["trades"]) + len(fast["trades"])
    (alone_p,) = found["family"]["rows"]
    assert alone_p["run"] == "fast" and alone_p["p"] == alone_p["adjusted"] and found["family"]["sessions"] == len(gaps)
    assert (alone_p["p"] < 0.5) is (fmean(gaps) > 0)
    text = run("runs", "compare", "slow", "fast", "idle").out
    assert "All runs against the first" in text and "among all" in text
    assert "fast average: 12, then 6" in text and "95 % interval" in text and "idle beside slow" in text
    assert f"fast: {found['runs'][1]['luck']['sentence']}" in text
    rows = {name: values for name, *values in (re.split(r"  +", line) for line in text.splitlines())}
    assert rows["Final value"][:2] == [f"{float(one['final_value']):,.2f}" for one in (slow, fast)]
    assert rows["Total return"][:2] == [f"{100 * one['metrics']['total_return']:+.2f}%" for one in (slow, fast)]
    assert rows["Max drawdown"][:2] == [f"{-100 * one['metrics']['max_drawdown']:.2f}%" for one in (slow, fast)]
    assert rows["Growth over the market"][0] == f"{100 * slow['luck']['excess_per_year']['value']:+.2f}%"
    assert [one["luck"]["trials"] for one in found["runs"]][:2] == [2, 2], "the look at other symbols is none at theirs"
    bought = slow["trades"][0]
    assert f"BUY {bought['quantity']} ORVL at {bought['price']}: slow" in text, "two may differ in the last digit alone"


def test_tables_keep_to_the_columns_that_are_asked_for(run: Run, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert max(map(len, run("runs", "list").out.splitlines()[:-1])) <= 60
    text = run("runs", "compare", "slow", "fast", "idle").out
    heads = [names for names in map(str.split, text.splitlines()) if {*names} <= {"slow", "fast", "idle"} and names]
    assert len(heads) > 1 and [*chain(*heads)] == ["slow", "fast", "idle"], "runs that do not fit go on below"


@pytest.mark.slow
def test_the_decisions_that_differ_are_counted_and_shown(run: Run, fresh: Path) -> None:
    for name, more in (("one", ()), ("two", ("--slippage", "30")), ("three", ())):
        played(run, name, "--preset", "finvision-no-reflection", *more)
    one, two = (run("report", "--run", name, "--json").json["decisions"] for name in ("one", "two"))
    differing = [a for a, b in zip(one, two, strict=True) if (a["action"], a["size"]) != (b["action"], b["size"])]
    found = run("runs", "compare", "one", "two", "three", "--json").json["pairs"]
    assert [pair["other"] for pair in found] == ["two", "three"]
    assert found[0]["decisions"]["compared"] == len(one) and found[0]["decisions"]["differing"] == len(differing) > 0
    assert [row["session"] for row in found[0]["decisions"]["rows"]] == [made["session"] for made in differing][:10]
    assert found[1]["same"] and found[1]["settings"] == [] and found[1]["decisions"]["differing"] == 0
    assert found[1]["daily"]["mean"] == 0 and found[1]["daily"]["distinguishable"] is False
    assert "three beside one: the same result" in run("runs", "compare", "one", "three").out


def test_what_cannot_be_compared_is_one_line(run: Run, runs: Path) -> None:
    for ids, said, code in (
        (("ring", "slow"), "only backtests can be compared", 2),
        (("slow",), "compare ID ID...", 2),
        (("x", "y"), "no run x", 65),
    ):
        refused = run("runs", "compare", *ids)
        assert refused.code == code and said in refused.err


def test_a_run_is_exported_as_a_folder_of_its_own(
    run: Run, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = run("runs", "export", "fast", "--json").json
    folder = tmp_path / "fast"
    assert made["folder"] == str(folder) and made["files"] == sorted(file.name for file in folder.iterdir())
    document = run("report", "--run", "fast", "--json").json
    assert json.loads((folder / "result.json").read_text()) == document
    equity = list(csv.DictReader(io.StringIO((folder / "equity.csv").read_text())))
    assert [row["value"] for row in equity] == [point["value"] for point in document["equity"]]
    assert (folder / "trades.csv").exists() and (folder / "decisions.csv").exists()
    assert (folder / "report.html").read_text().startswith("<!doctype html>")
    with JournalReader(folder / "journal.db") as reader:
        assert reader.run("fast").name == "macd"
    again = run("runs", "export", "fast")
    assert again.code == 65 and f"{folder} already exists" in again.err
    (tmp_path / "file").write_text("")
    blocked = run("runs", "export", "fast", "--to", str(tmp_path / "file" / "below"))
    assert blocked.code == 65 and "cannot be written" in blocked.err
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []
    ring = run("runs", "export", "ring", "--to", str(tmp_path / "ring"), "--json").json
    assert ring["files"] == ["record.json", "report.html", "result.json"]
    assert (tmp_path / "ring" / "record.json").read_bytes() == places.arena_file("ring").read_bytes()


def test_a_run_of_a_desk_is_exported_and_never_pruned(run: Run, desk: Path, tmp_path: Path) -> None:
    name = "daily-demo-20250314"
    files = run("runs", "export", name, "--to", str(tmp_path / "day"), "--json").json["files"]
    assert files == ["journal.db", "report.html", "result.json"]
    before = contents(desk)
    refused = run("runs", "prune", name, "--yes")
    assert refused.code == 2 and "a desk's journal is never pruned" in refused.err
    assert run("runs", "prune", "--keep", "0", "--yes", "--json").json["removed"] == []
    assert contents(desk) == before


def test_pruning_says_what_goes_asks_and_keeps_the_index_of_looks(run: Run, runs: Path) -> None:
    before, counted = contents(runs), len(looks_in(places.trial_index()))
    asked = run("runs", "prune", "--keep", "1")
    assert asked.code == 2 and "pass --yes" in asked.err and "2 runs, " in asked.err
    assert contents(runs) == before
    left, record = (places.part_of(file) for file in (places.run_journal("fast"), places.arena_file("ring")))
    for part in (left, record):
        part.write_bytes(b"of a process that was killed while it wrote the file")
    size = sum(one["bytes"] for one in run("runs", "list", "--json").json["runs"] if one["id"] in ("slow", "fast"))
    done = run("runs", "prune", "--keep", "1", "--yes", "--json").json
    assert (sorted(done["removed"]), done["bytes"], done["retained"]) == (["fast", "slow"], size, 2)
    assert not left.exists()
    assert not [path for path in places.runs_dir().iterdir() if path.name.startswith(("slow", "fast"))]
    assert {one["id"] for one in run("runs", "list", "--json").json["runs"]} == {"idle", "ring"}
    assert len(looks_in(places.trial_index())) == counted == 3
    assert run("runs", "prune", "idle", "ring", "--yes").code == 0
    assert "no matching run" in run("runs", "list").out and places.trial_index().exists()
    assert not places.arena_file("ring").exists() and not record.exists()


def test_pruning_needs_to_know_what_goes(run: Run, runs: Path) -> None:
    for flags in ((), ("slow", "--keep", "1"), ("--keep", "-1")):
        assert run("runs", "prune", *flags, "--yes").code == 2
    assert run("runs", "list", "--keep", "1").code == 2


def test_a_run_that_is_being_played_is_left_alone(run: Run, runs: Path) -> None:
    with run_lock("slow"), arena_lock("ring"):
        done = run("runs", "prune", "--keep", "0", "--yes", "--json").json
        busy = run("arena", "--resume", "ring")
    assert (sorted(done["removed"]), sorted(done["at_work"])) == (["fast", "idle"], ["ring", "slow"])
    assert places.run_journal("slow").exists() and places.arena_file("ring").exists()
    assert busy.code == 75 and "the arena ring is being played by another process" in busy.err


def test_every_kind_of_run_that_a_journal_may_hold_can_be_listed() -> None:
    assert {kind.value for kind in RunKind} < {kind.value for kind in StoredKind}
