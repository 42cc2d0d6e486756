"""The memory of a run or of a desk: an embedder, a store, and a preset's constants.

A desk's memory belongs to its journal: the journal has the number and the hash of the memory's last row.

Whoever writes into the memory says so before and after. A memory that is missing, older or newer than the journal, or
another desk's, decides nothing until the operator has restored or accepted it.

Pins of memories, memories to forget, and both taken back: the journal has them, the store of memories follows it.

Whoever writes into the memory brings it to what the journal says. So a change holds that was made while a run held the
memory, and a store that was put back from a copy is brought there again.

Stored memories of desks and backtests, to be listed, optimized, exported or embedded anew.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from engine.app.records.desk_journal import desk_lock
from engine.cycle.recall import TradingMemory
from engine.domain.run import ModelUse
from engine.errors import ConfigError, DataError, MissingData, TryAgainLater
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.messages.commands import ChangeMemory, MemoryChange
from engine.messages.events import MemoryWritten, Publish
from engine.ports import Calendar
from engine.preset import Preset, load_preset
from engine.reports.documents.memory import export_rows
from engine.reports.documents.records import PROBED, latest_backtests, open_records
from engine.services import OnUse, Services
from engine.session.cost_meter import CostMeter
from engine.settings import places
from memory.errors import (
    EmbedderMismatch,
    EmbedderUnavailable,
    InvalidRecord,
    LayeredMemoryError,
    MemoryLocked,
    StoreDamaged,
    StoreError,
    UnknownPreset,
    UnknownRecord,
)
from memory.in_memory_store import InMemoryStore
from memory.ports import Embedder, Matrix
from memory.presets import PRESETS, MemoryPreset
from memory.recall import LayeredMemory
from memory.record import NOTHING, Cause, Head


@contextmanager
def memory_errors() -> Iterator[None]:
    """The memory's errors as ours: locked is TryAgainLater; what the configuration asks for and cannot be had is
    ConfigError; a store that is damaged, full or not to be used is DataError."""
    try:
        yield
    except MemoryLocked as error:
        raise TryAgainLater(str(error)) from error
    except EmbedderMismatch as error:
        raise ConfigError(f"{error}; or recompute its vectors: paperdesk memory reembed") from error
    except (EmbedderUnavailable, UnknownPreset) as error:
        raise ConfigError(str(error)) from error
    except UnknownRecord as error:
        raise MissingData(str(error)) from error
    except StoreDamaged as error:
        raise DataError(f"{error} (paperdesk restore FILE)") from error
    except LayeredMemoryError as error:
        raise DataError(str(error)) from error


def remembers(preset: Preset) -> bool:
    """True where a preset has a memory."""
    return "memory" in preset.steps


@contextmanager
def desk_memory(
    services: Services,
    preset: Preset,
    calendar: Calendar,
    notice: Callable[[str], None],
    on_use: OnUse,
    *,
    writing: Callable[[LayeredMemory], AbstractContextManager[object]] = nullcontext,
) -> Iterator[TradingMemory | None]:
    """A desk's memory on disk, held by this one writer until the block ends; None for a preset without one. What the
    operator has pinned or forgotten is so before it is recalled, in a block of `writing`, which may refuse the memory.
    Small files are put together at the end where that is due; `notice` hears why any of that could
    not be, `on_use` of every call of a remote embedder, which stays within the services' limit. Raises as
    `memory_errors` says, within the block as well."""
    if not remembers(preset):
        yield None
        return
    from memory.lancedb_store import LanceStore

    place = places.desk_memory(services.desk)
    finish_replacing(place)
    with memory_errors(), services.open_embedder(None, on_use, limit=services.limit) as embedder:
        store = LanceStore(place, embedder, writing=True)
        with LayeredMemory(store, embedder, preset.memory.constants) as memory, writing(memory):
            troubles = follow_changes(memory, services.desk)
            for trouble in troubles:
                notice(trouble)
            yield TradingMemory(memory, calendar)
            for trouble in follow_changes(memory, services.desk):
                if trouble not in troubles:  # of a change that was asked for meanwhile
                    notice(trouble)
            if memory.needs_compaction:
                try:
                    memory.optimize()
                except StoreError as error:
                    notice(str(error))


@contextmanager
def run_memory(
    services: Services,
    preset: Preset,
    calendar: Calendar,
    *,
    embedder: str | None = None,
    on_use: OnUse = lambda use: None,
) -> Iterator[TradingMemory | None]:
    """The memory of a backtest, in this process alone, by an embedder (None: the configured one); None for a preset
    without one. `on_use` hears of every call of a remote embedder. Raises as `memory_errors` says, within the block as
    well."""
    if not remembers(preset):
        yield None
        return
    with memory_errors(), services.open_embedder(embedder, on_use, limit=services.limit) as opened:
        store = InMemoryStore(opened.dimension)
        yield TradingMemory(LayeredMemory(store, opened, preset.memory.constants), calendar)


def keep_run_memory(memory: TradingMemory | None, run: str) -> str:
    """Write a backtest's memory beside its journal, whole or not at all. Returns why that could not be done, empty
    where it was: the run's result does not depend on it."""
    if memory is None:
        return ""
    from memory.lancedb_store import LanceStore

    place = places.run_memory(run)
    part = part_of(place)
    try:
        for old in (part, place):
            if old.exists():
                shutil.rmtree(old)
        store = LanceStore(part, memory.embedder, writing=True)
        try:
            memory.write_to(store)
        finally:
            store.close()
        part.rename(place)
    except (LayeredMemoryError, OSError) as error:
        shutil.rmtree(part, ignore_errors=True)
        return f"what the run remembered could not be kept: {error}"
    return ""


def replace_memory(place: Path, new: Path) -> None:
    """Replace a store by a complete one, and delete the old one. A process that is killed in between leaves a state
    that `finish_replacing` completes."""
    old = _before(place)
    place.rename(old)
    new.rename(place)
    shutil.rmtree(old)


def finish_replacing(place: Path) -> None:
    """Complete a replacement that was interrupted, where there is one: the old store is moved only once the new one is
    complete."""
    old = _before(place)
    if not old.exists():
        return
    if not place.exists():
        part = part_of(place)
        (part if part.exists() else old).rename(place)
    shutil.rmtree(old, ignore_errors=True)


def part_of(place: Path) -> Path:
    """The place of a store until it is complete."""
    return place.with_name(f"{place.name}.part")


def _before(place: Path) -> Path:
    return place.with_name(f"{place.name}.before")


ACCEPT = "paperdesk memory accept"


def check_memory(memory: LayeredMemory | None, reader: JournalReader, desk: str) -> None:
    """Raise MissingData or DataError for a memory, None for none, that is not the one that the journal knows."""
    head, known = NOTHING if memory is None else memory.head, reader.last_of(MemoryWritten)
    if known is None or known.rows == 0 or head == (bound := Head(known.rows, known.last)):
        return
    of = f"the memory of the desk {desk}"
    accept = f"accept it as it is ({ACCEPT})"
    if memory is None or head.rows == 0:
        raise MissingData(
            f"{of} is missing, and its journal knows {known.rows:,} rows of it: restore a backup (paperdesk restore "
            f"FILE), or continue with an empty one ({ACCEPT})"
        )
    if head.rows < bound.rows:
        raise DataError(
            f"{of} is older than its journal ({head.rows:,} of {bound.rows:,} rows): restore the newest backup "
            f"(paperdesk restore FILE), or {accept}"
        )
    if not memory.holds(bound):
        raise DataError(
            f"{of} is not the one that its journal knows (row {bound.rows:,} is another): restore a backup of both "
            f"(paperdesk restore FILE), or {accept}"
        )
    if not known.open:
        raise DataError(
            f"{of} is newer than its journal ({head.rows:,} rows, {bound.rows:,} known): put the newer journal back "
            f"(paperdesk restore FILE), rebuild it from the account (paperdesk reconcile --rebuild), or {accept}"
        )


def known_head(reader: JournalReader) -> Head:
    """The last row of the memory that a journal knows."""
    known = reader.last_of(MemoryWritten)
    return NOTHING if known is None else Head(known.rows, known.last)


@dataclass(frozen=True, slots=True)
class MemoryBinding:
    """The journal's side of a memory that is written to.

    reader, record: read the journal, and write events into it.
    run: the run that writes, or the last one.
    now: the present moment, UTC.
    """

    desk: str
    reader: JournalReader
    record: Publish
    run: str
    now: Callable[[], datetime]

    @contextmanager
    def writing(self, memory: LayeredMemory) -> Iterator[None]:
        """Check the memory, and bind it before and after the block. Where the block does not come to its end the memory
        stays bound as one that may have gone on. Raises as `check_memory` does."""
        check_memory(memory, self.reader, self.desk)
        self.bind(memory.head, still_open=True)
        yield
        self.bind(memory.head)

    def bind(self, head: Head, *, still_open: bool = False) -> None:
        """Make a row the last one that the journal knows."""
        self.record(MemoryWritten(self.run, self.now(), head.rows, head.last, still_open))


CAUSES = {
    MemoryChange.PIN: Cause.PINNED,
    MemoryChange.UNPIN: Cause.UNPINNED,
    MemoryChange.FORGET: Cause.FORGOTTEN,
    MemoryChange.RESTORE: Cause.RESTORED,
}


def touch_key(reason: str, time: datetime) -> str:
    """The key of a change's touch, as a life-line shows it: who, when (UTC) and why."""
    moment = f"operator {time.astimezone(UTC).isoformat(timespec='milliseconds').replace('+00:00', 'Z')}"
    return f"{moment}: {reason}" if reason else moment


def last_changes(desk: str) -> list[tuple[datetime, ChangeMemory]]:
    """The last pin or unpin and the last forgetting or restoring of every memory of a desk, in the order in which they
    were made, each with its time (UTC). Raises what JournalReader raises."""
    journal = places.desk_journal(desk)
    if not journal.exists():
        return []
    last: dict[tuple[str, bool], tuple[datetime, ChangeMemory]] = {}
    with JournalReader(journal) as reader:
        for time, command in reader.commands(ChangeMemory):
            assert isinstance(command, ChangeMemory)
            pins = command.change in (MemoryChange.PIN, MemoryChange.UNPIN)
            last.pop((command.memory_id, pins), None)
            last[command.memory_id, pins] = (time, command)
    return list(last.values())


def follow_changes(memory: LayeredMemory, desk: str) -> list[str]:
    """Mark the memories of a desk as the last changes in its journal say. Returns why some cannot be marked so. Raises
    as `last_changes` does, and what the memory raises."""
    changes, troubles = last_changes(desk), []
    now = memory.latest if changes else 0.0
    for time, command in changes:
        try:
            memory.mark(command.memory_id, CAUSES[command.change], now, touch_key(command.reason, time))
        except UnknownRecord:
            continue  # it went with a store that is no more
        except InvalidRecord as error:
            troubles.append(str(error))
    return troubles


@dataclass(frozen=True, slots=True)
class RecordedEmbedder:
    """The id and dimension of the embedder that made a store's vectors; it embeds nothing."""

    id: str
    dimension: int

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Raises EmbedderUnavailable."""
        raise EmbedderUnavailable(f"{self.id}: this memory was opened without search")


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """A memory on disk: its folder, the constants that it lives by, and the calendar of its steps. `preset` is None
    for a run of a rule strategy."""

    place: Path
    preset: str | None
    constants: MemoryPreset
    calendar: Calendar

    @property
    def exists(self) -> bool:
        """True where anything was stored."""
        from memory.lancedb_store import RECORDS, table_exists

        return table_exists(self.place, RECORDS)

    @contextmanager
    def opened(self, writing: bool = False) -> Iterator[LayeredMemory]:
        """The memory, to be read or optimized. Raises as `memory_errors` says, within the block as well."""
        from memory.lancedb_store import LanceStore, store_embedder

        with memory_errors():
            embedder: Embedder = RecordedEmbedder(*store_embedder(self.place))
            store = LanceStore(self.place, embedder, writing=writing)
            with LayeredMemory(store, embedder, self.constants) as memory:
                yield memory


def memory_of_desk(services: Services) -> StoredMemory:
    """The configured desk's memory."""
    preset = load_preset(services.config.desk.preset)
    calendar = services.desk_calendar(services.symbols)
    return StoredMemory(places.desk_memory(services.desk), preset.name, preset.memory.constants, calendar)


def memory_of_run(services: Services, entry: RunEntry) -> StoredMemory:
    """A run's memory: a backtest has its own, a desk's daily run shares the desk's."""
    if entry.spec is None:
        return memory_of_desk(services)
    calendar = services.desk_calendar(entry.spec.symbols)
    place = places.run_memory(entry.id)
    if entry.spec.preset is None:
        return StoredMemory(place, None, PRESETS["desk"], calendar)
    preset = load_preset(entry.spec.preset)
    return StoredMemory(place, preset.name, preset.memory.constants, calendar)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedMemory:
    """A memory that is shown: a desk's, or with `run` a backtest's; `missing` is empty, or says why there is none."""

    stored: StoredMemory
    desk: str
    run: str | None
    title: str
    missing: str = ""

    @property
    def head(self) -> dict[str, object]:
        """The keys that every document of the memory begins with."""
        return {"schema": 1, "desk": self.desk, "run": self.run}


def select_memory(services: Services, run: str | None) -> SelectedMemory:
    """The memory of a run, or the desk's where none is named; where the desk has none, that of the latest backtest that
    has one. Raises MissingData for an unknown run."""
    stored, title, note = memory_of_desk(services), f"desk {services.desk}", ""
    if run is None and not stored.exists:
        run = next((name for name in latest_backtests(PROBED) if places.run_memory(name).is_dir()), None)
        note = "" if run is None else f" (the {title} has no memory yet; this is the latest backtest)"
    if run is not None:
        with open_records(services.desk, run) as records:
            entry = records.required.run(run)
        if entry.spec is None:
            run = None
        else:
            stored, title = memory_of_run(services, entry), f"backtest {run}"
    missing = "" if stored.exists else absence(stored, title)
    return SelectedMemory(stored=stored, desk=services.desk, run=run, title=title + note, missing=missing)


def absence(stored: StoredMemory, title: str) -> str:
    """The reason why a desk or run, by its title, has no memory."""
    if stored.preset is None:
        return f"the {title} has no memory: a rule strategy remembers nothing"
    if "memory" not in load_preset(stored.preset).steps:
        return f"the {title} has no memory: its preset {stored.preset} keeps none, desk does (desk.preset, --preset)"
    if title.startswith("desk"):
        return f"the {title} remembers nothing yet: paperdesk --daily writes what its preset {stored.preset} keeps"
    return f"the {title} left no memory at {stored.place}: run it again"


def export_memory(stored: StoredMemory, file: Path) -> int:
    """Write every memory with its changes, an object a line; the number of them. Raises DataError for a file that
    exists already or cannot be written."""
    with stored.opened() as memory:
        lines = [json.dumps(row, allow_nan=False) + "\n" for row in export_rows(memory, stored.calendar)]
    try:
        with file.open("x", encoding="utf-8") as out:
            out.writelines(lines)
    except FileExistsError:
        raise DataError(f"{file} already exists: name another file") from None
    except OSError as error:
        raise DataError(f"{file} cannot be written ({error.strerror}): name another file") from None
    return len(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reembedded:
    """Result of a change of embedder.

    place: the store's folder.
    before: id of the embedder before.
    after: id of the embedder after.
    count: memories in the store.
    done: False where the embedder was that one already.
    use: calls and cost of a remote embedder.
    """

    place: Path
    before: str
    after: str
    count: int
    done: bool
    use: ModelUse


def reembed_memory(services: Services, stored: StoredMemory, spec: str | None, desk: str | None) -> Reembedded:
    """Embed a stored memory anew with an embedder (None: the configured one), under the lock of a desk where it is a
    desk's. The old store stays in its place until the new one is complete.

    Raises ConfigError for a spec that makes no vectors or an embedder that cannot be had, TryAgainLater where the desk
    runs or another process writes into the memory, DataError where it cannot be read or written.
    """
    from memory.lancedb_store import LanceStore, store_embedder
    from memory.reembed import reembed

    place, part, meter = stored.place, part_of(stored.place), CostMeter("")
    with desk_lock(desk) if desk is not None else nullcontext(), memory_errors():
        finish_replacing(place)
        recorded = RecordedEmbedder(*store_embedder(place))
        with services.open_embedder(spec, meter.add) as embedder:
            source = LanceStore(place, recorded, writing=True)
            try:
                if (embedder.id, embedder.dimension) == (recorded.id, recorded.dimension):
                    count = len(source.records())
                    return Reembedded(
                        place=place, before=recorded.id, after=embedder.id, count=count, done=False, use=meter.use
                    )
                shutil.rmtree(part, ignore_errors=True)
                try:
                    target = LanceStore(part, embedder, writing=True)
                    try:
                        count = reembed(source, target, embedder)
                    finally:
                        target.close()
                except BaseException:
                    shutil.rmtree(part, ignore_errors=True)
                    raise
            finally:
                source.close()
            try:
                replace_memory(place, part)
            except OSError as error:
                raise DataError(f"memory at {place}: the new one could not take its place: {error.strerror}") from error
            return Reembedded(place=place, before=recorded.id, after=embedder.id, count=count, done=True, use=meter.use)
