"""A memory under another embedder: every text is embedded anew beside the old store, which goes once the new one is
whole."""

from __future__ import annotations

import shutil
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from connectors.wiring.desk_lock import desk_lock
from connectors.wiring.kept_memories import Kept, RecordedEmbedder
from connectors.wiring.memories import finish_replacing, memory_errors, part_of, replace_memory
from connectors.wiring.reference import open_embedder
from engine.config import Config
from engine.domain.run import ModelUse
from engine.errors import DataError
from engine.session.cost_meter import CostMeter


@dataclass(frozen=True, slots=True, kw_only=True)
class Reembedded:
    """What was done: the embedders before and after, how many memories there are (`done` is False where the embedder
    was that one already), and what a remote one cost."""

    place: Path
    before: str
    after: str
    count: int
    done: bool
    use: ModelUse


def reembed_memory(kept: Kept, config: Config, spec: str | None, desk: str | None) -> Reembedded:
    """Embeds a kept memory anew with an embedder (None: the configured one), under the lock of a desk where it is a
    desk's. Until all of it is written the old one stays in its place.

    Raises ConfigError for a spec that makes no vectors or an embedder that cannot be had, TryAgainLater where the desk
    runs or another process writes into the memory, DataError where it cannot be read or written.
    """
    from memory.lancedb_store import LanceStore, store_embedder
    from memory.reembed import reembed

    place, part, meter = kept.place, part_of(kept.place), CostMeter("")
    with desk_lock(desk) if desk is not None else nullcontext(), memory_errors():
        finish_replacing(place)
        recorded = RecordedEmbedder(*store_embedder(place))
        with open_embedder(config, on_use=meter.add, spec=spec) as embedder:
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
