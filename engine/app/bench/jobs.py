"""Jobs of a bench, one after the other or in processes of their own: a description in, a result out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

from engine.app.bench.cluster import team_of
from engine.app.models.models import build_models
from engine.app.records.trial_index import count_result
from engine.app.records.workers import in_workers, stop_requested
from engine.app.research.agent_run import AgentRun, FirstPart, first_part, play
from engine.app.research.backtest import run_backtest
from engine.app.research.market_data import load_run
from engine.app.research.run_spec import Stop, preset_of
from engine.clock import LiveClock
from engine.domain.run import Result, RunSpec, TrialKind
from engine.errors import MissingData, StaleData, UsageError, WorkLost
from engine.lab.published_tables import PublishedTable, adjusted_market
from engine.market.as_of import Market
from engine.preset import Preset
from engine.services import Services
from engine.settings import places


@dataclass(frozen=True, slots=True)
class Job:
    """One run of an agent: on one symbol of a published table, or (without a table) any backtest. `keep` writes its
    journal and memory, as a backtest does; `begun` is the file of the moment at which it was begun first, None for one
    that asks nobody; `sampled` are decisions that are to be made again with each input altered, at most."""

    spec: RunSpec
    table: PublishedTable | None
    title: str
    keep: bool = False
    begun: Path | None = None
    sampled: int = 0


@dataclass(frozen=True, slots=True)
class Played:
    """The outcome of a job: a result, or why there is none. A result that was interrupted is none."""

    result: Result | None
    trouble: str = ""

    @property
    def ended(self) -> bool:
        """True where the job came to its end."""
        return self.result is not None or bool(self.trouble)


R = TypeVar("R")
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
    scheduler: str | None = None,
) -> Mapping[int, Played]:
    """Play jobs, `workers` at a time; by number, those that came to their end, each told to `keep` as soon as it has.
    Those that ask nobody are played by the workers of a `scheduler` where one is given. After `stop` no job begins, and
    those that are running here end with their session; after a KeyboardInterrupt they end at once. Raises what a run
    raises, except for data that is missing or stale, which is its result; WorkLost once all others have ended."""

    ended: dict[int, Played] = {}
    lost: list[WorkLost] = []

    def end(number: int, played: Played | WorkLost) -> None:
        if isinstance(played, WorkLost):
            lost.append(played)
        elif played.ended:
            ended[number] = played
            keep(number, played)
            on_done(jobs[number], len(ended))

    def play(numbers: Sequence[int], scheduler: str | None) -> None:
        some, work = [jobs[number] for number in numbers], partial(play_job, services)
        play_each(some, work, workers, scheduler, stop=stop, end=lambda place, played: end(numbers[place], played))

    away = [number for number, job in enumerate(jobs) if scheduler is not None and job.begun is None]
    try:
        play(away, scheduler)
        play(sorted({*range(len(jobs))} - {*away}), None)
    except KeyboardInterrupt:
        pass  # what has come to its end counts
    if lost:
        raise lost[0]
    return ended


def play_each(
    jobs: Sequence[Job],
    play: Callable[..., R],
    workers: int,
    scheduler: str | None,
    *,
    stop: Stop,
    end: Callable[[int, R | WorkLost], None],
) -> None:
    """Play jobs, `workers` at a time in processes of their own, or by the workers of a `scheduler`; a single one here.
    `play` takes a job and `stop`; `end` gets the outcome of each by its place, or that it is lost. After `stop` none
    begins. Raises what `play` and the team raise."""
    if jobs and (scheduler is not None or min(workers, len(jobs)) > 1):
        with team_of(workers, scheduler, [job.spec for job in jobs]) as team:
            work = partial(play, stop=stop_requested)
            in_workers(
                team,
                work,
                jobs,
                stop,
                end,
                on_lost=lambda place, error: end(place, WorkLost(f"{jobs[place].title} {error}")),
            )
        return
    for place, job in enumerate(jobs):
        if stop():
            return
        end(place, play(job, stop=stop))


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
