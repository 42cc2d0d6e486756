"""The memory of a run or of a desk: which embedder, which store, by which preset's constants."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from connectors.wiring.reference import open_embedder
from engine import places
from engine.config import Config
from engine.cycle.recall import TradingMemory
from engine.domain.run import ModelUse
from engine.errors import ConfigError, DataError, MissingData, TryAgainLater
from engine.ports import Calendar
from engine.preset import Preset
from memory.errors import (
    EmbedderMismatch,
    EmbedderUnavailable,
    LayeredMemoryError,
    MemoryLocked,
    StoreError,
    UnknownPreset,
    UnknownRecord,
)
from memory.in_memory_store import InMemoryStore
from memory.recall import LayeredMemory


@contextmanager
def memory_errors() -> Iterator[None]:
    """The memory's errors as ours: locked is TryAgainLater; what the configuration asks for and cannot be had is
    ConfigError; a store that is damaged, full or not to be used is DataError."""
    try:
        yield
    except MemoryLocked as error:
        raise TryAgainLater(str(error)) from error
    except EmbedderMismatch as error:
        raise ConfigError(f"{error}; or embed it anew: paperdesk memory reembed") from error
    except (EmbedderUnavailable, UnknownPreset) as error:
        raise ConfigError(str(error)) from error
    except UnknownRecord as error:
        raise MissingData(str(error)) from error
    except LayeredMemoryError as error:
        raise DataError(str(error)) from error


def remembers(preset: Preset) -> bool:
    """Whether a preset has a memory."""
    return "memory" in preset.steps


@contextmanager
def desk_memory(
    preset: Preset,
    config: Config,
    calendar: Calendar,
    notice: Callable[[str], None],
    on_use: Callable[[ModelUse], None] = lambda use: None,
) -> Iterator[TradingMemory | None]:
    """A desk's memory on disk, with its one writer's place until the block ends; None for a preset without one. Tidies
    up at the end where that is due; `notice` hears where it could not, `on_use` of every call of a remote embedder.
    Raises as `memory_errors` says, within the block as well."""
    if not remembers(preset):
        yield None
        return
    from memory.lancedb_store import LanceStore

    place = places.desk_memory(config.desk.name)
    finish_replacing(place)
    with memory_errors(), open_embedder(config, on_use=on_use) as embedder:
        store = LanceStore(place, embedder, writing=True)
        with LayeredMemory(store, embedder, preset.memory) as memory:
            yield TradingMemory(memory, calendar)
            if memory.needs_compaction:
                try:
                    memory.optimize()
                except StoreError as error:
                    notice(str(error))


@contextmanager
def run_memory(
    preset: Preset,
    config: Config,
    calendar: Calendar,
    on_use: Callable[[ModelUse], None] = lambda use: None,
    embedder_spec: str | None = None,
) -> Iterator[TradingMemory | None]:
    """The memory of a backtest, in this process alone, by an embedder (None: the configured one); None for a preset
    without one. `on_use` hears of every call of a remote embedder. Raises as `memory_errors` says, within the block as
    well."""
    if not remembers(preset):
        yield None
        return
    with memory_errors(), open_embedder(config, on_use=on_use, spec=embedder_spec) as embedder:
        store = InMemoryStore(embedder.dimension)
        yield TradingMemory(LayeredMemory(store, embedder, preset.memory), calendar)


def keep_run_memory(memory: TradingMemory | None, run: str) -> str:
    """Writes what a backtest remembered beside its journal, whole or not at all. Returns why that could not be, empty
    where it could: the run stands without it."""
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


def replace_memory(place: Path, with_: Path) -> None:
    """Puts a whole store in the place of another, which goes once the new one stands. A process that is killed in
    between leaves what `finish_replacing` goes on with."""
    old = _before(place)
    place.rename(old)
    with_.rename(place)
    shutil.rmtree(old)


def finish_replacing(place: Path) -> None:
    """Goes on with a replacement that was cut off, where there is one: the old store has left its place only once the
    new one was whole."""
    old = _before(place)
    if not old.exists():
        return
    if not place.exists():
        new = part_of(place)
        (new if new.exists() else old).rename(place)
    shutil.rmtree(old, ignore_errors=True)


def part_of(place: Path) -> Path:
    """Where a store is written until it is whole."""
    return place.with_name(f"{place.name}.part")


def _before(place: Path) -> Path:
    return place.with_name(f"{place.name}.before")
