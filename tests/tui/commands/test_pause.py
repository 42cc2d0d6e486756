"""A pause from the command line: no cycle begins, one at work goes no further, and the session stays due."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from connectors.wiring.services import services
from engine.app.desk import notification
from engine.app.desk import watch as desk_watch
from engine.app.desk.demo_history import DUE
from engine.app.desk.notification import CycleRequest
from engine.app.desk.run import run_daily
from engine.domain.run import RunKind, RunOutcome
from engine.execution.controls import Paused, halted, pause, pause_of, unpause
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.messages.events import AgentAnswered, Event, RunFinished
from engine.services import Services
from engine.settings import places
from engine.settings.config import load_config
from tests.tui.commands.conftest import FEW_AGENTS, Run

NEXT = "2025-03-17"
NOON = datetime(2025, 3, 18, 12, tzinfo=UTC)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """The preset of the desk that has run."""
    for name, value in FEW_AGENTS.items():
        monkeypatch.setenv(name, value)


def configured() -> Services:
    return services(load_config(None, environ=FEW_AGENTS).config)


def test_a_paused_desk_settles_decides_nothing_and_its_session_stays_due(run: Run, desk: Path, few: None) -> None:
    told = run("pause", "--reason", "on  holiday")
    assert (told.code, told.err) == (0, "")
    assert told.out.startswith("PAUSED: the desk demo is paused, since ") and "on holiday" in told.out
    assert told.out.endswith("resume with: paperdesk resume\n")

    paused = run("--daily", "--session", NEXT, "--json")
    document = paused.json
    assert paused.code == 0 and document["outcome"] == "paused" and document["halted"] is None
    assert document["paused"]["reason"] == "on holiday" and document["decisions"] == document["orders"] == []
    assert document["fills"], "the orders of the session before are settled"
    lines = run("--daily", "--session", NEXT).out.splitlines()
    assert [line for line in lines if line.startswith("PAUSED since ")] == lines[:1]
    status = run("status", "--json").json
    assert status["paused"] == document["paused"] and status["session"] == NEXT
    assert "PAUSED" in run("status").out and "no cycle begins: paperdesk resume" in run("status").out

    assert "the desk demo resumed; it was paused since " in run("resume").out
    done = run("--daily", "--session", NEXT, "--json").json
    assert (done["outcome"], done["paused"]) == ("done", None) and len(done["decisions"]) == 4
    with JournalReader(places.desk_journal("demo")) as reader:
        states = [entry.outcome for entry in reader.runs(RunKind.DAILY) if str(entry.session) == NEXT]
    assert states == [RunOutcome.DONE]


def test_orders_that_were_decided_are_sent_all_the_same(
    run: Run, desk: Path, few: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.clock.LiveClock.now", lambda clock: NOON)
    monkeypatch.setattr("engine.app.desk.demo_history.DUE", date(2025, 3, 17))
    monkeypatch.setenv("PAPERDESK_BROKER__MODE", "ask")
    waiting = run("--daily", "--session", NEXT, "--json").json["waiting"]
    assert waiting
    run("pause")
    assert run("approve", waiting[0]).code == 0
    states = {order["id"]: order["state"] for order in run("orders", "--json").json["orders"]}
    assert states[waiting[0]] == "acknowledged"


def test_what_a_pause_and_a_halt_have_in_common_and_what_not(run: Run, fresh: Path) -> None:
    first, again = run("pause", "--json", "--reason", "one").json, run("pause", "--json", "--reason", "two").json
    assert (first["changed"], again["changed"]) == (True, False) and first["paused"] == again["paused"]
    assert "is paused already, since" in run("pause").out
    run("halt")
    status = run("status", "--json").json
    assert status["halted"] is not None and status["paused"] is not None
    kept = run("resume", "--only", "pause", "--json").json
    assert kept["was_paused"] == first["paused"] and kept["paused"] is None
    assert kept["was_halted"] is None and kept["halted"] == status["halted"]
    run("pause")
    said = run("resume").out.splitlines()
    assert [line.split(" since")[0] for line in said] == [
        "the desk demo resumed; it was halted",
        "the desk demo resumed; it was paused",
    ]
    assert run("resume", "--only", "halt").out == "the desk demo is not halted\n"
    assert run("resume", "--only", "everything").code == 2
    assert run("pause", "--run", "daily-demo-20250314").code == 2


def test_a_cycle_at_work_ends_after_the_answers_under_way_and_the_next_run_goes_on(desk: Path) -> None:
    journal, session = places.desk_journal("demo"), date.fromisoformat(NEXT)
    answered = Counter[tuple[str, str]]()

    def pausing(event: Event) -> None:
        if isinstance(event, AgentAnswered):
            answered[event.symbol, event.step] += 1
            if sum(answered.values()) == 3:
                pause(journal, NOON, "from another shell")

    done = asyncio.run(run_daily(configured(), session, pausing))
    assert getattr(done, "outcome", None) is RunOutcome.PAUSED
    steps = {step for _, step in answered}
    assert "news" in steps and not any("decision" in step for step in steps), "nobody begins who reads an answer"
    with JournalReader(journal) as reader:
        assert len(reader.calls(done.run)) == sum(answered.values()) and not reader.decisions(done.run)
        assert reader.run(done.run).detail == "paused since 2025-03-18 12:00 UTC: from another shell"
    unpause(journal, NOON)
    done = asyncio.run(run_daily(configured(), session))
    assert getattr(done, "outcome", None) is RunOutcome.DONE
    with JournalReader(journal) as reader:
        assert len(reader.decisions(done.run)) == 4


def test_a_cycle_in_a_process_of_its_own_waits_until_the_pause_is_over(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, answered, looks = places.desk_journal("demo"), list[Event](), list[int]()

    def pausing(event: Event) -> None:
        if isinstance(event, AgentAnswered):
            answered.append(event)
            if len(answered) == 3:
                pause(journal, NOON, "from the app")

    def looked(path: Path) -> Paused | None:
        if (found := pause_of(path)) is not None:
            looks.append(len(answered))
            if len(looks) == 3:
                unpause(path, NOON)
        return found

    monkeypatch.setattr(notification, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(notification, "pause_of", looked)
    done = asyncio.run(
        notification._run_there(configured, NOON, None, CycleRequest(session=date.fromisoformat(NEXT)), pausing)
    )
    assert looks == [3, 3, 3], "no question while it is paused"
    assert (str(done.session), getattr(done, "outcome", None)) == (NEXT, RunOutcome.DONE)


def test_the_clock_of_a_demo_desk_goes_no_further_while_it_is_paused(run: Run, fresh: Path) -> None:
    run("pause")
    document = run("--daily", "--json").json
    assert (document["outcome"], document["session"]) == ("paused", str(DUE))
    (again,) = run("next", "3", "--json").json["sessions"]
    assert (again["outcome"], again["session"]) == ("paused", str(DUE))
    run("resume")
    done = [one["session"] for one in run("next", "2", "--json").json["sessions"]]
    assert done[0] == str(DUE) < done[1]


async def test_a_watch_decides_when_the_pause_is_over(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk_watch, "PAUSE_CHECKS", 0.02)
    journal, ended = places.desk_journal("demo"), list[RunOutcome]()
    pause(journal, NOON)

    def hear(event: Event) -> None:
        if isinstance(event, RunFinished):
            ended.append(event.outcome)

    async def until(holds: Callable[[], bool]) -> None:
        while not holds():
            assert not watching.done(), watching.exception()
            await asyncio.sleep(0.02)

    watching = asyncio.create_task(desk_watch.DeskWatch(configured(), hear).run())
    async with asyncio.timeout(300):
        await until(lambda: ended == [RunOutcome.PAUSED])
        unpause(journal, NOON)
        await until(lambda: ended == [RunOutcome.PAUSED, RunOutcome.DONE])
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


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
    assert resumed.code == 0 and "resumed; it was halted since " in resumed.out
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
    assert refused.code == 2 and "--run" in refused.err


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
