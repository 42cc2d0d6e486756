"""Stored memories of desks and backtests, to be listed, optimized or exported without an embedder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from engine import places
from engine.app.memory import memory_errors
from engine.journal.entries import RunEntry
from engine.ports import Calendar
from engine.preset import load_preset
from engine.services import Services
from memory.errors import EmbedderUnavailable
from memory.ports import Embedder, Matrix
from memory.recall import LayeredMemory


@dataclass(frozen=True, slots=True)
class RecordedEmbedder:
    """The id and dimension of the embedder that made a store's vectors; it embeds nothing."""

    id: str
    dimension: int

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Raises EmbedderUnavailable."""
        raise EmbedderUnavailable(f"{self.id}: this memory was opened to be looked at, not to be searched")


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """A memory on disk: its folder, the name of its constants (memory/presets.py), and the calendar of its steps.
    `preset` is None for a run of a rule strategy."""

    place: Path
    preset: str | None
    constants: str
    calendar: Calendar

    @property
    def exists(self) -> bool:
        """Whether anything was stored."""
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
    return StoredMemory(places.desk_memory(services.desk), preset.name, preset.memory, calendar)


def memory_of_run(services: Services, entry: RunEntry) -> StoredMemory:
    """A run's memory: a backtest has its own, a desk's daily run shares the desk's."""
    if entry.spec is None:
        return memory_of_desk(services)
    calendar = services.desk_calendar(entry.spec.symbols)
    place = places.run_memory(entry.id)
    if entry.spec.preset is None:
        return StoredMemory(place, None, "desk", calendar)
    preset = load_preset(entry.spec.preset)
    return StoredMemory(place, preset.name, preset.memory, calendar)
