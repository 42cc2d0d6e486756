"""One bench from its request to its cells: rows of rules and of agents beside the paper's figures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Literal

from engine.app.backtest import Stop
from engine.app.bench.jobs import Job, Played, run_jobs
from engine.app.bench.plan import BenchRequest, Plan, PlannedRow, plan
from engine.app.look_index import count_looks, result_look
from engine.app.market_data import load_window
from engine.conventions.catalog import convention
from engine.conventions.metrics import Metrics
from engine.domain.decision import Action
from engine.domain.exchanges import LISTED
from engine.domain.market import Symbol
from engine.domain.run import DataSpec, LookKind, ModelUse, Result, RunSpec, WindowLook
from engine.errors import MissingData, StaleData, UsageError
from engine.lab.published_runs import Override, adjusted_market, measured, overrides, rule_params, run_rule
from engine.lab.published_tables import BENCHES, PublishedTable, published
from engine.lab.tuning import Tuned, default_metric, tune
from engine.lab.window import execution_rules
from engine.ports import Calendar, MarketSource
from engine.reports.comparison import AgentRow, Cell, agent_cells, compare, median_repeat, spreads
from engine.reports.documents.research import Bench
from engine.reports.model_averages import averages
from engine.services import Services
from engine.session.cost_meter import CostMeter
from engine.strategies.catalog import fixed_params


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedBench:
    """A bench whose request was checked; without a plan it runs rules alone."""

    request: BenchRequest
    tables: tuple[PublishedTable, ...]
    data: DataSpec
    plan: Plan | None = None

    @property
    def jobs(self) -> Sequence[Job]:
        """The runs of the agents."""
        return () if self.plan is None else self.plan.jobs


def prepare(services: Services, request: BenchRequest) -> PreparedBench:
    """Check everything that a bench needs. Raises UsageError for an unknown bench, symbol, parameter or step,
    MissingData without a folder, ConfigError and CredentialsRefused for a model that cannot be used."""
    tables = bench_tables(request.name, request.symbols)
    overrides(request.params, _rules(tables))
    if request.trials and not any(map(fixed_params, _rules(tables))):
        raise UsageError(f"--tune: no rule of {request.name} has parameters to tune")
    data = needed_folder(request.name, request.folder)
    made = plan(services, request, tables, data) if request.agents else None
    return PreparedBench(request=request, tables=tables, data=data, plan=made)


def run_bench(
    services: Services,
    prepared: PreparedBench,
    report: Report = lambda text: None,
    stop: Stop = lambda: False,
) -> Bench:
    """Run the rules, then the agents. A symbol or window that the folder lacks leaves its cells empty, with the
    reason; after `stop` the rows that are done stay. Raises MissingData where no row can be had, MalformedData for a
    row of a file that cannot be read, and what a run raises."""
    request, tables, made = prepared.request, prepared.tables, prepared.plan
    source = services.open_source(prepared.data, max(table.last for table in tables))
    rules = RuleRows(
        source=source,
        calendar_for=services.calendar_for,
        changes=overrides(request.params, _rules(tables)),
        report=report,
        now=services.clock.now(),
        trials=request.trials,
        seed=services.config.desk.seed,
    )
    ruled = {table.name: rules.of(table) for table in tables}
    count_looks(rules.looks)
    if not rules.priced:
        why = next(iter(rules.missing.values()), "it has no symbols")
        raise MissingData(f"bench {request.name}: no row of ours can be had: {why}")
    rows: dict[str, list[AgentRow]] = {}
    played: Mapping[int, Played] = {}
    if made is not None:
        played = run_jobs(services, made.jobs, request.jobs, stop, _progress(report, len(made.jobs)))
        for table, row in agent_rows(made, played, asyncio.run(text_notes(source, tables))):
            rows.setdefault(table.name, []).append(row)
    cells: list[Cell] = []
    for table in tables:
        cells += [_explained(cell, rules) for cell in compare(ruled[table.name], table)]
        if made is not None:
            cells += agent_cells(rows.get(table.name, ()), table)
    done = Bench(name=request.name, cells=tuple(cells))
    return done if made is None else _with_agents(done, prepared, made, played, rows)


def _with_agents(
    bench: Bench,
    prepared: PreparedBench,
    made: Plan,
    played: Mapping[int, Played],
    rows: Mapping[str, Sequence[AgentRow]],
) -> Bench:
    notes = [f"{model.spec} decided our rows: {model.label}" for model in made.backbones]
    if any(model.repeats_are_equal for model in made.backbones):
        notes.append("rules decide otherwise than a model would: beside the paper's agents they reproduce nothing")
    if made.agents.measured == "decisions":
        notes.append("measured as the paper does, by the decisions: BUY is long, SELL short, HOLD flat")
    if made.equal_repeats:
        notes.append("offline answers alike every time: its rows were run once, and repeats would be equal")
    rest = len(made.rows) - sum(map(len, rows.values()))
    interrupted = f"interrupted: {len(made.rows) - rest} of {len(made.rows)} rows are done" if rest else ""
    return replace(
        bench,
        averages=tuple(a for table in prepared.tables for a in averages(table, made.agents.models, bench.cells)),
        notes=tuple(notes),
        runs=tuple(made.jobs[n].spec.run for n, one in played.items() if one.result is not None and made.jobs[n].keep),
        models=tuple(_used(one.result.model for one in played.values() if one.result is not None)),
        interrupted=interrupted,
    )


def bench_tables(name: str, symbols: Sequence[Symbol] = ()) -> tuple[PublishedTable, ...]:
    """The tables of a bench, of some symbols alone. Raises UsageError for an unknown bench or symbol."""
    if name not in BENCHES:
        raise UsageError(f"no bench {name}; there are {', '.join(BENCHES)}")
    tables = published(name)
    known = tuple(dict.fromkeys(symbol for table in tables for symbol in table.symbols()))
    for symbol in symbols:
        if symbol not in known:
            raise UsageError(f"--symbols: {name}'s tables have no {symbol}; there are {', '.join(known)}")
    if not symbols:
        return tables
    chosen = (replace(table, cells=tuple(c for c in table.cells if c.symbol in symbols)) for table in tables)
    return tuple(table for table in chosen if table.cells)


def needed_folder(name: str, folder: str | None) -> DataSpec:
    """The data of a bench. Raises MissingData where there is no such folder, and for the demo market, whose companies
    no paper has traded."""
    if folder is None:
        wanted = ", ".join(dict.fromkeys(symbol for table in published(name) for symbol in table.symbols()))
        raise MissingData(f"bench {name} needs prices of the paper's symbols ({wanted}): name their folder, --data DIR")
    if not Path(folder).expanduser().is_dir():
        raise MissingData(f"no data folder {folder}; --data names one that holds prices/SYMBOL.csv")
    return DataSpec(folder)


def _rules(tables: Sequence[PublishedTable]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(rule for table in tables for rule in table.strategies()))


def _progress(report: Report, total: int) -> Callable[[Job, int], None]:
    report(f"0 of {total} runs of agents are done")
    return lambda job, count: report(f"{count} of {total} runs of agents are done, the last {job.title}")


def _explained(cell: Cell, rules: RuleRows) -> Cell:
    reason = rules.missing.get(cell.symbol) if cell.ours is None else rules.tuned.get((cell.symbol, cell.who))
    if reason is None:
        return cell
    return replace(cell, note=reason if cell.note is None else f"{reason}; {cell.note}")


def _used(uses: Iterable[ModelUse | None]) -> Iterator[ModelUse]:
    """The use of each model in all, by its spec."""
    meters: dict[str, CostMeter] = {}
    for use in uses:
        if use is not None:
            meters.setdefault(use.spec, CostMeter(use.spec)).add(use)
    return (meter.use for meter in meters.values())


_NEWS_GAP = timedelta(days=30)
"""Shortest time without news at a window's begin or end that is noted."""

TextNotes = Mapping[tuple[Symbol, str], str]
"""Notes on news that the folder lacks, by symbol and table."""


def agent_rows(made: Plan, played: Mapping[int, Played], texts: TextNotes) -> Iterator[tuple[PublishedTable, AgentRow]]:
    """The rows whose runs have all ended."""
    whole: dict[tuple[object, ...], AgentRow] = {}
    for planned in made.rows:
        ended = [played[number] for number in planned.jobs if number in played]
        if len(ended) < len(planned.jobs):
            continue
        row = _row(planned, ended, made.agents.measured, texts.get((planned.symbol, planned.table.name)))
        beside = (planned.table.name, planned.symbol, planned.backbone)
        if planned.variant is None:
            whole[beside] = row
        elif planned.variant.preset is None and beside in whole and (row.metrics or None) == whole[beside].metrics:
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
        None if planned.variant is None else planned.variant.note,
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
    """Notes on news of the tables' windows that the folder lacks. A symbol that it does not know is noted elsewhere."""
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


Report = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRows:
    """The rows of rules.

    source: prices.
    calendar_for: the trading calendar of a symbol.
    changes: parameters that the user has changed.
    report: hears of each symbol.
    now: date of the looks (UTC).
    trials: of the search of parameters that the authors tuned; 0 takes their values.
    seed: of the search.
    priced: symbols with prices.
    missing: reasons why other symbols have none.
    tuned: the parameters that a search has chosen, in words, by symbol and rule.
    looks: looks at the tables' windows.
    """

    source: MarketSource
    calendar_for: Callable[[Symbol], Calendar]
    changes: Sequence[Override]
    report: Report
    now: datetime
    trials: int
    seed: int
    priced: set[Symbol] = field(default_factory=set)
    missing: dict[Symbol, str] = field(default_factory=dict)
    tuned: dict[tuple[Symbol, str], str] = field(default_factory=dict)
    looks: list[WindowLook] = field(default_factory=list)
    _found: dict[tuple[Symbol, str, date], Sequence[Override]] = field(default_factory=dict)

    def of(self, table: PublishedTable) -> dict[tuple[Symbol, str], Metrics]:
        """The metrics of a table's rules by symbol and rule, empty where a symbol's prices are missing or stale.
        Raises MalformedData for a row of a file that cannot be read."""
        ours: dict[tuple[Symbol, str], Metrics] = {}
        for symbol in table.symbols():
            self.report(f"{table.name}: {symbol}")
            try:
                ours |= self._rows(table, symbol)
                self.priced.add(symbol)
            except (MissingData, StaleData) as error:
                ours |= {(symbol, rule): {} for rule in table.strategies()}
                self.missing[symbol] = str(error)
        return ours

    def _rows(self, table: PublishedTable, symbol: Symbol) -> dict[tuple[Symbol, str], Metrics]:
        market = asyncio.run(load_window(self.source, self.calendar_for, (symbol,), table.first, table.last))
        wanted = {cell.strategy for cell in table.cells if cell.symbol == symbol and cell.strategy}
        ours: dict[tuple[Symbol, str], Metrics] = {}
        for rule in sorted(wanted):
            found = self._tuned(table, symbol, rule) if self.trials and fixed_params(rule) else ()
            result = run_rule(table, symbol, rule, market, (*found, *self.changes))
            self.looks.append(result_look(LookKind.BENCH, result, self.now))
            ours[symbol, rule] = measured(result, symbol, table.convention)
        return ours

    def _tuned(self, table: PublishedTable, symbol: Symbol, rule: str) -> Sequence[Override]:
        """The best parameters of a rule in the training period, those fixed that the authors did not tune; none, with
        the reason, where the search finds none. Source: FinAgent §5.3, appendix B [A13]."""
        key = (symbol, rule, table.first)
        if key not in self._found:
            self.report(f"{table.name}: {symbol}, {rule} is tuned")
            given = fixed_params(rule).keys() | {one.key for one in self.changes if one.strategy in (None, rule)}
            fixed = {name: value for name, value in rule_params(rule, symbol, self.changes).items() if name in given}
            period = f"on {table.warm_up_from} to {table.first - timedelta(days=1)}"
            try:
                found = self._search(table, symbol, rule, fixed)
            except UsageError as error:
                self._found[key], self.tuned[symbol, rule] = (), f"not tuned {period}: {error}"
            else:
                chosen = {name: value for name, value in found.params.items() if name not in fixed}
                words = ", ".join(f"{name} {float(value):g}" for name, value in chosen.items())
                self._found[key] = [Override(rule, name, value) for name, value in chosen.items()]
                self.tuned[symbol, rule] = f"tuned {period} in {found.trials} trials: {words}"
        return self._found[key]

    def _search(self, table: PublishedTable, symbol: Symbol, rule: str, fixed: Mapping[str, str]) -> Tuned:
        """A search in the training period by the table's convention."""
        spec = RunSpec(
            symbols=(symbol,),
            first=table.warm_up_from,
            last=table.first - timedelta(days=1),
            strategy=rule,
            params=tuple(fixed.items()),
            convention=table.convention,
            seed=self.seed,
        )
        known = convention(table.convention).for_symbols((symbol,))
        market = asyncio.run(load_window(self.source, self.calendar_for, (symbol,), spec.first, spec.last))
        return tune(
            spec,
            default_metric(table.convention),
            adjusted_market(table, symbol, market),
            exchange=LISTED.of(symbol),
            rules=execution_rules(spec, known),
            cash=known.starting_cash,
            trials=self.trials,
            test=None,
            on_trial=lambda symbol, done, wanted: None,
            on_result=lambda one: self.looks.append(result_look(LookKind.TUNE_TRIAL, one, self.now)),
        )
