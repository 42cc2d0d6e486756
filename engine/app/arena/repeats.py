"""Repeats of an arena: seeds counted up, seats rotated, each repeat a record of its own."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from decimal import Decimal
from typing import Any

from engine.app.arena.arena import run_arena
from engine.app.arena.record import ArenaSpec, arena_lock, begun, is_begun, keep_record, played_document, repeat_of
from engine.app.bench.jobs import begin_worker, stop_requested
from engine.errors import TryAgainLater
from engine.reports.documents.arena import tournament_document
from engine.reports.documents.row_json import Row
from engine.services import Services

Stop = Callable[[], bool]
_PATIENCE = 0.2
"""Seconds between two checks whether to stop."""


def run_repeats(
    services: Services,
    spec: ArenaSpec,
    *,
    jobs: int = 1,
    replay: bool = False,
    budget: Decimal | None = None,
    stop: Stop = lambda: False,
) -> Row | None:
    """Play all repeats of an arena, `jobs` at a time, and keep the record of the whole; those that are done already are
    not played again. `budget` is shared evenly by the repeats that are left. Returns the document of those that are
    done, None where none is.

    Raises as `run_arena` does.
    """
    with arena_lock(spec.run):
        return _run_repeats(services, begun(spec), jobs, (replay, budget), stop)


def _run_repeats(
    services: Services, spec: ArenaSpec, jobs: int, limits: tuple[bool, Decimal | None], stop: Stop
) -> Row | None:
    replay, budget = limits
    keep_record(spec, None)
    specs = [repeat_of(spec, number) for number in range(spec.repeats)]
    done: dict[str, Mapping[str, Any]] = {}
    for one in specs:
        if (document := _done(one.run)) is not None and not replay:
            done[one.run] = document
    left = [one for one in specs if one.run not in done]
    each = budget / len(left) if budget is not None and left else None
    try:
        documents = _play(services, left, jobs, (replay, each), stop)
    except TryAgainLater as error:
        text = str(error).partition("; `paperdesk arena --resume")[0]
        raise type(error)(f"{text}; `paperdesk arena --resume {spec.run}` goes on") from None
    done |= {one["run"]: one for one in documents if not one["interrupted"]}
    if not done:
        return None
    arenas = [done[one.run] for one in specs if one.run in done]
    baseline = [seat.name for seat in spec.seating().agents if seat.baseline]
    whole = tournament_document(spec.run, arenas, spec.repeats, baseline)
    keep_record(spec, whole)
    return whole


def repeat_documents(spec: ArenaSpec) -> Sequence[Mapping[str, Any]]:
    """The documents of the repeats that came to their end, in their order."""
    found = (_done(repeat_of(spec, number).run) for number in range(spec.repeats))
    return [one for one in found if one is not None]


def _done(run: str) -> Mapping[str, Any] | None:
    """The document of a repeat that came to its end. Raises MalformedData."""
    document = played_document(run) if is_begun(run) else None
    return None if document is None or document["interrupted"] else document


def _play(
    services: Services, specs: Sequence[ArenaSpec], jobs: int, limits: tuple[bool, Decimal | None], stop: Stop
) -> Sequence[Row]:
    if jobs > 1 and len(specs) > 1:
        return _side_by_side(services, specs, min(jobs, len(specs)), limits, stop)
    played = []
    for spec in specs:
        if stop():
            break
        played.append(run_arena(services, spec, replay=limits[0], budget=limits[1], stop=stop))
    return played


def _side_by_side(
    services: Services, specs: Sequence[ArenaSpec], jobs: int, limits: tuple[bool, Decimal | None], stop: Stop
) -> Sequence[Row]:
    context = multiprocessing.get_context("spawn")
    stopping = context.Event()
    pool = ProcessPoolExecutor(jobs, context, begin_worker, (stopping,))
    try:
        futures = [pool.submit(run_there, services, spec, *limits) for spec in specs]
        while (state := wait(futures, _PATIENCE, FIRST_EXCEPTION)).not_done:
            if any(not one.cancelled() and one.exception() for one in state.done):
                break
            if stop() and not stopping.is_set():
                stopping.set()
                for one in futures:
                    one.cancel()
        return [one.result() for one in futures if not one.cancelled()]
    except BrokenProcessPool:
        raise TryAgainLater("a process of the arena ended without a result: try again with fewer --jobs") from None
    finally:
        stopping.set()
        pool.shutdown(cancel_futures=True)


def run_there(services: Services, spec: ArenaSpec, replay: bool, budget: Decimal | None) -> Row:
    """Play one repeat in a process of the pool."""
    return run_arena(services, spec, replay=replay, budget=budget, stop=stop_requested)
