"""The kill switch from the command line: before the first run, beside a run, twice, and what then is said where."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from engine.execution.controls import halted
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.settings import places
from tests.tui.commands.conftest import Run

REPO = Path(__file__).parents[3]


def test_a_halt_is_said_where_one_looks_until_it_is_resumed(run: Run, desk: Path) -> None:
    said = run("halt", "--reason", "earnings  tonight")
    assert (said.code, said.err) == (0, "")
    assert "HALTED: the desk demo is halted, since " in said.out and ": earnings tonight" in said.out
    assert "with the broker already, not called back:\n  " in said.out and "paperdesk resume" in said.out
    status = run("status", "--json").json
    assert status["halted"]["reason"] == "earnings tonight"
    assert next(line for line in run("status").out.splitlines() if line.startswith("HALTED")).endswith(
        "earnings tonight"
    )
    resumed = run("resume")
    assert resumed.code == 0 and "goes on; it was halted since " in resumed.out
    assert run("status", "--json").json["halted"] is None
    assert "HALTED" not in run("status").out


def test_both_are_idempotent_and_say_so(run: Run, desk: Path) -> None:
    assert run("resume", "--json").json == {
        "schema": 1,
        "desk": "demo",
        "changed": False,
        "was_halted": None,
        "was_paused": None,
        "halted": None,
        "paused": None,
        "not_sent": [],
    }
    first = run("halt", "--json", "--reason", "one").json
    second = run("halt", "--json", "--reason", "two").json
    assert (first["changed"], second["changed"]) == (True, False)
    assert first["halted"] == second["halted"] and second["halted"]["reason"] == "one"
    assert "is halted already" in run("halt").out
    ended = run("resume", "--json").json
    assert ended["changed"] and ended["was_halted"] == first["halted"]


def test_a_halt_counts_the_orders_that_the_broker_has(run: Run, desk: Path) -> None:
    document = run("halt", "--json").json
    waiting = run("orders", "--open", "--json").json["orders"]
    assert waiting, "the demo desk has orders for the next open"
    assert [order["id"] for order in document["sent"]] == [order["id"] for order in waiting]
    assert document["not_sent"] == []


def test_a_halt_before_the_first_run_holds(run: Run, fresh: Path) -> None:
    assert run("resume").out == "the desk demo is not halted or paused\n"
    assert not places.desk_journal("demo").exists()
    assert run("halt").code == 0
    assert run("status", "--json").json["halted"]["reason"] == ""
    for command in ("status", "positions", "orders", "decisions", "equity"):
        assert run(command).code == 0, command
    assert run("journal", "check").code == 0


def test_a_halt_is_the_whole_desks_and_each_desks_own(run: Run, fresh: Path) -> None:
    assert run("halt", "--desk", "growth").out.endswith("paperdesk resume --desk growth\n")
    assert run("status", "--desk", "growth", "--json").json["halted"] is not None
    assert run("status", "--json").json["halted"] is None
    refused = run("halt", "--run", "daily-demo-20250314")
    assert refused.code == 2 and "leave it out" in refused.err


def test_a_halt_from_another_process_holds_while_a_writer_and_the_desks_lock_are_held(desk: Path) -> None:
    from engine.app.records.desk_journal import desk_lock

    journal = places.desk_journal("demo")
    program = [sys.executable, "-c", "from tui.cli import main; main()"]
    with desk_lock("demo"), JournalWriter(journal), JournalReader(journal) as reader:
        assert halted(reader) is None
        for arguments, holds in ((("halt", "--reason", "now"), True), (("resume",), False)):
            subprocess.run([*program, *arguments], cwd=REPO, env={**os.environ}, check=True, capture_output=True)
            assert (halted(reader) is not None) is holds


def test_a_reason_is_one_line_without_what_steers_a_terminal(run: Run, desk: Path) -> None:
    run("halt", "--reason", "a\x1b[2Jb\nc")
    line = next(line for line in run("status").out.splitlines() if line.startswith("HALTED"))
    assert "\x1b" not in line and line.endswith("b c")
