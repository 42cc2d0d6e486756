"""Jobs of a bench, one after the other or in processes of their own: a description in, a result out."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from engine.app.models.models import build_models
from engine.app.records.own_process import no_main_module
from engine.app.records.trial_index import count_result
from engine.app.research.agent_run import AgentRun, FirstPart, first_part, play
from engine.app.research.backtest import run_backtest
from engine.app.research.market_data import load_run
from engine.app.research.run_spec import Stop, preset_of
from engine.clock import LiveClock
from engine.domain.run import Result, RunSpec, TrialKind
from engine.errors import MissingData, StaleData, UsageError
from engine.lab.published_tables import PublishedTable, adjusted_market
from engine.market.as_of import Market
from engine.preset import Preset
from engine.services import Services
from engine.settings import places

if TYPE_CHECKING:
    from multiprocessing.synchronize import Event

T = TypeVar("T")
R = TypeVar("R")
_PATIENCE = 0.2
"""Seconds between two checks whether to stop."""


@dataclass(frozen=True, slots=True)
class Job:
    """One run of an agent: on one symbol of a published table, or (without a table) any backtest. `keep` writes its
    journal and memory, as a backtest does; `begun` is the file of the moment at which it was begun first."""

    spec: RunSpec
    table: PublishedTable | None
    title: str
    keep: bool = False
    begun: Path | None = None


@dataclass(frozen=True, slots=True)
class Played:
    """The outcome of a job: a result, or why there is none. A result that was interrupted is none."""

    result: Result | None
    trouble: str = ""

    @property
    def ended(self) -> bool:
        """True where the job came to its end."""
        return self.result is not None or bool(self.trouble)


OnDone = Callable[[Job, int], None]
"""A listener to each job that has ended, with the number that have by then."""
Keep = Callable[[int, Played], None]
"""A receiver of the outcome of each job that has ended, with the job's number."""


def run_jobs(
    services: Services,
    jobs: Sequence[Job],
    workers: int,
    stop: Stop = lambda: False,
    on_done: OnDone = lambda job, count: None,
    *,
    keep: Keep = lambda number, played: None,
) -> Mapping[int, Played]:
    """Play jobs, `workers` at a time; by number, those that came to their end, each told to `keep` as soon as it has.
    After `stop` no job begins, and those that are running end with their session; after a KeyboardInterrupt they end at
    once. Raises what a run raises, except for data that is missing or stale, which is its result."""

    ended: dict[int, Played] = {}

    def end(number: int, played: Played) -> None:
        if played.ended:
            ended[number] = played
            keep(number, played)
            on_done(jobs[number], len(ended))

    try:
        if workers > 1 and len(jobs) > 1:
            work = partial(_play_there, services)
            in_workers(work, jobs, workers, stop, lambda number, future: end(number, _outcome(future)))
            return ended
        for number, job in enumerate(jobs):
            if stop():
                break
            end(number, play_job(services, job, stop))
    except KeyboardInterrupt:
        pass  # what has come to its end counts
    return ended


def play_job(services: Services, job: Job, stop: Stop) -> Played:
    """Play one job in this process."""
    try:
        market = job_market(services, job)
        if job.keep:
            report = run_backtest(
                services,
                job.spec,
                stop=stop,
                market=market,
                baselines=("buy-and-hold",),
                kind=TrialKind.BENCH,
                first_part=_kept_part(job.spec.run),
            )
            result = report.result
        else:
            services = going_on(services, job)
            preset = agents_of(job.spec)
            models = build_models(services, preset, job.spec.model, recorded=job.spec.models)
            run = AgentRun(services=services, spec=job.spec, preset=preset, models=models, market=market, stop=stop)
            result = asyncio.run(play(run))
            count_result(TrialKind.BENCH, result, services.clock.now())
    except (MissingData, StaleData) as error:
        return Played(None, str(error))
    return Played(None if result.interrupted else result)


def _kept_part(run: str) -> FirstPart | None:
    """The part of a run with a journal that an earlier part of its bench has left; None where there is none to go on
    with."""
    journal = places.run_journal(run)
    if not journal.exists():
        return None
    try:
        return first_part(run)
    except UsageError:  # it came to its end, and its bench was killed before that was written down
        journal.unlink()
        return None


def going_on(services: Services, job: Job) -> Services:
    """Services for a run of a bench: where it was begun before, the answers that it had then are given again."""
    if job.begun is None:
        return services
    if job.begun.exists():
        return replace(services, paid_since=datetime.fromisoformat(job.begun.read_text(encoding="utf-8")))
    job.begun.write_text(LiveClock().now().isoformat(), encoding="utf-8")
    return services


def agents_of(spec: RunSpec) -> Preset:
    """The preset of a run of agents as they follow it."""
    preset = preset_of(spec)
    assert preset is not None
    return preset


def job_market(services: Services, job: Job) -> Market:
    """The market of a job. Raises what loading raises."""
    market = asyncio.run(load_run(services, job.spec))
    return market if job.table is None else adjusted_market(job.table, job.spec.symbols[0], market)


def in_workers(
    work: Callable[[T], R], items: Sequence[T], workers: int, stop: Stop, on_ended: Callable[[int, Future[R]], None]
) -> None:
    """Have items worked on in processes of a pool, `workers` at a time, each told to `on_ended` by its number as soon
    as it is done. After `stop` none begins, and what runs sees `stop_requested`; a KeyboardInterrupt ends all at
    once. Raises what `on_ended` raises."""
    context = multiprocessing.get_context("spawn")
    stopping = context.Event()
    pool = ProcessPoolExecutor(min(workers, len(items)), context, _begin_worker, (stopping,))
    try:
        with no_main_module():
            numbers = {pool.submit(work, item): number for number, item in enumerate(items)}
        open_ones = set(numbers)
        while open_ones:
            done, open_ones = wait(open_ones, _PATIENCE, FIRST_COMPLETED)
            for future in done:
                on_ended(numbers[future], future)
            if stop() and not stopping.is_set():
                stopping.set()
                open_ones = {future for future in open_ones if not future.cancel()}
    except KeyboardInterrupt:
        # The pool has no way to end what runs; whoever plays side by side has no other children.
        for process in multiprocessing.active_children():
            process.terminate()
        # One that was ended while it wrote a result has left half of it, and the pool would wait for the rest for as
        # long as anybody, this process too, can write to that pipe.
        pool._result_queue._writer.close()  # type: ignore[attr-defined]
        raise
    finally:
        stopping.set()
        pool.shutdown(cancel_futures=True)


def _outcome(future: Future[Played]) -> Played:
    if future.cancelled():
        return Played(None)
    try:
        return future.result()
    except BrokenProcessPool:
        return Played(None, "its process ended without a result: try again, with fewer --jobs")


_stopping: Event | None = None
"""In a process of a pool: set once its work is to stop."""


def _begin_worker(stopping: Event) -> None:
    """Begin a process of a pool. Ctrl-C reaches every process of the terminal; it is the parent's to answer. One whose
    parent was killed ends with it: it would wait for its next item for ever."""
    global _stopping  # noqa: PLW0603 - how a pool's process is given what cannot be sent with a job
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _stopping = stopping
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _play_there(services: Services, job: Job) -> Played:
    return play_job(services, job, stop_requested)


def stop_requested() -> bool:
    """True in a process of a pool once the parent asked it to stop."""
    return _stopping is not None and _stopping.is_set()
