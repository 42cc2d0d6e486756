"""The plan of a bench's agents: rows of the printed tables, and the runs that they need."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from engine.app.bench.jobs import Job
from engine.app.models import build_models
from engine.app.run_spec import new_run_id
from engine.domain.market import Symbol
from engine.domain.run import DataSpec
from engine.lab.published_tables import (
    BENCHES,
    Ablation,
    PublishedAgents,
    PublishedTable,
    ablations_from,
    agent_spec,
    published_agents,
)
from engine.preset import load_preset
from engine.services import Services

OFFLINE = "offline"


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRequest:
    """A bench as it is requested.

    name: the paper.
    folder: the data folder.
    symbols: symbols of the tables, empty for all.
    params: changed parameters of rules, as key and value.
    agents: False for the rules alone.
    models: specs of the models that answer the agents, one after the other, empty for the configured ones.
    ablations: agents with steps left out.
    repeats: runs of each agent on each symbol.
    jobs: processes that runs are played in.
    keep: whether every run writes a journal.
    """

    name: str
    folder: str | None
    symbols: tuple[Symbol, ...] = ()
    params: tuple[tuple[str, str], ...] = ()
    agents: bool = True
    models: tuple[str, ...] = ()
    ablations: tuple[Ablation, ...] = ()
    repeats: int = 1
    jobs: int = 1
    keep: bool = False


def requested_ablations(bench: str, printed: bool, own: Path | None) -> tuple[Ablation, ...]:
    """The printed ablations of a bench where they are wanted, and those of a file of the user's own. An unknown bench
    has none: it is refused, with the names that there are, when it is prepared. Raises as `ablations_from` does."""
    ours = published_agents(bench).ablations if printed and bench in BENCHES else ()
    return (*ours, *(() if own is None else ablations_from(own)))


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
    ablation: the steps that are left out; None for the whole agent.
    """

    table: PublishedTable
    symbol: Symbol
    model: str
    backbone: Backbone
    jobs: tuple[int, ...]
    ablation: Ablation | None = None


@dataclass(slots=True)
class Plan:
    """The rows of a bench and the runs that they need; one run may serve several rows."""

    agents: PublishedAgents
    backbones: tuple[Backbone, ...]
    rows: list[PlannedRow] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    equal_repeats: bool = False


def _backbones(services: Services, agents: PublishedAgents, models: Sequence[str]) -> tuple[Backbone, ...]:
    """The models of a bench, opened once to see that they can be. Raises UsageError, ConfigError and
    CredentialsRefused for one that cannot."""
    preset = load_preset(agents.preset)
    found = []
    for override in models or (None,):
        opened = build_models(services, preset, override)
        found.append(Backbone(override, opened.spec, opened.label))
        asyncio.run(opened.aclose())
    return tuple(found)


def plan(services: Services, request: BenchRequest, tables: Sequence[PublishedTable], data: DataSpec) -> Plan:
    """Every row of ours in the order of the tables: model by model the whole agent, then its ablations. Raises
    UsageError for an ablation without a step that there is not, and as `_backbones` does."""
    agents = published_agents(request.name)
    models = _backbones(services, agents, request.models)
    preset = load_preset(agents.preset)
    for checked in request.ablations:
        preset.without(checked.without)
    made = Plan(agents, models)
    numbers: dict[tuple[object, ...], int] = {}
    for position, table in enumerate(tables):
        later = tables[position + 1 :]
        for backbone, ablation, symbol in _combinations(table, agents, models, request.ablations, later):
            count = 1 if backbone.repeats_are_equal else request.repeats
            made.equal_repeats = made.equal_repeats or count < request.repeats
            without = () if ablation is None else ablation.without
            row = agents.row_of(backbone.spec) if ablation is None else agents.ablated_row(ablation, backbone.spec)
            mine = []
            for sample in range(count):
                key = (symbol, table.first, backbone, without, sample)
                if key not in numbers:
                    numbers[key] = len(made.jobs)
                    spec = agent_spec(
                        table,
                        symbol,
                        agents.preset,
                        without=without,
                        model=backbone.override,
                        data=data,
                        seed=services.config.desk.seed,
                        sample=sample,
                        run=new_run_id("bench", services.clock.now()),
                    )
                    title = f"{row} on {symbol}" + (f", repeat {sample + 1}" if count > 1 else "")
                    made.jobs.append(Job(spec, table, title, request.keep))
                mine.append(numbers[key])
            made.rows.append(
                PlannedRow(
                    table=table, symbol=symbol, model=row, backbone=backbone, jobs=tuple(mine), ablation=ablation
                )
            )
    return made


def _combinations(
    table: PublishedTable,
    agents: PublishedAgents,
    models: Sequence[Backbone],
    ablations: Sequence[Ablation],
    later: Sequence[PublishedTable],
) -> Iterator[tuple[Backbone, Ablation | None, Symbol]]:
    """The rows of a table, symbols last. An ablation that the table does not print is a row of the last of the tables
    that have its symbols."""
    repeated = any(set(table.symbols()) <= set(other.symbols()) for other in later)
    for backbone in models:
        for ablation in (None, *ablations):
            printed = ablation is None or agents.ablated_row(ablation, backbone.spec) in table.models()
            if not printed and repeated:
                continue
            for symbol in table.symbols():
                if ablation is None or not ablation.symbols or symbol in ablation.symbols:
                    yield backbone, ablation, symbol
