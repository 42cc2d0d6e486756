"""Memories on disk: one writer, readers that see what is new, and nothing lost by kill, damage or a full disk."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from memory.embedders import HashEmbedder
from memory.errors import (
    EmbedderMismatch,
    InvalidRecord,
    MemoryLocked,
    ReadOnly,
    StoreDamaged,
    StoreError,
)
from memory.in_memory_store import InMemoryStore
from memory.lancedb_store import LanceStore
from memory.recall import LayeredMemory
from tests.memory.chosen_vectors import ChosenVectors, news
from tests.memory.writing_process import EMBEDDER, live

REPO = Path(__file__).resolve().parent.parent.parent
PRESET = "finagent"  # nothing fades, so every record can be looked for


def opened(folder: Path, *, writing: bool) -> LayeredMemory:
    return LayeredMemory(LanceStore(folder, EMBEDDER, writing=writing), EMBEDDER, PRESET)


def python(*command: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *map(str, command)], cwd=REPO, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def started(folder: Path, days: int) -> subprocess.Popen[str]:
    """A writer in a process of its own that has opened the store."""
    process = python("-m", "tests.memory.writing_process", folder, str(days))
    assert process.stdout is not None and process.stdout.readline() == "open\n"
    return process


def kill_and_look(folder: Path, kills: int, days: int) -> None:
    chance = random.Random(kills)
    whole = LayeredMemory(InMemoryStore(EMBEDDER.dimension), EMBEDDER, PRESET)
    live(whole, 1, days)
    texts = {scored.record.id: scored.record.text for scored in whole.scored_records(days)}
    rows = []

    for _ in range(kills):
        process = started(folder, days)
        assert process.stdout is not None
        for _ in range(chance.randrange(2, 8)):  # days that are written; the next one is under way
            process.stdout.readline()
        process.kill()
        process.communicate()

        store = LanceStore(folder, EMBEDDER, writing=False)
        records, touches = store.records(), store.touches()
        assert len({record.id for record in records}) == len(records)
        assert len({touch.id for touch in touches}) == len(touches)
        assert all(texts[record.id] == record.text for record in records)
        assert {touch.record_id for touch in touches} <= {record.id for record in records}
        sequences = [row.sequence for row in (*records, *touches)]
        assert sorted(sequences) == list(range(1, len(sequences) + 1))
        rows.append(len(sequences))
    assert rows == sorted(rows)
    assert rows[-1] > rows[0]

    with started(folder, days) as process:
        process.communicate()
    assert process.returncode == 0
    with opened(folder, writing=True) as memory:
        assert memory.scored_records(days + 0.5) == whole.scored_records(days + 0.5)
        assert memory.recall("MSFT", {"": "news 3"}, days + 0.5) == whole.recall("MSFT", {"": "news 3"}, days + 0.5)
        assert not list(folder.rglob(".tmp*"))


@pytest.mark.slow
def test_a_killed_writer_leaves_a_store_that_goes_on(tmp_path: Path) -> None:
    kill_and_look(tmp_path / "memory", kills=2, days=20)


@pytest.mark.slow
def test_a_hundred_killed_writers_leave_a_store_that_goes_on(tmp_path: Path) -> None:
    kill_and_look(tmp_path / "memory", kills=100, days=1200)


OTHER = """
import sys
from pathlib import Path
from memory.errors import MemoryLocked
from memory.lancedb_store import LanceStore
from memory.recall import LayeredMemory
from tests.memory.writing_process import EMBEDDER, live

def opened(writing):
    return LayeredMemory(LanceStore(Path(sys.argv[1]), EMBEDDER, writing=writing), EMBEDDER, "finagent")

memory = opened(False)
for line in sys.stdin:
    if line.strip() == "write":
        try:
            memory = opened(True)
        except MemoryLocked:
            print("locked", flush=True)
            continue
        print("open", flush=True)
        live(memory, 4, 10_000)
    now = float(line)
    hits = [hit for found in memory.recall("MSFT", {"": "x"}, now, k=100).values() for hit in found]
    touches = [len(memory.lifeline(hit.record.id)) for hit in hits]
    print(sorted(hit.record.text for hit in hits), sum(touches), flush=True)
"""


def test_another_process_reads_what_is_new_and_only_one_writes(tmp_path: Path) -> None:
    """Both with one other process, which takes longer to start than all that it does."""
    with opened(tmp_path, writing=True) as memory:
        names = memory.remember([news("first")], 1)
        other = python("-c", OTHER, tmp_path)

        def read(command: float | str) -> str:
            assert other.stdin is not None and other.stdout is not None
            print(command, file=other.stdin, flush=True)
            return other.stdout.readline().strip()

        assert read(1) == "['first'] 1"
        memory.remember([news("second")], 2)
        assert read(2) == "['first', 'second'] 2"
        memory.cite(names, 2, "decision")
        assert read(2) == "['first', 'second'] 3"
        memory.optimize()
        memory.remember([news("third")], 3)
        assert read(3) == "['first', 'second', 'third'] 4"
        assert read(1) == "['first'] 2"  # the day before; the line is the whole one
        assert read("write") == "locked"
    try:
        assert read("write") == "open"
        with pytest.raises(MemoryLocked):
            LanceStore(tmp_path, EMBEDDER, writing=True)
        assert other.poll() is None
    finally:
        other.kill()
        other.communicate()
    LanceStore(tmp_path, EMBEDDER, writing=True).close()

    with opened(tmp_path, writing=True), pytest.raises(MemoryLocked):
        LanceStore(tmp_path, EMBEDDER, writing=True)


def test_a_reader_writes_nothing(tmp_path: Path) -> None:
    with opened(tmp_path, writing=True) as memory:
        memory.remember([news("one")], 1)
    files = sorted(path for path in tmp_path.rglob("*"))

    reader = opened(tmp_path, writing=False)
    reader.sweep(500)

    with pytest.raises(ReadOnly):
        reader.remember([news("two")], 2)
    with pytest.raises(ReadOnly):
        reader.optimize()
    assert sorted(path for path in tmp_path.rglob("*")) == files
    with pytest.raises(StoreError):
        LanceStore(tmp_path / "nowhere", EMBEDDER, writing=False)
    assert not (tmp_path / "nowhere").exists()


def test_a_store_of_another_embedder_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path, writing=True) as memory:
        memory.remember([news("one")], 1)

    for other in (HashEmbedder(), ChosenVectors(dimension=9)):
        for writing in (True, False):
            with pytest.raises(EmbedderMismatch, match=rf"chosen-8 .*{other.id}"):
                LanceStore(tmp_path, other, writing=writing)
    opened(tmp_path, writing=True).close()


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A store of some days, compacted once, in several files, and the texts in it; to be copied."""
    folder = tmp_path_factory.mktemp("grown") / "memory"
    with opened(folder, writing=True) as memory:
        live(memory, 1, 12)
        return folder, sorted(scored.record.text for scored in memory.scored_records(12))


Write = Callable[[Path], list[str]]


@pytest.fixture
def written(grown: tuple[Path, list[str]]) -> Write:
    """Gives a folder the store of some days; returns the texts in it."""

    def write(folder: Path) -> list[str]:
        shutil.copytree(grown[0], folder, dirs_exist_ok=True)
        return grown[1]

    return write


@pytest.mark.parametrize("part", ["records.lance/data", "records.lance/_versions", "touches.lance/data"])
@pytest.mark.parametrize("left", [0, 0.5])
def test_a_file_cut_short_is_named_and_put_back(tmp_path: Path, written: Write, part: str, left: float) -> None:
    folder = tmp_path / "memory"
    texts = written(folder)
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    # The newest, which the newest version needs; what a compaction replaced is there for older ones alone.
    files = [path for path in (folder / part).iterdir() if path.suffix in (".lance", ".manifest")]
    victim = max(files, key=lambda path: path.stat().st_mtime_ns)
    content = victim.read_bytes()
    victim.write_bytes(content[: int(len(content) * left)])

    for writing in (False, True):
        with pytest.raises(StoreDamaged) as e:
            opened(folder, writing=writing)
        assert "\n" not in str(e.value) and len(str(e.value)) < 600
        assert f"({part}/{victim.name})" in str(e.value)
    others = {path.relative_to(copy) for path in copy.rglob("*") if path.is_file() and path.name != "memory.lock"}
    assert all((folder / name).exists() for name in others)
    victim.write_bytes(content)

    with opened(folder, writing=True) as memory:
        assert sorted(scored.record.text for scored in memory.scored_records(12)) == texts


def test_a_lost_version_is_damage_and_not_a_new_store(tmp_path: Path, written: Write) -> None:
    written(tmp_path)
    shutil.rmtree(tmp_path / "records.lance" / "_versions")

    with pytest.raises(StoreDamaged):
        opened(tmp_path, writing=True)


def test_a_writer_killed_while_it_made_the_tables_leaves_a_beginning(tmp_path: Path) -> None:
    (tmp_path / "records.lance" / "_versions").mkdir(parents=True)
    (tmp_path / "records.lance" / "data").mkdir()
    (tmp_path / "records.lance" / "_versions" / ".tmp_1.manifest_x").write_bytes(b"half")

    with pytest.raises(StoreError):
        LanceStore(tmp_path, EMBEDDER, writing=False)
    with opened(tmp_path, writing=True) as memory:
        memory.remember([news("one")], 1)
        assert len(memory.scored_records(1)) == 1


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from memory.errors import StoreFull
from memory.lancedb_store import LanceStore
from memory.recall import LayeredMemory
from tests.memory.chosen_vectors import news
from tests.memory.writing_process import EMBEDDER

memory = LayeredMemory(LanceStore(Path(sys.argv[1]), EMBEDDER, writing=True), EMBEDDER, "finagent")
names = memory.remember([news("before")], 1)
before = memory.scored_records(1)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
for limit in (0, 300, 20_000):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        memory.remember([news(f"{n} " * 4000) for n in range(40)], 2)
    except StoreFull:
        pass
    else:
        raise SystemExit(f"written at a limit of {limit}")
    assert memory.scored_records(2) == before, limit
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
memory.remember([news("after")], 3)
print([scored.record.text for scored in memory.scored_records(3)])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="file size limits are Unix's")
def test_where_there_is_no_room_nothing_is_lost(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path)], cwd=REPO, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "['before', 'after']"
    assert sorted(s.record.text for s in opened(tmp_path, writing=False).scored_records(3)) == ["after", "before"]


def test_what_a_killed_writer_left_is_swept_by_the_next(tmp_path: Path, written: Write) -> None:
    texts = written(tmp_path)
    left = tmp_path / "touches.lance" / "_versions" / ".tmp_7.manifest_0a1b"
    left.write_bytes(b"half a version")

    opened(tmp_path, writing=False)
    assert left.exists()
    with opened(tmp_path, writing=True) as memory:
        assert not left.exists()
        assert sorted(scored.record.text for scored in memory.scored_records(12)) == texts


def test_small_files_ask_to_be_put_together(tmp_path: Path) -> None:
    with opened(tmp_path, writing=True) as memory:
        for day in range(1, 41):
            memory.remember([news(f"of day {day}")], day)
        assert memory.needs_compaction
        stood = memory.scored_records(40)

        report = memory.optimize()

        assert not memory.needs_compaction
        assert report.records == 40 and report.bytes_after > 0
        assert memory.scored_records(40) == stood
    with opened(tmp_path, writing=True) as memory:
        assert not memory.needs_compaction


def test_a_long_life_leaves_few_files(tmp_path: Path) -> None:
    most = 0
    store = LanceStore(tmp_path, EMBEDDER, writing=True)
    with LayeredMemory(store, EMBEDDER, PRESET) as memory:
        for day in range(1, 66):
            memory.remember([news(f"of day {day}")], day)
            memory.cite([scored.record.id for scored in memory.scored_records(day)][:1], day, f"decision {day}")
            most = max(most, sum(path.is_file() for path in tmp_path.rglob("*")))
            if memory.needs_compaction:
                store.optimize(keep=timedelta(milliseconds=1))
                assert sum(path.is_file() for path in tmp_path.rglob("*")) < most
        stood = memory.scored_records(65)
    assert most < 150
    with opened(tmp_path, writing=False) as reader:
        assert reader.scored_records(65) == stood


@pytest.mark.filterwarnings("ignore:optimize.cleanup_older_than=0:UserWarning")
def test_a_reader_reads_on_whose_version_is_gone(tmp_path: Path) -> None:
    with opened(tmp_path, writing=True) as memory:
        memory.remember([news("one")], 1)
        memory.remember([news("two")], 2)
    reader = LanceStore(tmp_path, EMBEDDER, writing=False)
    reader._records_table.checkout(2)  # as in the middle of a read: before the second commit
    assert len(reader.records()) == 1
    writer = LanceStore(tmp_path, EMBEDDER, writing=True)
    writer.optimize(keep=timedelta(0))
    writer.close()
    with pytest.raises(Exception, match=r"(?i)not found"):
        reader._records_table.to_arrow()
    assert sorted(record.text for record in reader.records()) == ["one", "two"]


def test_a_failed_compaction_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LanceStore(tmp_path, EMBEDDER, writing=True)
    with LayeredMemory(store, EMBEDDER, PRESET) as memory:
        for day in range(1, 4):
            memory.remember([news(f"of day {day}")], day)

        def refuses(**said: object) -> None:
            raise RuntimeError("Compaction failed:\n  conflict")

        with monkeypatch.context() as patch:
            patch.setattr(store._records_table, "optimize", refuses)
            with pytest.raises(StoreError, match="Compaction failed: conflict"):
                memory.optimize()
        with monkeypatch.context() as patch:
            patch.setattr(store._records_table, "optimize", lambda **said: None)
            with pytest.raises(StoreError, match=r"records .* 3 "):
                memory.optimize()
        assert len(memory.scored_records(3)) == 3


def test_an_empty_text_or_a_vector_that_is_none_changes_nothing_on_disk(tmp_path: Path) -> None:
    with opened(tmp_path, writing=True) as memory:
        memory.remember([news("one")], 1)
        for bad in (news(""), news("x", importance=float("inf"))):
            with pytest.raises(InvalidRecord):
                memory.remember([news("two"), bad], 2)
    assert [s.record.text for s in opened(tmp_path, writing=False).scored_records(9)] == ["one"]
