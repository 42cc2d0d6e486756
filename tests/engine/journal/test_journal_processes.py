"""Several processes at one journal: reading while another writes, a writer that is killed, a lock that is held."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path
from subprocess import PIPE

import pytest

from engine.domain.run import RunKind, RunOutcome
from engine.errors import TryAgainLater
from engine.journal.entries import OrderEntry, RunEntry
from engine.journal.integrity import quick_check
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.messages.commands import Pause
from engine.messages.events import Event, Noticed, RunFinished
from tests.engine.command_reader import waiting_commands
from tests.engine.journal.full_journal import answer

REPO = Path(__file__).parents[3]

WRITES_EVENTS = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from engine.domain.run import RunOutcome
from engine.journal.writer import JournalWriter
from engine.messages.events import Noticed, RunFinished
now = datetime(2024, 3, 4, tzinfo=UTC)
with JournalWriter(Path(sys.argv[1]), batched=sys.argv[2] == "batched") as journal:
    for n in range(300):
        journal.event(Noticed("r", now, "info", str(n)))
        if n % 50 == 0:
            journal.flush()
            print(n, flush=True)
    journal.event(RunFinished("r", now, RunOutcome.DONE, None, ""))
"""

WRITES_UNTIL_KILLED = """
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from engine.domain.order import Order, OrderState, Side
from engine.domain.order import order_id
from engine.domain.order import Portfolio
from engine.domain.run import EquityPoint, RunKind
from engine.journal.entries import OrderEntry, RunEntry
from engine.journal.writer import JournalWriter
now, day = datetime(2024, 3, 4, tzinfo=UTC), date(2024, 3, 4)
journal = JournalWriter(Path(sys.argv[1]), batched=sys.argv[2] == "batched")
journal.run_started(RunEntry(id="r", kind=RunKind.DAILY, name="demo", started=now))
for n in range(10**9):
    prices = {"AAA": Decimal(1), "BBB": Decimal(2)}
    book = EquityPoint(date.fromordinal(1 + n), Decimal(n), Portfolio(Decimal(n)), prices)
    journal.session_settled("r", book)
    name = order_id("demo", day, n, "AAA", Side.BUY)
    order = Order(id=name, symbol="AAA", side=Side.BUY, session=day, notional=Decimal(5))
    journal.order_intended(OrderEntry(order=order, run="r", desk="demo", cycle=n, time=now))
    journal.order_moved(order.moved(OrderState.SUBMITTING), now)
    print(order.id, flush=True)
"""

KILLED_BEFORE_EACH_LINE = """
import os, signal, sys
from datetime import UTC, datetime
from engine.settings import places
from engine.app.records.desk_journal import DeskJournal
from engine.messages.events import Noticed

def write(desk):
    with DeskJournal(desk) as journal, journal.locked():
        assert journal.reader is None or journal.reader.counts()["events"] in (0, 1)
        journal.writer.event(Noticed("r", datetime(2024, 3, 4, tzinfo=UTC), "info", "written"))
    with DeskJournal(desk) as journal:
        return journal.reader.counts()["events"]

def dies_at(line):
    left = [line]
    def traced(frame, kind, argument):
        if "/engine/journal/" not in frame.f_code.co_filename:
            return None
        if kind == "line":
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
        return traced
    return traced

write("loaded")
line, deaths, step = 0, 0, int(sys.argv[1])
while True:
    line += step
    desk = f"d{line}"
    child = os.fork()
    if not child:
        sys.settrace(dies_at(line))
        write(desk)
        os._exit(0)
    if os.WIFEXITED(os.waitpid(child, 0)[1]):
        break
    deaths += 1
    assert write(desk) in (1, 2), line
    assert not [*places.desk_journal(desk).parent.glob("*.part")], line
print(deaths)
"""
CREATES = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from engine.journal.writer import JournalWriter
from engine.messages.events import Noticed
JournalWriter(Path(sys.argv[1]).with_name("loaded.db")).close()
print("ready", flush=True)
for line in sys.stdin:
    with JournalWriter(Path(line.strip())) as journal:
        journal.event(Noticed("r", datetime(2024, 3, 4, tzinfo=UTC), "info", "created"))
    print("created", flush=True)
"""


def start(code: str, path: Path, mode: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", code, str(path), mode], cwd=REPO, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("mode", ["batched", pytest.param("at once", marks=pytest.mark.slow)])
def test_a_reader_follows_a_writer_in_another_process(path: Path, mode: str, now: datetime) -> None:
    JournalWriter(path).close()
    seen: list[tuple[int, Event]] = []
    deadline = time.monotonic() + 600
    with start(WRITES_EVENTS, path, mode) as writer, JournalReader(path) as reader:
        while not seen or not isinstance(seen[-1][1], RunFinished):
            assert time.monotonic() < deadline, f"the writer came no further than {len(seen)} events"
            seen += reader.events_after(seen[-1][0] if seen else 0, limit=40)
            time.sleep(0.005)
        writer.communicate(timeout=600)
    assert writer.returncode == 0
    assert [event.text for _, event in seen[:-1] if isinstance(event, Noticed)] == [str(n) for n in range(300)]


def test_a_command_reaches_a_journal_that_is_being_written(path: Path, now: datetime) -> None:
    JournalWriter(path).close()
    with start(WRITES_EVENTS, path, "at once") as writer, JournalWriter(path) as ours:
        assert writer.stdout is not None
        numbers = [ours.command(Pause(), now) for _ in iter(writer.stdout.readline, "")]
        assert writer.wait(600) == 0
    with JournalReader(path) as reader:
        assert numbers == [seq for seq, _, _ in waiting_commands(path)]
        assert len(numbers) == 6
        assert reader.counts()["events"] == 301


@pytest.mark.parametrize("mode", ["batched", pytest.param("at once", marks=pytest.mark.slow)])
def test_a_killed_writer_leaves_a_sound_journal(path: Path, mode: str) -> None:
    printed: list[str] = []
    with start(WRITES_UNTIL_KILLED, path, mode) as writer:
        assert writer.stdout is not None
        for line in writer.stdout:
            printed.append(line.strip())
            if len(printed) >= 600:
                writer.kill()
                break
        printed += [line.strip() for line in writer.stdout if line.endswith("\n")]
        writer.wait(600)
    assert writer.returncode != 0
    assert quick_check(path) == ()
    with JournalReader(path) as reader:
        kept = [entry.order.id for entry in reader.orders()]
        # Printing comes after kept, so the kill may fall between the two; a batch may be missing as a whole.
        assert kept and len(kept) <= len(printed) + 1
        assert kept[: len(printed)] == printed[: len(kept)]
        if mode == "at once":
            assert len(kept) >= len(printed)
        for point in reader.equity("r"):
            assert point.prices.keys() == {"AAA", "BBB"}
    with JournalWriter(path) as journal:
        assert not journal.run_started(
            RunEntry(id="r", kind=RunKind.DAILY, name="demo", started=datetime.fromisoformat("2024-03-04T00:00Z"))
        )
        journal.run_finished("r", RunOutcome.DONE, datetime.fromisoformat("2024-03-04T00:00Z"))
    assert quick_check(path) == ()


@pytest.mark.parametrize("step", [13, pytest.param(1, marks=pytest.mark.slow)])
def test_a_writer_killed_before_any_of_its_lines_leaves_a_desk_that_goes_on(tmp_path: Path, step: int) -> None:
    environ = {**os.environ, "PAPERDESK_HOME": str(tmp_path), "PYTHONPATH": str(REPO)}
    command = (sys.executable, "-c", KILLED_BEFORE_EACH_LINE, str(step))
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 100 // step


def test_of_processes_that_create_a_journal_at_once_none_loses_what_it_wrote(path: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", CREATES, str(path)], cwd=REPO, stdin=PIPE, stdout=PIPE, text=True)
        for _ in range(4)
    ]
    for writer in writers:
        assert writer.stdout is not None and writer.stdout.readline() == "ready\n"
    journals = [path.with_name(f"{n}.db") for n in range(40)]
    for journal in journals:
        for writer in writers:
            assert writer.stdin is not None
            writer.stdin.write(f"{journal}\n")
            writer.stdin.flush()
        for writer in writers:
            assert writer.stdout is not None and writer.stdout.readline() == "created\n"
    for writer in writers:
        writer.communicate(timeout=600)
        assert writer.returncode == 0
    for journal in journals:
        with JournalReader(journal) as reader:
            assert reader.counts()["events"] == 4
    assert quick_check(journals[-1]) == ()
    assert [file.name for file in path.parent.glob("*.part")] == []


def test_a_locked_journal_says_try_again_and_a_desk_writes_nothing_later(
    path: Path, an_order: Callable[..., OrderEntry], now: datetime
) -> None:
    with JournalWriter(path, wait=0.02) as journal, closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(TryAgainLater):
            journal.order_intended(an_order())
        with pytest.raises(TryAgainLater):
            journal.command(Pause(), now)
        other.execute("ROLLBACK")
        journal.event(Noticed("r", now, "info", "free again"))
    with JournalReader(path) as reader:
        assert reader.orders() == ()
        assert waiting_commands(path) == ()
        assert reader.counts()["events"] == 1


def test_a_prompt_that_met_a_lock_is_kept_with_the_next_answer(path: Path, now: datetime) -> None:
    entry = answer()
    with JournalWriter(path, wait=0.02) as journal, closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(TryAgainLater):
            journal.answer(entry)
        other.execute("ROLLBACK")
        journal.answer(entry)
    with JournalReader(path) as reader:
        assert reader.answers(entry.key) == (entry,)


def test_a_batch_that_found_the_journal_locked_is_written_later(
    path: Path, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.journal.store.BATCH_SECONDS", 3600.0)
    with JournalWriter(path, batched=True, wait=0.02) as journal, closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        journal.event(Noticed("r", now, "info", "one"))
        with pytest.raises(TryAgainLater):
            journal.flush()
        other.execute("ROLLBACK")
        journal.event(Noticed("r", now, "info", "two"))
    with JournalReader(path) as reader:
        texts = [event.text for _, event in reader.events_after() if isinstance(event, Noticed)]
        assert texts == ["one", "two"]


def test_a_journal_locked_for_reading_too_says_so(path: Path) -> None:
    JournalWriter(path).close()
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA journal_mode = DELETE")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(TryAgainLater):
            JournalReader(path, wait=0.02)
        with pytest.raises(TryAgainLater):
            JournalWriter(path, wait=0.02)
