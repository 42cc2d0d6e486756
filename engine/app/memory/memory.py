"""The memory of a run or of a desk: an embedder, a store, and a preset's constants."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from engine.app.memory.memory_changes import follow_changes
from engine.cycle.recall import TradingMemory
from engine.errors import ConfigError, DataError, MissingData, TryAgainLater
from engine.ports import Calendar
from engine.preset import Preset
from engine.services import OnUse, Services
from engine.settings import places
from memory.errors import (
    EmbedderMismatch,
    EmbedderUnavailable,
    LayeredMemoryError,
    MemoryLocked,
    StoreDamaged,
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
