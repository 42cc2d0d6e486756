"""A change of a memory's embedder: every text is embedded anew beside the old store, which is deleted once the new one
is complete."""

from __future__ import annotations

import shutil
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from engine.app.desk_lock import desk_lock
from engine.app.memory import finish_replacing, memory_errors, part_of, replace_memory
from engine.app.stored_memory import RecordedEmbedder, StoredMemory
from engine.domain.run import ModelUse
from engine.errors import DataError
from engine.services import Services
from engine.session.cost_meter import CostMeter


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
