"""The agents' rows of a published table: which runs they need, and what those come to."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Literal

from connectors.wiring.bench_jobs import Job, Played
from connectors.wiring.runs import new_run_id
from connectors.wiring.services import services
from engine.app.models import build_models
from engine.config import Config
from engine.domain.decision import Action
from engine.domain.market import Symbol
from engine.domain.run import DataSpec, Result
from engine.lab.published_agents import Ablation, PublishedAgents
from engine.lab.published_runs import agent_spec, measured
from engine.lab.published_tables import PublishedTable
from engine.ports import Clock, MarketSource
from engine.preset import load_preset
from engine.reports.comparison import AgentRow
from engine.reports.repeats import median_repeat, spreads

OFFLINE = "offline"
_NEWS_GAP = timedelta(days=30)
"""From how long on a window without news at its begin or end is told."""


@dataclass(frozen=True, slots=True)
class Backbone:
    """A model that answers the agents: what `--models` said (None: as configured), its spec, how it is introduced."""

    override: str | None
    spec: str
    label: str

    @property
    def repeats_are_equal(self) -> bool:
        """Whether it gives the same answers every time."""
        return self.spec == OFFLINE


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRow:
    """A row on a symbol, and the numbers of the jobs that are its repeats."""

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
    rows: list[PlannedRow] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    equal_repeats: bool = False


def backbones(agents: PublishedAgents, config: Config, models: Sequence[str]) -> tuple[Backbone, ...]:
    """The models of a bench, opened once to see that they can be. Raises UsageError, ConfigError and
    CredentialsRefused for one that cannot."""
    preset = load_preset(agents.preset)
    found = []
    for override in models or (None,):
        opened = build_models(services(config), preset, override)
        found.append(Backbone(override, opened.spec, opened.label))
        asyncio.run(opened.aclose())
    return tuple(found)


def plan(
    tables: Sequence[PublishedTable],
    agents: PublishedAgents,
    models: Sequence[Backbone],
    ablations: Sequence[Ablation],
    repeats: int,
    data: DataSpec,
    seed: int,
    keep: bool,
    clock: Clock,
) -> Plan:
    """Every row of ours in the order of the tables: model by model the whole agent, then its ablations. Raises
    UsageError for an ablation without a step that there is not."""
    preset = load_preset(agents.preset)
    for checked in ablations:
        preset.without(checked.without)
    made = Plan(agents)
    numbers: dict[tuple[object, ...], int] = {}
    for position, table in enumerate(tables):
        for backbone, ablation, symbol in _combinations(table, agents, models, ablations, tables[position + 1 :]):
            count = 1 if backbone.repeats_are_equal else repeats
            made.equal_repeats = made.equal_repeats or count < repeats
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
                        seed=seed,
                        sample=sample,
                        run=new_run_id("bench", clock.now()),
                    )
                    title = f"{row} on {symbol}" + (f", repeat {sample + 1}" if count > 1 else "")
                    made.jobs.append(Job(spec, table, title, keep))
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
    """The rows of a table, symbols last. An ablation that the table does not print stands in the last of the tables
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


TextNotes = Mapping[tuple[Symbol, str], str]
"""By symbol and table, what news the folder lacks."""


def agent_rows(made: Plan, played: Mapping[int, Played], texts: TextNotes) -> Iterator[tuple[PublishedTable, AgentRow]]:
    """The rows whose runs have all ended."""
    whole: dict[tuple[object, ...], AgentRow] = {}
    for planned in made.rows:
        ended = [played[number] for number in planned.jobs if number in played]
        if len(ended) < len(planned.jobs):
            continue
        row = _row(planned, ended, made.agents.measured, texts.get((planned.symbol, planned.table.name)))
        beside = (planned.table.name, planned.symbol, planned.backbone)
        if planned.ablation is None:
            whole[beside] = row
        elif row.metrics and beside in whole and row.metrics == whole[beside].metrics:
            row = replace(row, note=f"{row.note}; what it leaves out changed nothing")
        yield planned.table, row


def _row(planned: PlannedRow, ended: Sequence[Played], by: Literal["books", "decisions"], text: str | None) -> AgentRow:
    """One row of its repeats: figures and notes, or the note alone."""
    results = [one.result for one in ended if one.result is not None]
    trouble = next((one.trouble for one in ended if one.trouble), None)
    row = AgentRow(
        symbol=planned.symbol, model=planned.model, answered_by=planned.backbone.spec, metrics={}, note=trouble
    )
    if not results:
        return row
    repeats = [measured(result, planned.symbol, planned.table.convention, by) for result in results]
    notes = (
        f"{planned.backbone.spec}: {planned.backbone.label}",
        text,
        None if trouble is None else f"{len(results)} of {len(ended)} repeats: {trouble}",
        _abstained(results),
        None if any(_acted(result, by) for result in results) else "it never traded",
        *dict.fromkeys(note for result in results for note in result.notes),
        None if planned.ablation is None else planned.ablation.note,
    )
    spread = spreads(repeats) if len(repeats) > 1 else {}
    return replace(row, metrics=repeats[median_repeat(repeats)], note="; ".join(filter(None, notes)), spreads=spread)


def _acted(result: Result, by: Literal["books", "decisions"]) -> bool:
    if by == "books":
        return bool(result.test.fills)
    return any(decision.proposal.action in (Action.BUY, Action.SELL) for decision in result.test.decisions)


def _abstained(results: Sequence[Result]) -> str | None:
    count = sum(decision.abstained for result in results for decision in result.test.decisions)
    total = sum(len(result.test.decisions) for result in results)
    return f"{count} of {total} decisions abstained" if count else None


async def text_notes(source: MarketSource, tables: Sequence[PublishedTable]) -> TextNotes:
    """What news the folder lacks of the tables' windows; nothing where it covers it. A symbol that the
    folder does not know is told elsewhere."""
    known = set(await source.symbols())
    notes = {}
    for table in tables:
        for symbol in known.intersection(table.symbols()):
            items = (await source.news(symbol)).items
            days = sorted(d for item in items if table.warm_up_from <= (d := item.available_at.date()) <= table.last)
            if not days:
                notes[symbol, table.name] = f"no news of {symbol} from {table.warm_up_from} on: decided on prices alone"
                continue
            gaps = []
            if days[0] - table.warm_up_from > _NEWS_GAP:
                gaps.append(f"begin on {days[0]}")
            if table.last - days[-1] > _NEWS_GAP:
                gaps.append(f"end on {days[-1]}")
            if gaps:
                notes[symbol, table.name] = f"news of {symbol} {' and '.join(gaps)}"
    return notes
