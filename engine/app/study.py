"""A study: every combination of agents or rules, models, symbols, windows, seeds and repeats as a backtest of its own.

A run's id is made of all that decides it, so a study that is called again plays what is not there yet, whatever stopped
it, and what its file, the program or the user's code has changed.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import partial
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, ValidationError, model_validator

from engine.app.bench.forecast import asks_service
from engine.app.bench.jobs import Job, going_on, play_each
from engine.app.records.desk_journal import one_process
from engine.app.records.spending import within_day
from engine.app.records.trial_index import spec_hash
from engine.app.research.backtest import run_backtest
from engine.app.research.run_spec import Stop, check_spec, settled, user_code
from engine.app.runs import prune_runs
from engine.domain.json_text import to_json
from engine.domain.market import Symbol
from engine.domain.model_call import AnswerOptions, parse_model_spec
from engine.domain.run import RunOutcome, RunSpec
from engine.errors import (
    MENDED,
    BudgetReached,
    ConfigError,
    MalformedData,
    MissingData,
    PaperdeskError,
    StaleData,
    TryAgainLater,
    UsageError,
)
from engine.journal.reader import JournalReader
from engine.preset import load_preset
from engine.reports.documents.row_json import Row
from engine.reports.documents.runs import StoredKind, StoredRun
from engine.reports.documents.study import PlayedRow, study_document
from engine.reports.stored import document_of
from engine.services import Services
from engine.settings import places
from engine.settings.user_code import code_hash
from engine.settings.values import Frozen, complaint
from engine.strategies.catalog import strategy_class

SCHEMA = 1
RECORD = "study.json"
OnPlayed = Callable[[str, int, int], None]
"""A listener to each run that has ended, with the number that have by then, and of how many."""
OnEnd = Callable[[Job, PaperdeskError | None], None]
"""A receiver of each run that was played, with why it has no result; None where it has one, or was stopped."""
RULES_REPEAT = "rules and the offline model answer alike every time: they are not repeated"


class Study(Frozen):
    """The `[study]` of a file: its runs are the product of all that it names.

    presets: agents, by name or TOML file.
    strategies: rules, by name or FILE:CLASS.
    models: of every agent; none: as configured.
    masks: of what agents read, 0 (none) to 4; none: no mask.
    symbols: each traded alone.
    portfolios: lists of symbols that are traded together.
    windows: first and last session of each test.
    seeds: none: the desk's.
    repeats: runs of each combination whose models may answer otherwise the next time.
    light: False for runs with their books and baselines.
    """

    presets: tuple[str, ...] = ()
    strategies: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    masks: tuple[Annotated[int, Field(ge=0, le=4)], ...] = ()
    symbols: tuple[Symbol, ...] = ()
    portfolios: tuple[Annotated[tuple[Symbol, ...], Field(min_length=1)], ...] = ()
    windows: tuple[tuple[date, date], ...] = Field(min_length=1)
    seeds: tuple[Annotated[int, Field(ge=0)], ...] = ()
    repeats: int = Field(1, ge=1, le=99)
    light: bool = True

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if not (self.presets or self.strategies):
            raise ValueError("presets: name presets, strategies or both")
        if bool(self.symbols) == bool(self.portfolios):
            raise ValueError("symbols: give either symbols (a run each) or portfolios (lists of symbols)")
        for key in ("models", "masks"):
            if getattr(self, key) and not self.presets:
                raise ValueError(f"{key}: strategies use no model; name presets too")
        return self

    @property
    def traded(self) -> tuple[tuple[Symbol, ...], ...]:
        """The symbols of each run."""
        portfolios = self.portfolios or tuple((symbol,) for symbol in self.symbols)
        return tuple(tuple(symbol.upper() for symbol in one) for one in portfolios)


class _File(Frozen):
    study: Study


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedStudy:
    """A study that was checked: its name, its file (None for a comparison of models), the folder of its record, and a
    job for each of its runs, each once; one that may ask a service has the file of its begin."""

    name: str
    file: Path | None
    folder: Path
    light: bool
    jobs: tuple[Job, ...]
    notes: tuple[str, ...]

    @property
    def open_jobs(self) -> tuple[Job, ...]:
        """Those that have not come to their end."""
        return tuple(job for job in self.jobs if not _is_done(job.spec.run))

    def document(self, rows: Sequence[PlayedRow]) -> Row:
        """The document of the runs that have come to their end, or cannot."""
        return study_document(self.name, rows, runs=len(self.jobs), notes=self.notes)


def read_study(file: Path) -> Study:
    """The study of a file. Raises ConfigError, naming the key."""
    try:
        return _File.model_validate(tomllib.loads(file.read_text("utf-8"))).study
    except OSError as error:
        raise ConfigError(f"{file} cannot be read ({error.strerror}): name a TOML file with a [study]") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: {error}") from None
    except ValidationError as error:
        raise ConfigError(f"{file}: {complaint(_File, error)}") from None


def prepare_study(services: Services, file: Path) -> PreparedStudy:
    """Check a study's file and everything that it names; nothing is run. Raises ConfigError, naming the key."""
    study, now, jobs = read_study(file), services.clock.now(), dict[str, Job]()
    path, fewer = file.resolve(), False
    # Two files of one name are two studies.
    folder = places.study_folder(f"{path.stem}-{hashlib.sha256(str(path).encode()).hexdigest()[:8]}")
    for preset, strategy, model, mask in _deciding(services, file, study):
        for symbols, window, seed in product(study.traded, study.windows, study.seeds or (services.config.desk.seed,)):
            spec = RunSpec(
                symbols=symbols,
                first=window[0],
                last=window[1],
                preset=preset,
                strategy=strategy,
                model=model,
                options=AnswerOptions(mask=mask or None),
                data=services.data,
                convention=services.config.metrics.convention,
                seed=seed,
            )
            with _of_key(file, f"{'symbols' if study.symbols else 'portfolios'}, study.windows"):
                check_spec(spec, now)
                spec = settled(services, spec)
            title = f"{preset or strategy} on {','.join(symbols)}"
            own = repeated_jobs(services, spec, study.repeats, title, folder, light=study.light)
            fewer = fewer or len(own) < study.repeats
            jobs |= {job.spec.run: job for job in own}
    return PreparedStudy(
        name=path.stem,
        file=path,
        folder=folder,
        light=study.light,
        jobs=tuple(jobs.values()),
        notes=(RULES_REPEAT,) if fewer else (),
    )


def _deciding(services: Services, file: Path, study: Study) -> Iterator[tuple[str | None, str | None, str | None, int]]:
    """Preset, strategy, model and mask of each row."""
    parse = partial(parse_model_spec, endpoints=services.config.endpoints)
    checks = (("strategies", strategy_class), ("presets", load_preset), ("models", parse))
    for key, check in checks:
        with _of_key(file, key):
            for name in getattr(study, key):
                check(name)
    yield from ((None, strategy, None, 0) for strategy in study.strategies)
    agents = product(study.presets, study.models or (None,), study.masks or (0,))
    yield from ((preset, None, model, mask) for preset, model, mask in agents)


@contextmanager
def _of_key(file: Path, key: str) -> Iterator[None]:
    """Turn an error of usage into one of a key of the file."""
    try:
        yield
    except UsageError as error:
        raise ConfigError(f"{file}: study.{key}: {error}") from None


def repeated_jobs(
    services: Services, spec: RunSpec, repeats: int, title: str, folder: Path, *, light: bool
) -> Sequence[Job]:
    """The jobs of a settled run and its repeats, of which there are none where the rules alone are asked."""
    asks, jobs = asks_service(services, spec), []
    for sample in range(repeats if asks else 1):
        one = replace(spec, sample=sample, run=_run_id(replace(spec, sample=sample), light=light))
        jobs.append(Job(one, None, title, begun=folder / f"{one.run}.begun" if asks else None))
    return jobs


def _run_id(spec: RunSpec, *, light: bool) -> str:
    decided = f"{spec_hash(spec)} {spec.version} {code_hash(user_code(spec))} {light}"
    return f"study-{hashlib.sha256(decided.encode()).hexdigest()[:16]}"


def run_study(
    services: Services,
    prepared: PreparedStudy,
    workers: int = 1,
    on_done: OnPlayed = lambda title, done, total: None,
    stop: Stop = lambda: False,
    *,
    scheduler: str | None = None,
) -> Row:
    """Play the runs that are not there yet and return the document of all that are. Runs that ask nobody are played
    `workers` at a time, in processes of their own, or by the workers of a `scheduler`; those that may ask a service
    follow here, one after the other, as neither the day's budget nor recorded answers can be shared out. After `stop`,
    or a KeyboardInterrupt, what was not done is not there. A run without data or sessions, or one that its workers are
    lost by, is a row without figures; raises what hindered the first where there is no other row, TryAgainLater where
    another process plays the study, or one of its own was ended, and what a run and `cluster` raise; what was done
    stays."""
    todo, troubles, done = prepared.open_jobs, dict[str, PaperdeskError](), 0

    def end(job: Job, trouble: PaperdeskError | None) -> None:
        nonlocal done
        if trouble is not None:
            troubles[job.spec.run] = trouble
        elif not _is_done(job.spec.run):
            return
        elif job.begun is not None:
            job.begun.unlink(missing_ok=True)
        done += 1
        on_done(job.title, done, len(todo))

    now, busy = services.clock.now(), f"the study {prepared.name} is being played by another process"
    with one_process(prepared.folder / "study.lock", busy):
        _keep(prepared, troubles)
        _remove(todo, now)
        try:
            _play_all(services, prepared, todo, (workers, scheduler), stop=stop, end=end)
        except KeyboardInterrupt:
            pass  # what has come to its end counts
        finally:
            _keep(prepared, troubles)
            _remove(prepared.open_jobs, now)
    rows = [row for job in prepared.jobs if (row := _row(job, troubles)) is not None]
    if troubles and len(troubles) == len(rows):
        raise next(iter(troubles.values()))
    return prepared.document(rows)


def _play_all(
    services: Services,
    prepared: PreparedStudy,
    todo: Sequence[Job],
    workers: tuple[int, str | None],
    *,
    stop: Stop,
    end: OnEnd,
) -> None:
    """Play runs, those that ask nobody first, and tell each that has ended to `end`."""
    if stop():
        return
    free = [job for job in todo if job.begun is None]
    asking = [job for job in todo if job.begun is not None]
    # They cost nothing, and the limit of a --budget stays with this process.
    play = partial(_play, replace(services, limit=None), light=prepared.light)
    play_each(free, play, *workers, stop=stop, end=lambda place, trouble: end(free[place], trouble))
    if asking and not stop():
        with within_day(services) if services.limit is None else nullcontext(services) as within:
            _play_here(within, asking, stop, end, light=prepared.light)


def _play_here(services: Services, jobs: Sequence[Job], stop: Stop, end: OnEnd, *, light: bool) -> None:
    """Play runs one after the other. Where their models cannot be had, those of other models go on; then the first of
    these errors is raised."""
    out = dict[object, PaperdeskError]()
    for job in jobs:
        if stop():
            return
        asked = job.spec.model, job.spec.models
        if asked in out:
            continue
        try:
            end(job, _play(services, job, light=light, stop=stop))
        except PaperdeskError as error:
            if error.exit_code not in MENDED or isinstance(error, BudgetReached):
                raise
            out[asked] = error
    if out:
        raise next(iter(out.values()))


def _play(services: Services, job: Job, *, light: bool, stop: Stop) -> PaperdeskError | None:
    """Play a run and keep it; why it has no result, None also where it was stopped."""
    try:
        run_backtest(going_on(services, job), job.spec, stop=stop, light=light)
    except (MissingData, StaleData, UsageError) as error:  # the last: a window without sessions
        return error
    return None


def _row(job: Job, troubles: Mapping[str, PaperdeskError]) -> PlayedRow | None:
    """A run that has come to its end, or cannot; None for any other."""
    run = job.spec.run
    return PlayedRow(job.spec, None, troubles[run]) if run in troubles else _played(run)


def _played(run: str) -> PlayedRow | None:
    if not _is_done(run):
        return None
    with JournalReader(places.run_journal(run)) as reader:
        spec = reader.run(run).spec
        return None if spec is None else PlayedRow(spec, document_of(reader, run))


def _is_done(run: str) -> bool:
    """True for a run that has come to its end."""
    if not places.run_journal(run).exists():
        return False
    with JournalReader(places.run_journal(run)) as reader:
        entry = reader.find_run(run)
    return entry is not None and entry.outcome is RunOutcome.DONE


def _remove(jobs: Sequence[Job], now: datetime) -> None:
    """Remove what runs that did not come to their end have left. Raises TryAgainLater where one is being played."""
    halves = [
        StoredRun(id=job.spec.run, kind=StoredKind.BACKTEST, time=now, path=path)
        for job in jobs
        if (path := places.run_journal(job.spec.run)).exists()
    ]
    if at_work := prune_runs(halves).at_work:
        raise TryAgainLater(f"the run {at_work[0].id} is being played by another process")


def studies() -> Row:
    """The studies of this machine that have a file, with the runs of each that are done. Raises MalformedData for a
    damaged record."""
    listed = (one for one in stored_studies() if one["file"] is not None)
    return {"schema": SCHEMA, "studies": [{**one, "runs": len(one["runs"])} for one in listed]}


def stored_studies() -> Sequence[Row]:
    """These and the comparisons of models, each with the ids of its runs."""
    return [_listed(file) for file in sorted(places.studies_dir().glob(f"*/{RECORD}"))]


def _listed(file: Path) -> Row:
    """A study by the file of its record; a run that has a note is done, and has no figures."""
    kept = _kept(file)
    done = [run for run in kept["runs"] if _is_done(run)]
    noted = kept["notes"].keys() - done
    counts = {"done": len(done) + len(noted), "without_figures": len(noted)}
    return {"study": kept["study"], "file": kept["file"], "runs": kept["runs"], **counts, "record": file.parent.name}


def stored_study(record: str) -> Row:
    """The document of a study of this machine, by the name of its record, as far as its runs are done. Raises
    MalformedData for a damaged record."""
    kept = _kept(places.study_folder(record) / RECORD)
    rows = {run: row for run in kept["runs"] if (row := _played(run)) is not None}
    notes = [note for run, note in kept["notes"].items() if run not in rows]
    return study_document(kept["study"], [*rows.values()], runs=len(kept["runs"]), notes=notes)


def _keep(prepared: PreparedStudy, troubles: Mapping[str, PaperdeskError]) -> None:
    """Write the record of a study: its runs, and why some have no figures."""
    runs, notes = [job.spec.run for job in prepared.jobs], {run: str(one) for run, one in troubles.items()}
    file = None if prepared.file is None else str(prepared.file)
    record = {"study": prepared.name, "file": file, "runs": runs, "notes": notes}
    places.write_whole(prepared.folder / RECORD, to_json(record))


def _kept(file: Path) -> Mapping[str, Any]:
    try:
        kept: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return {name: kept[name] for name in ("study", "file", "runs")} | {"notes": dict(kept.get("notes", {}))}
    except (ValueError, KeyError, TypeError):
        raise MalformedData(f"{file}: no record of a study; remove its folder") from None
