"""The plan of a bench's agents: rows of the printed tables, and the runs that they need.

The record of a bench that may be stopped and gone on with: its request, the runs that are done, and what is spent.

A run that was stopped is played again from its first session. The answers that were given to it are given again as they
were, cost included, so that the whole comes to what an unbroken bench comes to.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from pathlib import Path
from sys import maxsize
from typing import Any, TypeVar

from engine.app.bench.jobs import Job, Played
from engine.app.models.models import ModelSet, build_models, configured_guidance
from engine.app.records.desk_journal import one_process
from engine.conventions.catalog import convention
from engine.domain.json_text import from_json, to_json
from engine.domain.market import Symbol
from engine.domain.run import DataSpec, FillAt
from engine.errors import BudgetReached, MalformedData, MissingData, UsageError
from engine.lab.published_tables import (
    BENCHES,
    PublishedAgents,
    PublishedTable,
    Variant,
    agent_spec,
    published_agents,
)
from engine.preset import load_preset
from engine.services import Services, SpendingLimit, Spent
from engine.session.owner_books import has_books
from engine.settings import places
from engine.settings.config import BudgetConfig

OFFLINE = "offline"


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRequest:
    """A bench as it is requested.

    name: the paper.
    run: its id, which the ids of its runs begin with; made of the time where it is empty.
    folder: the data folder.
    symbols: symbols of the tables, empty for all.
    window, warm_up_from: first and last session of the test and the begin of the training, of a bench without printed
        rows; None: the paper's.
    trials: of a search for the rules' parameters on the training period; 0 takes the authors' values.
    agents: False for the rules alone.
    learned: True for the paper's learned rows as well.
    models: specs of the models that answer the agents, one after the other, empty for the configured ones.
    ablations: agents with steps left out.
    presets, strategies: the user's own, by name or file, which are run in the place of the paper's agents.
    repeats: runs of each agent on each symbol.
    jobs: processes that runs are played in.
    scheduler: whose workers play those that ask nobody.
    keep: whether every run writes a journal.
    """

    name: str
    folder: str | None
    run: str = ""
    symbols: tuple[Symbol, ...] = ()
    window: tuple[date, date] | None = None
    warm_up_from: date | None = None
    trials: int = 0
    agents: bool = True
    learned: bool = False
    models: tuple[str, ...] = ()
    ablations: tuple[Variant, ...] = ()
    presets: tuple[str, ...] = ()
    strategies: tuple[str, ...] = ()
    repeats: int = 1
    jobs: int = 1
    scheduler: str | None = None
    keep: bool = False


def requested_ablations(bench: str, printed: bool, without: Sequence[tuple[str, ...]] = ()) -> tuple[Variant, ...]:
    """The printed ablations of a bench where they are wanted, and one for each list of steps. An unknown bench has
    none: it is refused, with the names that there are, when it is prepared."""
    if bench not in BENCHES:
        return ()
    agents = published_agents(bench)
    return (
        *(agents.ablations if printed else ()),
        *(Variant(row=f"{agents.row or ''} without {', '.join(steps)}".strip(), without=steps) for steps in without),
    )


@dataclass(frozen=True, slots=True)
class Backbone:
    """A model that answers the agents: the value of `--models` (None: as configured), its spec and label."""

    override: str | None
    spec: str
    label: str

    @property
    def repeats_are_equal(self) -> bool:
        """True where it gives the same answers every time."""
        return self.spec == OFFLINE


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRow:
    """A row on a symbol.

    table: the printed table that it belongs to.
    symbol: the symbol.
    model: name of the row.
    backbone: the model that answers.
    jobs: numbers of the jobs that are its repeats.
    variant: what differs from the paper's agent; None for the agent itself.
    """

    table: PublishedTable
    symbol: Symbol
    model: str
    backbone: Backbone
    jobs: tuple[int, ...]
    variant: Variant | None = None


@dataclass(slots=True)
class Plan:
    """The rows of a bench and the runs that they need; one run may serve several rows."""

    agents: PublishedAgents
    backbones: tuple[Backbone, ...]
    rows: list[PlannedRow] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    equal_repeats: bool = False


def _backbones(services: Services, presets: Sequence[str], models: Sequence[str]) -> tuple[Backbone, ...]:
    """The models of a bench, opened once for every preset to see that they can be. Raises UsageError, ConfigError and
    CredentialsRefused for one that cannot."""
    found = []
    for override in models or (None,):
        *_, opened = [_opened(services, preset, override) for preset in presets]
        found.append(Backbone(override, opened.spec, opened.label))
    return tuple(found)


def _opened(services: Services, preset: str, override: str | None) -> ModelSet:
    """The models of a preset, opened and closed again."""
    opened = build_models(services, load_preset(preset), override)
    asyncio.run(opened.aclose())
    return opened


def plan(services: Services, request: BenchRequest, tables: Sequence[PublishedTable], data: DataSpec) -> Plan:
    """Every row of ours in the order of the tables: model by model the whole agent, then its variants. Raises
    UsageError for an ablation without a step that there is not, or beside presets, and for owners' books that cannot
    be filled; as `_backbones` and `configured_guidance` do."""
    agents = published_agents(request.name)
    preset = load_preset(agents.preset)
    if request.presets and request.ablations:
        left_out = "ablations leave out parts of the paper's agents, and --preset runs none of them"
        raise UsageError(f"{left_out}: give presets that extend yours `without` something")
    for checked in request.ablations:
        preset.without(checked.without)
    same_close = convention(tables[0].convention).execution.fill_at is FillAt.SAME_CLOSE
    for name in request.presets:
        if same_close and has_books(load_preset(name)):
            books = f"{name} has owners with books, whose orders fill after the close"
            raise UsageError(f"{books}, and bench {request.name} fills orders at the close")
    own = tuple(Variant(row=load_preset(name).name, preset=name) for name in request.presets)
    variants: tuple[Variant | None, ...] = own or (None, *agents.beside, *request.ablations)
    presets = [agents.preset if one is None else one.preset or agents.preset for one in reversed(variants)]
    made = Plan(agents, _backbones(services, presets, request.models))
    jobs = _Jobs(services, request, agents.preset, data, made.jobs)
    for position, table in enumerate(tables):
        for backbone, variant, symbol in _combinations(table, made, variants, tables[position + 1 :]):
            count = 1 if backbone.repeats_are_equal else request.repeats
            made.equal_repeats = made.equal_repeats or count < request.repeats
            row = agents.row_of(backbone.spec, variant)
            made.rows.append(
                PlannedRow(
                    table=table,
                    symbol=symbol,
                    model=row,
                    backbone=backbone,
                    jobs=tuple(jobs.of(table, symbol, backbone, variant, title=f"{row} on {symbol}", count=count)),
                    variant=variant,
                )
            )
    return made


@dataclass(slots=True)
class _Jobs:
    """The jobs of a plan, each once however many rows it serves."""

    services: Services
    request: BenchRequest
    preset: str
    data: DataSpec
    jobs: list[Job]
    numbers: dict[tuple[object, ...], int] = field(default_factory=dict)

    def of(
        self,
        table: PublishedTable,
        symbol: Symbol,
        backbone: Backbone,
        variant: Variant | None,
        *,
        title: str,
        count: int,
    ) -> Iterator[int]:
        """The numbers of a row's repeats."""
        run = variant or Variant(row="")
        guidance = configured_guidance(self.services.config, (symbol,))
        for sample in range(count):
            key = (symbol, table.first, backbone, run.preset, run.without, run.training, sample)
            if key not in self.numbers:
                self.numbers[key] = len(self.jobs)
                spec = agent_spec(
                    table,
                    symbol,
                    run.preset or self.preset,
                    training=run.training,
                    guidance=guidance,
                    without=run.without,
                    model=backbone.override,
                    data=self.data,
                    seed=self.services.config.desk.seed,
                    sample=sample,
                    run=f"{self.request.run}-{len(self.jobs) + 1}",
                )
                named = title + (f", repeat {sample + 1}" if count > 1 else "")
                self.jobs.append(Job(spec, table, named, self.request.keep))
            yield self.numbers[key]


def _combinations(
    table: PublishedTable, made: Plan, variants: Sequence[Variant | None], later: Sequence[PublishedTable]
) -> Iterator[tuple[Backbone, Variant | None, Symbol]]:
    """The rows of a table, symbols last. A variant that the table does not print is a row of the last of the tables
    that have its symbols."""
    agents = made.agents
    repeated = any(set(table.symbols()) <= set(other.symbols()) for other in later)
    for backbone in made.backbones:
        for variant in variants:
            printed = variant is None or agents.row_of(backbone.spec, variant) in table.models()
            if not printed and repeated:
                continue
            for symbol in table.symbols():
                if variant is None or not variant.symbols or symbol in variant.symbols:
                    yield backbone, variant, symbol


def strategy_titles(strategies: Sequence[str]) -> Mapping[str, str]:
    """Row titles of strategies: the class of a file's, or all of it where two classes share a name."""
    short = {one: one.rpartition(":")[2] or one for one in strategies}
    names = list(short.values())
    return {one: name if names.count(name) == 1 else one for one, name in short.items()}


ENDLESS = Decimal("Infinity")
"""The dollars of a bench without a --budget."""


@dataclass(frozen=True, slots=True)
class BenchRecord:
    """A bench as it was begun: its id, its request, and the specs of the models that answer it."""

    run: str
    request: BenchRequest
    models: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """Its folder. Raises ConfigError for an id that cannot be part of a file's name."""
        return places.bench_folder(self.run)

    def begin(self) -> None:
        """Write the record, unless it is there."""
        file = self.folder / "bench.json"
        if not file.exists():
            places.write_whole(file, to_json(self))

    def lock(self) -> AbstractContextManager[None]:
        """Hold the bench until the block ends. Raises TryAgainLater where another process plays it."""
        return one_process(self.folder / "bench.lock", f"the bench {self.run} is being played by another process")

    def began(self, number: int) -> Path:
        """The file of the moment at which a run was begun first."""
        return self.folder / f"{number}.begun"

    def result(self, number: int) -> Path:
        """The file of the result of a run, which is there once the run has come to its end."""
        return self.folder / f"{number}.json"

    def done(self, number: int) -> Played | None:
        """The outcome of a run that has come to its end. Raises MalformedData."""
        file = self.result(number)
        return _read(file, Played) if file.exists() else None

    def keep(self, number: int, played: Played) -> None:
        """Keep the result of a run; one without a result is played again."""
        if played.result is not None:
            places.write_whole(self.result(number), to_json(played))

    def limit(self, budget: BudgetConfig, usd: Decimal | None) -> SharedLimit:
        """The limit of its models, `usd` with what earlier parts have spent; calls that were in flight when a part was
        killed may have cost all that was reserved for them."""
        tokens = budget.tokens_per_day if usd is not None else maxsize
        dollars = ENDLESS if usd is None else usd
        limit = SharedLimit(
            budget.model_copy(update={"usd_per_day": dollars, "tokens_per_day": tokens}), self.folder / "spent.json"
        )
        limit.settle_all()
        return limit

    def remove(self) -> None:
        """Remove the record of a bench that is done."""
        shutil.rmtree(self.folder)


def load_record(run: str) -> BenchRecord:
    """The record of a bench that was stopped. Raises MissingData where there is none, MalformedData."""
    file = places.bench_folder(run) / "bench.json"
    if not file.exists():
        raise MissingData(f"--resume {run}: no such bench to resume")
    return _read(file, BenchRecord)


@dataclass(frozen=True, slots=True)
class _Account:
    spent: Spent
    reserved: Spent
    in_flight: int


class SharedLimit(SpendingLimit):
    """A limit that the processes of a bench share through a file, where it outlives them."""

    def __init__(self, budget: BudgetConfig, file: Path) -> None:
        super().__init__(budget, Spent(), of_flag=True)
        self._file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return SharedLimit, (self.budget, self._file)

    def reserve(self, most: Spent, least: Spent | None = None, *, first: bool = True) -> Spent | BudgetReached:
        """Reserve what a call may cost beside those of all processes."""
        with self._account():
            return super().reserve(most, least, first=first)

    def settle(self, reserved: Spent, used: Spent) -> None:
        """Put what a question has used in the place of what was reserved for it."""
        with self._account():
            super().settle(reserved, used)

    def settle_all(self) -> None:
        """Count what is still reserved as spent: nobody is left to settle it."""
        with self._account():
            self.spent, self.reserved, self.in_flight = self.spent + self.reserved, Spent(), 0

    @contextmanager
    def _account(self) -> Iterator[None]:
        from filelock import FileLock

        places.make_folder(self._file.parent)
        with FileLock(f"{self._file}.lock"):
            kept = _read(self._file, _Account) if self._file.exists() else _Account(Spent(), Spent(), 0)
            self.spent, self.reserved, self.in_flight = kept.spent, kept.reserved, kept.in_flight
            yield
            places.write_whole(self._file, to_json(_Account(self.spent, self.reserved, self.in_flight)))


T = TypeVar("T")


def _read(file: Path, kind: type[T]) -> T:
    try:
        return from_json(kind, file.read_text(encoding="utf-8"))
    except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError) as error:
        raise MalformedData(f"{file}: no record of a bench ({type(error).__name__}); remove its folder") from None
