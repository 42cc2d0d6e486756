"""Stored memories of desks and backtests, to be listed, optimized, exported or embedded anew."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from engine.app.memory.memory import finish_replacing, memory_errors, part_of, replace_memory
from engine.app.records.desk_journal import desk_lock
from engine.domain.run import ModelUse
from engine.errors import DataError
from engine.journal.entries import RunEntry
from engine.ports import Calendar
from engine.preset import load_preset
from engine.reports.documents.memory import export_rows
from engine.reports.documents.records import PROBED, latest_backtests, open_records
from engine.services import Services
from engine.session.cost_meter import CostMeter
from engine.settings import places
from memory.errors import EmbedderUnavailable
from memory.ports import Embedder, Matrix
from memory.presets import PRESETS, MemoryPreset
from memory.recall import LayeredMemory


@dataclass(frozen=True, slots=True)
class RecordedEmbedder:
    """The id and dimension of the embedder that made a store's vectors; it embeds nothing."""

    id: str
    dimension: int

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Raises EmbedderUnavailable."""
        raise EmbedderUnavailable(f"{self.id}: this memory was opened to be read, not to be searched")


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
        raise DataError(f"{file} is there already: name another file") from None
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
