"""A desk's journal and memory belong together: checked by every run, backed up and restored as one file."""

from __future__ import annotations

import json
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import pytest

from engine.app.records.desk_journal import desk_lock
from engine.journal.integrity import quick_check
from engine.journal.reader import JournalReader
from engine.messages.events import MemoryWritten
from engine.settings import places
from tests.tui.commands.conftest import MEMORY, REMEMBERED, Run

DUE = "2024-02-15"


@pytest.fixture
def desk(remembering: Path) -> Path:
    """The folder of the files of a desk with memory."""
    return places.desks_dir()


def bound() -> MemoryWritten:
    with JournalReader(places.desk_journal("demo")) as reader:
        found = reader.last_of(MemoryWritten)
    assert found is not None
    return found


def contents_of(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_every_command_that_writes_memory_binds_it_to_the_journal(run: Run, desk: Path) -> None:
    after_run = bound()
    assert after_run.rows > 10 and not after_run.open
    weak = run("memory", "list", "--json").json["memories"][-1]
    for change in ("pin", "unpin", "forget", "restore"):
        before = bound()
        assert run("memory", change, weak["id"]).code == 0
        assert bound().rows > before.rows and bound().last != before.last and not bound().open
    for change in ("optimize", "reembed"):
        before = bound()
        assert run("memory", change).code == 0
        assert bound().rows == before.rows, "no row came"
    assert run("--daily", "--session", DUE).code == 0
    assert run("journal", "check").code == 0 and run("doctor").out.count("memory") >= 1


def gone(desk: Path) -> None:
    shutil.rmtree(desk / "demo.memory")


def damaged(desk: Path) -> None:
    for manifest in (desk / "demo.memory" / "records.lance" / "_versions").iterdir():
        manifest.write_bytes(bytes(manifest.stat().st_size))


@pytest.mark.parametrize("fault", [gone, damaged])
def test_a_memory_that_is_missing_or_damaged_decides_nothing(
    run: Run, desk: Path, fault: Callable[[Path], None]
) -> None:
    fault(desk)
    for arguments in (("--daily", "--session", DUE, "--json"), ("doctor",)):
        said = run(*arguments)
        assert said.code == (1 if arguments == ("doctor",) else 65)
        text = said.out if arguments == ("doctor",) else said.err
        assert "paperdesk restore FILE" in " ".join(text.split()) and "panic" not in said.err.lower()
    assert said.err.count("\n") <= 1
    with JournalReader(places.desk_journal("demo")) as reader:
        assert {str(one.key.session) for one in reader.decisions()} == {str(session) for session in REMEMBERED}


def test_a_missing_memory_is_accepted_as_an_empty_one(run: Run, desk: Path) -> None:
    known = bound().rows
    gone(desk)
    accepted = run("memory", "accept", "--json")
    assert accepted.code == 0
    assert (accepted.json["rows"], accepted.json["known"]) == (0, known)
    assert run("--daily", "--session", DUE).code == 0
    assert bound().rows > 0


@pytest.mark.parametrize("stale", ["demo.memory", "demo.db"])
def test_an_older_memory_or_an_older_journal_is_refused_until_it_is_accepted(
    run: Run, desk: Path, tmp_path: Path, stale: str
) -> None:
    kept = tmp_path / "kept"
    shutil.copytree(desk, kept)
    assert run("--daily", "--session", DUE).code == 0
    old = desk / stale
    if old.is_dir():
        shutil.rmtree(old)
        shutil.copytree(kept / stale, old)
    else:
        for file in desk.glob(f"{stale}*"):
            file.unlink()
        shutil.copy(kept / stale, old)
    before = bound().rows
    refused = run("--daily", "--session", DUE if old.suffix == ".db" else "2024-02-16")
    assert refused.code == 65 and refused.err.count("\n") == 1
    assert ("is older than" if old.is_dir() else "is newer than") in refused.err
    pinned = run("memory", "pin", run("memory", "list", "--json").json["memories"][0]["id"])
    assert pinned.code == 65 and bound().rows == before
    assert run("memory", "accept").code == 0
    assert run("--daily", "--session", DUE if old.suffix == ".db" else "2024-02-16").code == 0


def test_another_desks_memory_is_refused(run: Run, desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAPERDESK_DESK__SYMBOLS", "BXWD")
    for session in REMEMBERED:
        assert run("--daily", "--session", str(session), "--desk", "other").code == 0
    monkeypatch.setenv("PAPERDESK_DESK__SYMBOLS", MEMORY["PAPERDESK_DESK__SYMBOLS"])
    shutil.rmtree(desk / "demo.memory")
    shutil.copytree(desk / "other.memory", desk / "demo.memory")
    refused = run("--daily", "--session", DUE)
    assert refused.code == 65 and refused.err.count("\n") == 1


def test_a_backup_puts_journal_and_memory_back_together(run: Run, desk: Path, tmp_path: Path) -> None:
    backup = tmp_path / "demo.zip"
    made = run("backup", str(backup), "--json")
    assert made.code == 0, made.err
    assert (made.json["backup"], made.json["bytes"], made.json["memory"]) == (str(backup), backup.stat().st_size, True)
    with ZipFile(backup) as archive:
        names = archive.namelist()
        shown = json.loads(archive.read("configuration.json"))
    assert shown["desk"]["preset"] == "desk"
    assert not [
        name
        for name in names
        if name.split("/")[0] not in {"backup.json", "configuration.json", "journal.db", "memory"}
    ]
    again = run("backup", str(backup))
    assert again.code == 65 and again.err.count("\n") == 1
    before = bound()
    remembered = run("memory", "list", "--json").json["memories"]
    status = run("status", "--json").json
    assert run("--daily", "--session", DUE).code == 0
    (desk / "demo.db").write_bytes(b"no journal")
    restored = run("restore", str(backup), "--json")
    assert restored.code == 0, restored.err
    assert Path(restored.json["kept"]).read_bytes() == b"no journal"
    assert Path(restored.json["memory_kept"]).is_dir()
    assert bound() == before and quick_check(desk / "demo.db") == ()
    assert run("memory", "list", "--json").json["memories"] == remembered
    assert run("status", "--json").json["value"] == status["value"]
    assert run("--daily", "--session", DUE).code == 0
    assert run("doctor").code == 0


def test_a_backup_waits_for_no_run_and_refuses_a_memory_that_is_not_the_journals(
    run: Run, desk: Path, tmp_path: Path
) -> None:
    backup = tmp_path / "demo.zip"
    with desk_lock("demo"):
        for action in ("backup", "restore"):
            if action == "restore":
                backup.write_bytes(b"")
            assert run(action, str(backup)).code == 75
    backup.unlink()
    gone(desk)
    assert run("backup", str(backup)).code == 65
    assert not list(tmp_path.glob("*demo.zip*")), "nothing is left of it"


def test_what_is_no_sound_backup_of_this_desk_replaces_nothing(run: Run, desk: Path, tmp_path: Path) -> None:
    backup = tmp_path / "demo.zip"
    assert run("backup", str(backup)).code == 0
    whole, before = backup.read_bytes(), contents_of(desk)
    middle = len(whole) // 2
    for content in (whole[:middle], whole[:middle] + bytes(64) + whole[middle + 64 :], b"text", b""):
        backup.write_bytes(content)
        ended = run("restore", str(backup))
        assert ended.code == 65 and ended.err.count("\n") == 1, ended.err
        assert contents_of(desk) == before
    backup.write_bytes(whole)
    other = run("restore", str(backup), "--desk", "demo-2")
    assert other.code == 65 and "--desk" in other.err
    assert not (desk / "demo-2.db").exists()
    assert run("restore", str(desk / "demo.db")).code == 2
    assert run("restore", str(tmp_path / "none.zip")).code == 65
    assert run("backup", str(tmp_path / "x.zip"), "--desk", "nobody").code == 65


def test_a_new_home_is_its_owners_alone(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "parent" / "home"
    monkeypatch.setenv("PAPERDESK_HOME", str(home))
    assert run("halt").code == 0
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (home, *home.rglob("*")) if path.is_dir()}
    assert len(modes) > 2 and set(modes.values()) == {0o700}
    assert stat.S_IMODE(home.parent.stat().st_mode) != 0o700
