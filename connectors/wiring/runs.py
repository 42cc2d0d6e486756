"""From a run's description to its report: loads the data, wires the cycle or the strategy, keeps the journal."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from connectors.wiring.services import services
from engine import places
from engine.agents.ask import AnswerRecord, Asked, Asker
from engine.app.briefing import preset_of, settled
from engine.app.desk_runner import Publish
from engine.app.market_data import load_run
from engine.app.memory import keep_run_memory, run_memory
from engine.app.models import ModelSet, build_models
from engine.clock import BacktestClock, LiveClock
from engine.config import Config
from engine.conventions.catalog import Convention, convention
from engine.cycle.cycle import Cycle
from engine.cycle.recall import TradingMemory
from engine.domain.execution import ExecutionRules, PriceBasis
from engine.domain.run import Result, RunKind, RunOutcome, RunSpec
from engine.errors import PaperdeskError, UsageError
from engine.journal.entries import RunEntry
from engine.journal.writer import JournalWriter
from engine.lab.backtest import BacktestContext, run_agents, windows
from engine.lab.rule_backtest import run_strategy
from engine.lab.window import desk_calendar_of, execution_rules
from engine.market.as_of import Market
from engine.market.trading_hours import FIRST_SESSION
from engine.messages.events import AgentSaid, Noticed, RunFinished, RunStarted
from engine.ports import Clock
from engine.preset import Preset
from engine.reports.report import Report
from engine.reports.stored import keep
from engine.services import Services
from engine.session.cost_meter import CostMeter, answered
from engine.session.recorder import JournalRecorder, Silent
from engine.simulation.price_basis import known_adjusted, on_basis
from engine.strategies.catalog import make_strategy

BASELINES = ("buy-and-hold", "equal-weight", "macd", "kdj-rsi", "z-score", "random", "cash")
"""The strategies that stand beside every result."""

DEMO_WINDOW = (date(2024, 11, 1), date(2025, 1, 2), date(2025, 6, 30))
"""Warm-up from, first and last session of the demo desk's backtest."""

WARM_UP, TEST = 40, 120
"""Sessions of warm-up and test that are proposed for a data folder: its last ones."""

Stop = Callable[[], bool]
OnBaseline = Callable[[str, Result], None]


def new_run_id(kind: str, now: datetime) -> str:
    """An id that sorts by time and that no two runs share."""
    return f"{kind}-{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def default_spec(config: Config) -> RunSpec:
    """The backtest of a desk that was told nothing: its preset and symbols over a fixed window of the demo market, or
    the last sessions of its data folder. Raises UsageError without symbols, MissingData without data."""
    given = services(config)
    data, symbols = given.data, given.symbols
    if not symbols:
        raise UsageError("no symbols; give --symbols A,B or set desk.symbols in the configuration")
    warm_up_from, first, last = DEMO_WINDOW if data.folder is None else asyncio.run(_last_sessions(given))
    return RunSpec(
        symbols=symbols,
        first=first,
        last=last,
        warm_up_from=warm_up_from,
        preset=config.desk.preset,
        data=data,
        convention=config.metrics.convention,
        seed=config.desk.seed,
    )


async def _last_sessions(given: Services) -> tuple[date, date, date]:
    source = given.open_source(given.data, FIRST_SESSION)
    histories = [await source.history(symbol) for symbol in given.symbols]
    last = min(history.session(-1) for history in histories)
    calendar = given.desk_calendar(given.symbols)
    sessions = calendar.sessions(last - timedelta(days=2 * (WARM_UP + TEST)), last)[-(WARM_UP + TEST) :]
    return sessions[0], sessions[min(WARM_UP, len(sessions) - 1)], sessions[-1]


def run_backtest(
    spec: RunSpec,
    config: Config,
    publish: Publish = lambda event: None,
    stop: Stop = lambda: False,
    clock: Clock | None = None,
    on_baseline: OnBaseline = lambda name, result: None,
    *,
    market: Market | None = None,
    baselines: Sequence[str] = BASELINES,
) -> Report:
    """Runs a backtest and its `baselines` and keeps the run's journal. `publish` hears every event, `stop` is asked
    before each session, `on_baseline` gets each baseline before the run begins; `market` is the run's where it is
    loaded already. Raises UsageError, DataError, ConfigError and CredentialsRefused before anything is kept."""
    wall = clock or LiveClock()
    check_spec(spec, wall.now())
    return asyncio.run(
        _run(settled(services(config), spec), config, publish, stop, wall, on_baseline, market, baselines)
    )


def check_spec(spec: RunSpec, now: datetime) -> None:
    """Raises UsageError for a description that cannot mean a run."""
    if (spec.preset is None) == (spec.strategy is None):
        raise UsageError("a run has either a preset (agents) or a strategy (rules); give one of --preset, --strategy")
    if spec.strategy is not None and (spec.model or spec.without):
        raise UsageError("--model and --without belong to a preset of agents; a strategy asks nobody")
    if spec.preset is not None and spec.params:
        raise UsageError("--param belongs to a --strategy; a preset is changed in its own file")
    if not spec.symbols:
        raise UsageError("no symbols; give --symbols A,B or set desk.symbols in the configuration")
    twice = next((s for n, s in enumerate(spec.symbols) if s in spec.symbols[:n]), None)
    if twice:
        raise UsageError(f"--symbols names {twice} twice")
    if spec.first > spec.last:
        raise UsageError(f"--from {spec.first} is after --to {spec.last}")
    if spec.warm_up_from is not None and spec.warm_up_from >= spec.first:
        raise UsageError(f"--warm-up-from {spec.warm_up_from} is not before --from {spec.first}")
    if min(spec.first, spec.warm_up_from or spec.first) <= FIRST_SESSION:
        raise UsageError(f"the calendars begin on {FIRST_SESSION}; choose a later --from")
    if spec.last > now.date():
        raise UsageError(f"--to {spec.last} lies in the future; today is {now:%Y-%m-%d}")
    if spec.cash is not None and spec.cash <= 0:
        raise UsageError(f"--cash {spec.cash}: it must be above zero")
    for flag, cost in (("--commission", spec.commission), ("--slippage", spec.slippage_bp)):
        if cost is not None and cost < 0:
            raise UsageError(f"{flag} {cost}: a cost is not below zero")
    if spec.strategy is not None:
        make_strategy(spec.strategy, dict(spec.params))
    convention(spec.convention)


def with_costs(spec: RunSpec, config: Config) -> tuple[ExecutionRules, Decimal]:
    """The rules and the starting cash of a run: the configuration's under the desk's own convention, the paper's
    under a paper's, each overridden by the run's own."""
    known = convention(spec.convention)
    if known.name == "desk":
        own = config.execution
        known = replace(
            known,
            starting_cash=config.desk.cash,
            execution=replace(
                known.execution,
                slippage_bp=own.slippage_bp,
                commission_rate=own.commission,
                commission_per_order=own.commission_per_order,
                commission_per_share=own.commission_per_share,
                volume_cap=own.volume_cap,
                fractional=own.fractional,
            ),
        )
    return execution_rules(spec, known), known.starting_cash if spec.cash is None else spec.cash


async def _run(
    spec: RunSpec,
    config: Config,
    publish: Publish,
    stop: Stop,
    wall: Clock,
    on_baseline: OnBaseline,
    given: Market | None,
    wanted: Sequence[str],
) -> Report:
    preset = preset_of(spec)
    models = None if preset is None else build_models(services(config), preset, spec.model)
    market = await load_run(services(config), spec) if given is None else given
    windows(spec, desk_calendar_of(market, spec.symbols))
    baselines: dict[str, Result] = {}
    for name in wanted:
        baselines[name] = _baseline(spec, config, market, name)
        on_baseline(name, baselines[name])
    path = places.run_journal(spec.run)
    with JournalWriter(path, batched=True) as journal:
        name = spec.preset or spec.strategy or ""
        label = "a rule strategy" if models is None else models.label
        journal.run_started(
            RunEntry(
                id=spec.run,
                kind=RunKind.BACKTEST,
                name=name,
                started=wall.now(),
                label=label,
                spec=spec,
                symbols=spec.symbols,
            )
        )
        publish(_started(spec, name, label, market, wall, preset))
        try:
            if preset is None or models is None:
                result = _strategy(spec, config, market)
            else:
                result = await _agents(spec, config, market, preset, models, publish, stop, journal)
        except BaseException as error:
            outcome = RunOutcome.FAILED if isinstance(error, Exception) else RunOutcome.INTERRUPTED
            detail = str(error) if isinstance(error, PaperdeskError) else type(error).__name__
            journal.run_finished(spec.run, outcome, wall.now(), detail=detail)
            publish(RunFinished(spec.run, wall.now(), outcome, None, detail))
            raise
        report = Report(result, baselines, label, config.metrics.risk_free)
        keep(journal, report)
        journal.backtest_result(spec.run, result, wall.now())
    for note in result.notes:
        publish(Noticed(spec.run, wall.now(), "info", note))
    equity = result.test.equity
    value = equity[-1].value if equity else result.test.initial_value
    outcome = RunOutcome.INTERRUPTED if result.interrupted else RunOutcome.DONE
    publish(RunFinished(spec.run, wall.now(), outcome, value, ""))
    return report


async def _agents(
    spec: RunSpec,
    config: Config,
    market: Market,
    preset: Preset,
    models: ModelSet,
    publish: Publish,
    stop: Stop,
    journal: JournalWriter,
) -> Result:
    clock = BacktestClock(datetime.combine(FIRST_SESSION, datetime.min.time(), tzinfo=UTC))
    recorder = JournalRecorder(journal, spec.run, config.desk.name, clock)
    try:
        return await play(spec, config, market, preset, models, clock, recorder, publish, stop)
    finally:
        await models.aclose()


async def play(
    spec: RunSpec,
    config: Config,
    market: Market,
    preset: Preset,
    models: ModelSet,
    clock: BacktestClock,
    recorder: JournalRecorder | Silent,
    publish: Publish = lambda event: None,
    stop: Stop = lambda: False,
) -> Result:
    """Plays a preset over a market with models that are given. What it remembered is kept where a journal is kept,
    of a run that ends early as well."""
    meter = CostMeter(models.spec)
    calendar = desk_calendar_of(market, spec.symbols)
    with run_memory(services(config), preset, calendar, embedder=spec.embedder, on_use=meter.add) as memory:
        setting = set_up(spec, config, market, preset, models, memory, clock, recorder, publish, stop, meter.count)
        trouble = ""
        try:
            result = await run_agents(spec, setting)
        finally:
            if isinstance(recorder, JournalRecorder):
                trouble = keep_run_memory(memory, spec.run)
    return replace(result, model=meter.use, notes=(*result.notes, trouble) if trouble else result.notes)


def set_up(
    spec: RunSpec,
    config: Config,
    market: Market,
    preset: Preset,
    models: ModelSet,
    memory: TradingMemory | None,
    clock: BacktestClock,
    recorder: JournalRecorder | Silent,
    publish: Publish = lambda event: None,
    stop: Stop = lambda: False,
    on_answer: Callable[[AnswerRecord], None] = lambda record: None,
) -> BacktestContext:
    """Everything that a run of agents needs, put together; the audit does so for markets that are cut. `on_answer`
    hears of every call of a model."""

    def heard(record: AnswerRecord) -> None:
        on_answer(record)
        if isinstance(recorder, JournalRecorder):
            recorder.heard(record)
        publish(answered(record, spec.run, clock.now()))

    def said(asked: Asked, text: str) -> None:
        publish(
            AgentSaid(
                run=spec.run,
                time=clock.now(),
                session=asked.session,
                symbol=asked.symbol,
                owner=asked.owner,
                step=asked.step,
                text=text,
            )
        )

    known = convention(spec.convention)
    rules, cash = with_costs(spec, config)
    rules = replace(rules, allow_short=rules.allow_short and preset.sizing.allow_short)
    market = on_convention(spec, known, market)
    asker = Asker(
        models.models,
        models.settings,
        heard,
        said,
        sample=spec.sample,
        options=spec.options,
        insisted=models.insisted,
    )
    calendar = desk_calendar_of(market, spec.symbols)
    cycle = Cycle(preset, asker, market.calendars, publish, memory)
    return BacktestContext(
        run=spec.run,
        desk=config.desk.name,
        symbols=spec.symbols,
        market=market,
        calendar=calendar,
        clock=clock,
        cycle=cycle,
        rules=rules,
        cash=cash,
        publish=publish,
        recorder=recorder,
        stop=stop,
        memory=memory,
    )


def on_convention(spec: RunSpec, known: Convention, market: Market) -> Market:
    """The market on a convention's price basis. Agents decide, fill and value on one and the same basis; an adjusted
    one already holds its splits and dividends."""
    if known.price_basis is PriceBasis.RAW:
        return market
    begin = spec.warm_up_from or spec.first
    histories = {}
    for symbol, history in market.histories.items():
        window = history.slice(0, history.rows_through(spec.last))
        histories[symbol] = on_basis(known_adjusted(window, begin), known.price_basis)
    return replace(market, histories=histories, actions=dict.fromkeys(histories, ()))


def _strategy(spec: RunSpec, config: Config, market: Market) -> Result:
    rules, cash = with_costs(spec, config)
    return run_strategy(spec, market, rules, cash)


def _baseline(spec: RunSpec, config: Config, market: Market, name: str) -> Result:
    rule = replace(spec, preset=None, strategy=name, params=(), model=None, without=(), warm_up_from=None)
    return _strategy(rule, config, market)


def _started(spec: RunSpec, name: str, label: str, market: Market, wall: Clock, preset: Preset | None) -> RunStarted:
    calendar = desk_calendar_of(market, spec.symbols)
    count = len(calendar.sessions(spec.warm_up_from or spec.first, spec.last))
    steps = () if preset is None else preset.questions
    return RunStarted(
        run=spec.run,
        time=wall.now(),
        kind=RunKind.BACKTEST,
        name=name,
        label=label,
        symbols=spec.symbols,
        first=spec.first,
        last=spec.last,
        sessions=count,
        steps=steps,
    )
