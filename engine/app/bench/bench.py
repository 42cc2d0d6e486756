"""One bench from its request to its cells: rows of rules and of agents beside the paper's figures.

The rows of rule strategies in a bench, with the parameters of the authors or of a search.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

from engine.app.bench.forecast import asks_service
from engine.app.bench.jobs import Job, Played, run_jobs
from engine.app.bench.learned import LearnedRows, explained, table_market
from engine.app.bench.plan import BenchRecord, BenchRequest, Plan, PlannedRow, load_record, plan, strategy_titles
from engine.app.records.trial_index import check_trial_index, count_trials, result_trial, tune_trial
from engine.app.research.market_data import load_window
from engine.app.research.run_spec import Stop, check_spec, new_run_id, settled
from engine.conventions.catalog import Convention, convention
from engine.conventions.metrics import Metrics
from engine.domain.decision import Action
from engine.domain.market import LISTED, Symbol
from engine.domain.run import DataSpec, ModelUse, Result, RunSpec, Trial, TrialKind
from engine.errors import MENDED, MissingData, PaperdeskError, StaleData, UsageError
from engine.lab.published_tables import (
    BENCHES,
    UNPRINTED,
    PublishedTable,
    adjusted_market,
    cumulative_returns,
    elsewhere,
    measured,
    own_strategy_run,
    published,
    run_rule,
    session_returns,
)
from engine.lab.tuning import Tuned, in_turn, tune
from engine.lab.window import execution_rules
from engine.ports import Calendar, MarketSource
from engine.program_files import need_extra
from engine.reports.comparison import (
    AgentRow,
    Cell,
    Curves,
    agent_cells,
    averages,
    compare,
    median_repeat,
    paired_rows,
    row_name,
    spreads,
)
from engine.reports.documents.research import Bench
from engine.reports.documents.row_json import unresolved_by_agent
from engine.reports.performance import BENCHMARK, owner_books, unmeasured
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

    @property
    def open_jobs(self) -> Sequence[Job]:
        """Those that no earlier part of the bench has brought to their end."""
        return [job for number, job in enumerate(self.jobs) if not self.record.result(number).exists()]

    @property
    def record(self) -> BenchRecord:
        """The record that it is gone on with by."""
        models = () if self.plan is None else tuple(model.spec for model in self.plan.backbones)
        return BenchRecord(self.request.run, self.request, models)


def prepare(services: Services, request: BenchRequest) -> PreparedBench:
    """Check everything that a bench needs. Raises UsageError for an unknown bench, symbol or step,
    MissingData without a folder, ConfigError without Optuna where it tunes, ConfigError and CredentialsRefused for a
    model that cannot be used."""
    request = replace(request, run=request.run or new_run_id("bench", services.clock.now()))
    tables = bench_tables(services, request)
    _check_window(tables[0], services)
    if request.trials and not any(fixed_params(rule) for table in tables for rule in table.strategies()):
        raise UsageError(f"--tune: no rule of {request.name} has parameters to tune")
    if request.trials:
        need_extra("tune", "optuna", used_by="--tune")
    demo = request.name == UNPRINTED and request.folder is None
    data = services.data if demo else needed_folder(request.name, request.folder)
    made = plan(services, request, tables, data) if request.agents else None
    check_trial_index()
    return PreparedBench(request=request, tables=tables, data=data, plan=made)


def _check_window(table: PublishedTable, services: Services) -> None:
    """Raises UsageError for a window in which nothing can be run."""
    spec = RunSpec(
        symbols=table.symbols(),
        first=table.first,
        last=table.last,
        warm_up_from=table.warm_up_from,
        strategy=BENCHMARK,
    )
    check_spec(spec, services.clock.now())


def resumed(services: Services, run: str, jobs: int, scheduler: str | None) -> PreparedBench:
    """A bench that was stopped, as it was begun, `jobs` at a time or on a scheduler's workers. Raises MissingData where
    there is none, UsageError where other models are configured by now, and as `prepare` does."""
    kept = load_record(run)
    prepared = prepare(services, replace(kept.request, jobs=jobs, scheduler=scheduler))
    now = prepared.record.models
    if now != kept.models:
        words = f"{', '.join(kept.models)} answered, and {', '.join(now)} would by now"
        raise UsageError(
            f"--resume {run} continues a bench with its original settings: {words}; configure its models again"
        )
    return prepared


def run_bench(
    services: Services,
    prepared: PreparedBench,
    report: Report = lambda text: None,
    stop: Stop = lambda: False,
    *,
    budget: Decimal | None = None,
) -> Bench:
    """Run the rules, then the agents, whose models cost `budget` (USD) at most. A symbol or window that the folder
    lacks leaves its cells empty, with the reason; after `stop` the rows that are done stay. A bench that ends early
    leaves a record that it is gone on with by. Raises MissingData where no row can be had, MalformedData for a
    row of a file that cannot be read, and what a run raises."""
    request, tables, made = prepared.request, prepared.tables, prepared.plan
    source = services.open_source(prepared.data, max(table.last for table in tables))
    rules = RuleRows(
        source=source,
        calendar_for=services.calendar_for,
        report=report,
        now=services.clock.now(),
        trials=request.trials,
        seed=services.config.desk.seed,
    )
    ruled = {table.name: rules.of(table) for table in tables}
    count_trials(rules.tried)
    if not rules.priced:
        why = next(iter(rules.missing.values()), "it has no symbols")
        raise MissingData(f"bench {request.name}: no row of ours can be had: {why}")
    rows: dict[str, list[AgentRow]] = {}
    played: Mapping[int, Played] = {}
    if made is not None:
        played = _played(services, prepared, budget, report, stop)
        for table, row in agent_rows(made, played, asyncio.run(text_notes(source, tables))):
            rows.setdefault(table.name, []).append(row)
    learned = LearnedRows(services, prepared.data, report, stop)
    trained = {table.name: list(learned.of(table)) for table in tables if request.learned}
    count_trials([result_trial(TrialKind.BENCH, result, services.clock.now()) for result in learned.results])
    for strategy, title in _own_strategies(request).items():
        for table in _with_symbols_last(tables):
            rows.setdefault(table.name, []).extend(
                _strategy_rows(services, prepared.data, table, (strategy, title), report)
            )
    cells: list[Cell] = []
    for table in tables:
        cells += [_explained(cell, rules) for cell in compare(ruled[table.name], table)]
        beside = agent_cells([*rows.get(table.name, ()), *trained.get(table.name, ())], table)
        cells += map(explained, beside) if request.learned else beside
    rule = convention(tables[0].convention).rule
    pairs = [pair for table in tables for pair in paired_rows(rows.get(table.name, ()), table)]
    notes = (*([rule] if rule else ()), *_unprinted_notes(prepared))
    done = Bench(
        name=request.name,
        cells=tuple(cells),
        curves=_curves(tables, {n: [*rows.get(n, ()), *trained.get(n, ())] for n in {*rows, *trained}}, rules),
        pairs=tuple(pairs),
        notes=notes,
        interrupted="interrupted: learned rows are missing; models that were trained are kept" * learned.unfinished,
    )
    return done if made is None else _with_agents(done, prepared, made, played)


def _curves(tables: Sequence[PublishedTable], rows: Mapping[str, Sequence[AgentRow]], rules: RuleRows) -> Curves:
    """The curves of every row, agents first; of tables that share their rows those of the last."""
    found: dict[tuple[str, Symbol], dict[str, Mapping[date, float]]] = {}
    for name in (table.name for table in _with_symbols_last(tables)):
        for row in rows.get(name, ()):
            found.setdefault((name, row.symbol), {})[row_name(row.model, row.answered_by)] = row.curve
        for (of, symbol, rule), points in rules.curves.items():
            if of == name:
                found.setdefault((of, symbol), {})[rule] = points
    return found


def _unprinted_notes(prepared: PreparedBench) -> Iterator[str]:
    """Notes on a bench whose paper prints no results."""
    if prepared.request.name == UNPRINTED:
        table = prepared.tables[0]
        training = "no training" if table.warm_up_from is None else f"training from {table.warm_up_from}"
        yield "the paper plans this comparison and prints no results: there is no printed column, every row is ours"
        yield f"{training}, test from {table.first} to {table.last}"
        if prepared.data.folder is None:
            yield "the demo market: its companies and prices are made up"


def _played(
    services: Services, prepared: PreparedBench, budget: Decimal | None, report: Report, stop: Stop
) -> Mapping[int, Played]:
    """The runs of the agents that came to their end, in this part of the bench or before. Raises what a run raises, and
    how to go on where that can be mended or passes."""
    record, jobs = prepared.record, prepared.jobs
    record.begin()
    with record.lock():
        done = {number: one for number in range(len(jobs)) if (one := record.done(number)) is not None}
        left = [number for number in range(len(jobs)) if number not in done]
        open_jobs = [
            replace(
                jobs[number],
                begun=record.began(number) if asks_service(services, settled(services, jobs[number].spec)) else None,
            )
            for number in left
        ]
        within = replace(services, limit=record.limit(services.config.budget, budget))
        progress = _progress(report, len(jobs), len(done))
        try:
            ended = run_jobs(
                within,
                open_jobs,
                prepared.request.jobs,
                stop,
                progress,
                keep=lambda place, one: record.keep(left[place], one),
                scheduler=prepared.request.scheduler,
            )
        except PaperdeskError as error:
            if error.exit_code in MENDED:
                error.args = (f"{error}; finished work is kept, `{go_on(prepared)}` continues",)
            raise
    played = dict(sorted((done | {left[place]: one for place, one in ended.items()}).items()))
    if len(played) == len(jobs):
        record.remove()
    return played


def go_on(prepared: PreparedBench) -> str:
    """The command that goes on with a bench."""
    return f"paperdesk bench {prepared.request.name} --resume {prepared.request.run}"


def _with_agents(
    bench: Bench,
    prepared: PreparedBench,
    made: Plan,
    played: Mapping[int, Played],
) -> Bench:
    notes = [f"{model.spec} decided our rows: {model.label}" for model in made.backbones]
    if any(model.repeats_are_equal for model in made.backbones):
        notes.append("rules decide otherwise than a model would: beside the paper's agents they reproduce nothing")
    if made.equal_repeats:
        notes.append("offline answers alike every time: its rows were run once, and repeats would be equal")
    results = [one.result for one in played.values() if one.result is not None]
    rest = sum(not played.keys() >= set(row.jobs) for row in made.rows)
    interrupted = bench.interrupted
    if rest:
        rows_done = f"{len(made.rows) - rest} of {len(made.rows)} rows are done"
        interrupted = f"interrupted: {rows_done}; `{go_on(prepared)}` continues"
    return replace(
        bench,
        averages=tuple(a for table in prepared.tables for a in averages(table, made.agents.models, bench.cells)),
        notes=(*bench.notes, *notes),
        runs=tuple(made.jobs[n].spec.run for n, one in played.items() if one.result is not None and made.jobs[n].keep),
        models=tuple(models_used(result.model for result in results)),
        unresolved=unresolved_figures(results),
        interrupted=interrupted,
    )


def bench_tables(services: Services, request: BenchRequest) -> tuple[PublishedTable, ...]:
    """The tables of a bench, of some symbols alone; one without printed rows is of any, on the demo market of its
    first. Raises UsageError for an unknown bench or symbol."""
    name, symbols = request.name, tuple(dict.fromkeys(request.symbols))
    if name not in BENCHES:
        raise UsageError(f"unknown bench {name}; available: {', '.join(BENCHES)}")
    tables = published(name)
    if name == UNPRINTED:
        symbols = symbols or (services.symbols[:1] if request.folder is None else ())
        return tuple(elsewhere(table, symbols, request.window, request.warm_up_from) for table in tables)
    known = tuple(dict.fromkeys(symbol for table in tables for symbol in table.symbols()))
    for symbol in symbols:
        if symbol not in known:
            raise UsageError(f"--symbols: {name}'s tables have no {symbol}; available: {', '.join(known)}")
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


def _progress(report: Report, total: int, before: int) -> Callable[[Job, int], None]:
    report(f"{before} of {total} runs of agents are done")
    return lambda job, count: report(f"{before + count} of {total} runs of agents are done, the last {job.title}")


def _explained(cell: Cell, rules: RuleRows) -> Cell:
    reason = rules.missing.get(cell.symbol) if cell.ours is None else rules.tuned.get((cell.symbol, cell.who))
    if reason is None:
        return cell
    return replace(cell, note=reason if cell.note is None else f"{reason}; {cell.note}")


def models_used(uses: Iterable[ModelUse | None]) -> Iterator[ModelUse]:
    """The use of each model in all, by its spec."""
    meters: dict[str, CostMeter] = {}
    for use in uses:
        if use is not None:
            meters.setdefault(use.spec, CostMeter(use.spec, use.training_cutoff, use.prices_as_of)).add(use)
    return (meter.use for meter in meters.values())


def unresolved_figures(results: Iterable[Result]) -> Mapping[str, Mapping[str, int]]:
    """Figures of decisions, those of the training too, that stand in no source, by model and agent."""
    found: dict[str, Counter[str]] = {}
    for result in results:
        if result.model is not None:
            for part in filter(None, (result.warm_up, result.test)):
                told = unresolved_by_agent(part.decisions, result.model)
                found.setdefault(result.model.spec, Counter()).update(told)
    return found


_NEWS_GAP = timedelta(days=30)
"""Shortest time without news at a window's begin or end that is noted."""

TextNotes = Mapping[tuple[Symbol, str], str]
"""Notes on news that the folder lacks, by symbol and table."""


def agent_rows(made: Plan, played: Mapping[int, Played], texts: TextNotes) -> Iterator[tuple[PublishedTable, AgentRow]]:
    """The rows whose runs have all ended, and after each those of owners with books of their own."""
    whole: dict[tuple[object, ...], AgentRow] = {}
    for planned in made.rows:
        ended = [played[number] for number in planned.jobs if number in played]
        if len(ended) < len(planned.jobs):
            continue
        row = _row(planned, ended, texts.get((planned.symbol, planned.table.name)))
        beside = (planned.table.name, planned.symbol, planned.backbone)
        if planned.variant is None:
            whole[beside] = row
        elif planned.variant.preset is None and beside in whole and (row.metrics or None) == whole[beside].metrics:
            row = replace(row, note=f"{row.note}; what it leaves out changed nothing")
        yield planned.table, row
        for owner in dict.fromkeys(book for one in ended if one.result for book in owner_books(one.result.test)):
            own = [_of_owner(one, owner) for one in ended]
            found = _row(planned, own, texts.get((planned.symbol, planned.table.name)))
            yield planned.table, replace(found, model=f"{row.model}, {owner}")


def _of_owner(played: Played, owner: str) -> Played:
    """One owner's book as the result."""
    result = played.result
    return replace(played, result=result and replace(result, test=owner_books(result.test)[owner]))


def _row(planned: PlannedRow, ended: Sequence[Played], text: str | None) -> AgentRow:
    """One row of its repeats: figures and notes, or the note alone."""
    results = [one.result for one in ended if one.result is not None]
    trouble = next((one.trouble for one in ended if one.trouble), None)
    row = AgentRow(
        symbol=planned.symbol, model=planned.model, answered_by=planned.backbone.spec, metrics={}, note=trouble
    )
    if not results:
        return row
    known = convention(planned.table.convention)
    repeats = [measured(result, planned.symbol, known.name) for result in results]
    chosen = median_repeat(repeats)
    notes = (
        f"{planned.backbone.spec}: {planned.backbone.label}",
        text,
        None if trouble is None else f"{len(results)} of {len(ended)} repeats: {trouble}",
        _abstained(results),
        None if any(_acted(result, known) for result in results) else "it never traded",
        _without_sharpe(repeats),
        unmeasured(known, repeats[chosen]),
        *dict.fromkeys(note for result in results for note in result.notes),
        None if planned.variant is None else planned.variant.note,
    )
    spread = spreads(repeats) if len(repeats) > 1 else {}
    return replace(
        row,
        metrics=repeats[chosen],
        note="; ".join(filter(None, notes)),
        spreads=spread,
        returns=session_returns(results[chosen], planned.symbol, known.name),
        curve=cumulative_returns(results[chosen], planned.symbol, known.name),
    )


RULES = "rules"


def _own_strategies(request: BenchRequest) -> Mapping[str, str]:
    """The user's strategies with what their rows are called, and with what they are held against."""
    return strategy_titles((*request.strategies, BENCHMARK)) if request.strategies or request.presets else {}


def _with_symbols_last(tables: Sequence[PublishedTable]) -> Iterator[PublishedTable]:
    """The tables whose symbols no later one has, all of them."""
    for position, table in enumerate(tables):
        if not any(set(table.symbols()) <= set(other.symbols()) for other in tables[position + 1 :]):
            yield table


def _strategy_rows(
    services: Services, data: DataSpec, table: PublishedTable, named: tuple[str, str], report: Report
) -> Iterator[AgentRow]:
    """A strategy, with what its rows are called, on every symbol of a table: figures, or a note on why there are
    none."""
    strategy, name = named
    for symbol in table.symbols():
        report(f"{name} on {symbol}")
        row = AgentRow(symbol=symbol, model=name, answered_by=RULES, metrics={})
        try:
            market = table_market(services, data, table, symbol)
            result = own_strategy_run(table, symbol, strategy, market)
        except (MissingData, StaleData) as error:
            yield replace(row, note=str(error))
            continue
        metrics = measured(result, symbol, table.convention)
        known = convention(table.convention)
        notes = (unmeasured(known, metrics), *result.notes)
        yield replace(
            row,
            metrics=metrics,
            note="; ".join(filter(None, notes)) or None,
            returns=session_returns(result, symbol, table.convention),
            curve=cumulative_returns(result, symbol, table.convention),
        )


def _acted(result: Result, known: Convention) -> bool:
    if known.measured == "equity":
        return bool(result.test.fills)
    return any(decision.proposal.action in (Action.BUY, Action.SELL) for decision in result.test.decisions)


def _without_sharpe(repeats: Sequence[Metrics]) -> str | None:
    """Note on repeats that count as 0 in the search for the one with the median Sharpe."""
    count = sum(repeat.get("SR") is None for repeat in repeats)
    return f"{count} of {len(repeats)} repeats have no SR, and rank as 0" if count and len(repeats) > 1 else None


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
            days = sorted(d for item in items if table.begin <= (d := item.available_at.date()) <= table.last)
            if not days:
                notes[symbol, table.name] = f"no news of {symbol} from {table.begin} on: decided on prices alone"
                continue
            gaps = []
            if days[0] - table.begin > _NEWS_GAP:
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
    report: hears of each symbol.
    now: date of the trials (UTC).
    trials: of the search of parameters that the authors tuned; 0 takes their values.
    seed: of the search.
    priced: symbols with prices.
    missing: reasons why other symbols have none.
    tuned: the parameters that a search has chosen, in words, by symbol and rule.
    curves: cumulative returns by session, by table, symbol and rule.
    tried: trials on the windows of the tables.
    """

    source: MarketSource
    calendar_for: Callable[[Symbol], Calendar]
    report: Report
    now: datetime
    trials: int
    seed: int
    priced: set[Symbol] = field(default_factory=set)
    missing: dict[Symbol, str] = field(default_factory=dict)
    tuned: dict[tuple[Symbol, str], str] = field(default_factory=dict)
    curves: dict[tuple[str, Symbol, str], Mapping[date, float]] = field(default_factory=dict)
    tried: list[Trial] = field(default_factory=list)
    _found: dict[tuple[Symbol, str, date], Mapping[str, str]] = field(default_factory=dict)

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
            found = self._tuned(table, symbol, rule) if self.trials and fixed_params(rule) else {}
            result = run_rule(table, symbol, rule, market, found)
            self.tried.append(result_trial(TrialKind.BENCH, result, self.now))
            ours[symbol, rule] = measured(result, symbol, table.convention)
            self.curves[table.name, symbol, rule] = cumulative_returns(result, symbol, table.convention)
        return ours

    def _tuned(self, table: PublishedTable, symbol: Symbol, rule: str) -> Mapping[str, str]:
        """The best parameters of a rule in the training period, those fixed that the authors did not tune; none, with
        the reason, where the search finds none. Source: FinAgent §5.3, appendix B [A13]."""
        key = (symbol, rule, table.first)
        if key not in self._found:
            self.report(f"{table.name}: {symbol}, {rule} is tuned")
            fixed = fixed_params(rule)
            period = f"on {table.begin} to {table.first - timedelta(days=1)}"
            try:
                found = self._search(table, symbol, rule, fixed)
            except UsageError as error:
                self._found[key], self.tuned[symbol, rule] = {}, f"not tuned {period}: {error}"
            else:
                self._found[key] = {name: value for name, value in found.params.items() if name not in fixed}
                words = ", ".join(f"{name} {float(value):g}" for name, value in self._found[key].items())
                self.tuned[symbol, rule] = f"tuned {period} in {found.trials} trials: {words}"
        return self._found[key]

    def _search(self, table: PublishedTable, symbol: Symbol, rule: str, fixed: Mapping[str, str]) -> Tuned:
        """A search in the training period by the table's convention."""
        spec = RunSpec(
            symbols=(symbol,),
            first=table.begin,
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
            in_turn(adjusted_market(table, symbol, market), execution_rules(spec, known), known.starting_cash),
            exchange=LISTED.of(symbol),
            trials=self.trials,
            test=None,
            on_trial=lambda symbol, done, wanted: None,
            on_tried=lambda spec, returns: self.tried.append(tune_trial(spec, returns, self.now)),
        )
