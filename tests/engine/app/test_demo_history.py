"""The recorded history is a desk's own journal and memory, what this program would record, and is copied once."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from datetime import date, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from connectors.wiring.services import services
from engine.app.desk import demo_history
from engine.app.desk.run import run_daily
from engine.errors import InvariantBroken
from engine.journal.integrity import quick_check
from engine.journal.reader import JournalReader
from engine.messages.events import Event, Noticed
from engine.reports.documents.opening import film_stops
from engine.reports.documents.settings import settings_of
from engine.services import Services
from engine.settings import places
from engine.settings.config import load_config
from tests.demo_history import SESSIONS, decide, demo_services, most_ordinary, window
from tests.long_cases import first_of

AGAIN = "record the history anew: python -m tests.demo_history"
MOST_BYTES = 7_000_000


def configured(**environ: str) -> Services:
    return services(load_config(None, environ=environ).config)


def content(reader: JournalReader, sessions: list[date]) -> dict[str, Any]:
    """What a journal has of sessions, as values; of the memory the number and the hash of its last row, in events."""
    runs = [run for run in reader.runs() if run.session in sessions]
    ids = {run.id for run in runs}
    return {
        "runs": runs,
        "answers": [answer for run in runs for answer in reader.answers(run=run.id)],
        "decisions": reader.decisions(last=sessions[-1]),
        "opinions": reader.opinions(last=sessions[-1]),
        "orders": [(entry.run, entry.order) for entry in reader.orders() if entry.run in ids],
        "fills": [fill for run in runs for fill in reader.fills(run=run.id)],
        "equity": [point for point in reader.equity(book=None) if point.session in sessions],
        "events": [event for _, event in reader.events_after(limit=100_000) if event.run in ids],
    }


def remade(sessions: int, home: Path, shipped: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """What this program records of the first sessions, and what ships of them."""
    found = demo_services()
    days = window(found, demo_history.FIRST)[:sessions]
    decide(found, days)
    with JournalReader(places.desk_journal("demo")) as ours, JournalReader(shipped) as theirs:
        return content(ours, days), content(theirs, days)


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, paperdesk_home: Path, recorded_history: None) -> Path:
    """The journal that a fresh home begins with."""
    with monkeypatch.context() as patch:
        patch.setenv("PAPERDESK_HOME", str(tmp_path / "shipped"))
        demo_history.begin(configured())
        return places.desk_journal("demo")


def test_it_is_sound_of_this_program_and_sixty_sessions_long(shipped: Path) -> None:
    assert demo_history.ARCHIVE.stat().st_size <= MOST_BYTES
    assert quick_check(shipped) == (), AGAIN
    with JournalReader(shipped) as reader:
        sessions = [run.session for run in reader.runs()]
        found = demo_services()
        assert sessions == window(found, demo_history.FIRST) and len(sessions) == SESSIONS
        assert sessions[-1] == demo_history.LAST
        calendar = found.desk_calendar(found.symbols)
        assert calendar.sessions(demo_history.LAST, demo_history.DUE) == [demo_history.LAST, demo_history.DUE]
        assert reader.equity(book=None)[-1].portfolio.positions, "a newcomer sees a position"
        # Else the first run of a newcomer's desk would name the version as a changed setting.
        assert (settings_of(reader, reader.runs()[-1].id) or {})["version"] == version("paperdesk"), AGAIN
        purchase, loss = film_stops(reader, sessions[-20])  # type: ignore[arg-type]
        assert purchase.symbol == loss.symbol and purchase.session < loss.session


def test_its_first_sessions_are_what_this_program_records(shipped: Path, paperdesk_home: Path) -> None:
    ours, theirs = remade(3, paperdesk_home, shipped)
    for what, value in theirs.items():
        assert ours[what] == value, f"{what}: {AGAIN}"


@pytest.mark.slow
def test_all_of_it_is_what_this_program_records(shipped: Path, paperdesk_home: Path) -> None:
    ours, theirs = remade(SESSIONS, paperdesk_home, shipped)
    for what, value in theirs.items():
        assert ours[what] == value, f"{what}: {AGAIN}"


def test_the_rule_takes_the_window_in_the_middle_of_both_orders() -> None:
    first = date(2025, 1, 1)
    days = [first + timedelta(days=number) for number in range(5)]
    excess, falls = (0.3, -0.2, 0.01, 0.1, -0.1), (0.2, 0.1, 0.3, 0.15, 0.12)
    assert most_ordinary(list(zip(days, excess, falls, strict=True))) == days[3]


@pytest.mark.parametrize(
    ("environ", "named"),
    [
        ({"PAPERDESK_DESK__PRESET": "finvision"}, "desk.preset"),
        ({"PAPERDESK_DESK__SYMBOLS": "ORVL,HLXM"}, "desk.symbols"),
        ({"PAPERDESK_DATA__DEMO_SEED": "8", "PAPERDESK_DESK__CASH": "5000"}, "desk.cash, data.demo_seed"),
    ],
)
def test_a_desk_of_other_settings_begins_empty_at_the_same_clock_and_says_so(
    recorded_history: None, environ: dict[str, str], named: str
) -> None:
    heard: list[Event] = []
    found = configured(**environ)
    demo_history.begin(found)
    assert not places.desk_journal("demo").exists() and demo_history.other_settings(found) == named
    done = asyncio.run(run_daily(found, publish=heard.append))
    assert done.session == demo_history.DUE
    assert [event.level for event in heard if isinstance(event, Noticed) and named in event.text] == ["warning"]


def test_a_name_of_its_own_changes_nothing(recorded_history: None) -> None:
    found = configured(PAPERDESK_DESK__NAME="mine")
    demo_history.begin(found)
    done = asyncio.run(run_daily(found))
    with JournalReader(places.desk_journal("mine")) as reader:
        assert (done.session, len(reader.runs())) == (demo_history.DUE, SESSIONS + 1), "its memory is the journal's"
    assert quick_check(places.desk_journal("mine")) == ()


def test_a_journal_that_is_there_and_a_memory_without_one_stay(recorded_history: None) -> None:
    journal, memory = places.desk_journal("demo"), places.desk_memory("demo")
    memory.mkdir(parents=True)
    (memory / "mine").touch()
    demo_history.begin(configured())
    assert not journal.exists() and list(memory.iterdir()) == [memory / "mine"]
    journal.write_bytes(b"the user's own")
    (memory / "mine").unlink()
    memory.rmdir()
    demo_history.begin(configured())
    assert journal.read_bytes() == b"the user's own" and not memory.exists()


@pytest.mark.parametrize("before", first_of(1, [demo_history.JOURNAL, demo_history.MEMORY]))
def test_a_process_that_is_killed_on_the_way_is_made_good_by_the_next(
    recorded_history: None, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    class Killed(BaseException):
        pass

    rename = Path.rename

    def killed(path: Path, target: Path) -> Path:
        if path.name == before and path.parent.suffix == ".history":
            raise Killed
        return rename(path, target)

    journal, memory = places.desk_journal("demo"), places.desk_memory("demo")
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(Path, "rename", killed)
        demo_history.begin(configured())
    assert (memory.exists(), journal.exists()) == (before == demo_history.JOURNAL, False)
    demo_history.begin(configured())
    assert quick_check(journal) == () and memory.exists() and not list(journal.parent.glob("*.history"))


def test_processes_that_open_a_fresh_home_at_once_see_one_desk(paperdesk_home: Path) -> None:
    command = [sys.executable, "-c", "from tui.cli import main; main()", "status", "--json"]
    several = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    said = [process.communicate() for process in several]
    assert [process.returncode for process in several] == [0] * 3, said
    assert len({out for out, _ in said}) == 1 and '"session": "2026-09-24"' in said[0][0]


def test_a_missing_archive_is_a_broken_installation(
    recorded_history: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(demo_history, "ARCHIVE", tmp_path / "gone.zip")
    with pytest.raises(InvariantBroken):
        demo_history.begin(configured())
