"""What a desk or a backtest has remembered, to be looked at, tidied or exported: nothing is embedded for that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from connectors.wiring.memories import memory_errors
from connectors.wiring.runs import default_symbols
from connectors.wiring.sources import calendar_table
from engine import places
from engine.config import Config
from engine.journal.entries import RunEntry
from engine.market.trading_hours import desk_calendar
from engine.ports import Calendar
from engine.preset import load_preset
from memory.errors import EmbedderUnavailable
from memory.ports import Embedder, Matrix
from memory.recall import LayeredMemory


@dataclass(frozen=True, slots=True)
class RecordedEmbedder:
    """Who made the vectors of a store that is only looked at: nothing is embedded then."""

    id: str
    dimension: int

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Raises EmbedderUnavailable."""
        raise EmbedderUnavailable(f"{self.id}: this memory was opened to be looked at, not to be searched")


@dataclass(frozen=True, slots=True)
class Kept:
    """Where a memory is kept, the name of the constants that it lives by (memory/presets.py), and its days. `preset`
    is None for a run of a rule strategy."""

    place: Path
    preset: str | None
    constants: str
    calendar: Calendar

    @property
    def there(self) -> bool:
        """Whether anything was kept."""
        from memory.lancedb_store import RECORDS, table_exists

        return table_exists(self.place, RECORDS)

    @contextmanager
    def opened(self, writing: bool = False) -> Iterator[LayeredMemory]:
        """The memory, to be looked at or tidied. Raises as `memory_errors` says, within the block as well."""
        from memory.lancedb_store import LanceStore, store_embedder

        with memory_errors():
            embedder: Embedder = RecordedEmbedder(*store_embedder(self.place))
            store = LanceStore(self.place, embedder, writing=writing)
            with LayeredMemory(store, embedder, self.constants) as memory:
                yield memory


def kept_by_desk(config: Config) -> Kept:
    """Where the configured desk keeps its memory."""
    preset = load_preset(config.desk.preset)
    calendar = desk_calendar(default_symbols(config), calendar_table())
    return Kept(places.desk_memory(config.desk.name), preset.name, preset.memory, calendar)


def kept_by_run(entry: RunEntry, config: Config) -> Kept:
    """Where a run's memory is kept: a backtest has its own, a desk's daily run shares the desk's."""
    if entry.spec is None:
        return kept_by_desk(config)
    calendar = desk_calendar(entry.spec.symbols, calendar_table())
    place = places.run_memory(entry.id)
    if entry.spec.preset is None:
        return Kept(place, None, "desk", calendar)
    preset = load_preset(entry.spec.preset)
    return Kept(place, preset.name, preset.memory, calendar)
