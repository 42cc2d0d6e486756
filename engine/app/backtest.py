"""A backtest of agents or of a rule strategy: its data loaded, played beside its baselines, kept in a journal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from engine import places
from engine.agents.ask import AnswerRecord, Asker, QuestionKey
from engine.app.look_index import count_result
from engine.app.market_data import load_run
from engine.app.memory import keep_run_memory, run_memory
from engine.app.models import ModelSet, build_models
from engine.app.run_spec import check_spec, preset_of, settled, with_costs
from engine.clock import BacktestClock
from engine.cycle.cycle import Cycle
from engine.cycle.recall import TradingMemory
from engine.domain.run import LookKind, Result, RunKind, RunOutcome, RunSpec
from engine.errors import PaperdeskError
from engine.journal.entries import RunEntry
from engine.journal.writer import JournalWriter
from engine.lab.backtest import BacktestContext, run_agents, windows
from engine.lab.rule_backtest import run_strategy
from engine.lab.window import desk_calendar_of, on_convention
from engine.market.as_of import Market
from engine.market.trading_hours import FIRST_SESSION
from engine.messages.events import AgentSaid, Event, Noticed, Publish, RunFinished, RunStarted
from engine.ports import Calendar
from engine.preset import Preset
from engine.reports.report import Report
from engine.reports.stored import keep
from engine.services import Services
from engine.session.cost_meter import CostMeter, answered
from engine.session.recorder import JournalRecorder, Silent

BASELINES = ("buy-and-hold", "equal-weight", "macd", "kdj-rsi", "z-score", "random", "cash")
"""The strategies that stand beside every result."""

Stop = Callable[[], bool]
OnBaseline = Callable[[str, Result], None]


def run_backtest(
    services: Services,
    spec: RunSpec,
    publish: Publish = lambda event: None,
    stop: Stop = lambda: False,
    *,
    on_baseline: OnBaseline = lambda name, result: None,
    market: Market | None = None,
    baselines: Sequence[str] = BASELINES,
    kind: LookKind = LookKind.BACKTEST,
) -> Report:
    """Run a backtest and its `baselines` and keep the run's journal. `publish` hears every event, `stop` is asked
    before each session, `on_baseline` gets each baseline before the run begins; `market` is the run's where it is
    loaded already. It is counted as a look of a `kind` at its window.

    Raises UsageError, DataError, ConfigError and CredentialsRefused before anything is kept.
    """
    check_spec(spec, services.clock.now())
    spec = settled(services, spec)
    preset = preset_of(spec)
    models = None if preset is None else build_models(services, preset, spec.model)
    market = asyncio.run(load_run(services, spec)) if market is None else market
    windows(spec, desk_calendar_of(market, spec.symbols))
    beside: dict[str, Result] = {}
    for name in baselines:
        rule = replace(spec, preset=None, strategy=name, params=(), model=None, without=(), warm_up_from=None)
        beside[name] = run_strategy(rule, market, *with_costs(rule, services.config))
        on_baseline(name, beside[name])
    agents = None
    if preset is not None and models is not None:
        agents = AgentRun(services=services, spec=spec, preset=preset, models=models, market=market)
    label = "a rule strategy" if models is None else models.label
    with JournalWriter(places.run_journal(spec.run), batched=True) as journal:
        _begin(services, spec, market, label, () if preset is None else preset.questions, journal, publish)
        try:
            if agents is None:
                result = run_strategy(spec, market, *with_costs(spec, services.config))
            else:
                result = asyncio.run(_play(agents, journal, publish, stop))
        except BaseException as error:
            _fail(services, spec, error, journal, publish)
            raise
        report = Report(result, beside, label, services.config.metrics.risk_free)
        keep(journal, report)
        journal.backtest_result(spec.run, result, services.clock.now())
    count_result(kind, result, services.clock.now())
    _end(services, spec, result, publish)
    return report


async def _play(agents: AgentRun, journal: JournalWriter, publish: Publish, stop: Stop) -> Result:
    try:
        return await play(agents, journal, publish=publish, stop=stop)
    finally:
        await agents.models.aclose()


def _begin(
    services: Services,
    spec: RunSpec,
    market: Market,
    label: str,
    steps: Sequence[str],
    journal: JournalWriter,
    publish: Publish,
) -> None:
    name, now = spec.preset or spec.strategy or "", services.clock.now()
    calendar = desk_calendar_of(market, spec.symbols)
    journal.run_started(
        RunEntry(
            id=spec.run,
            kind=RunKind.BACKTEST,
            name=name,
            started=now,
            label=label,
            spec=spec,
            symbols=spec.symbols,
        )
    )
    publish(
        RunStarted(
            run=spec.run,
            time=now,
            kind=RunKind.BACKTEST,
            name=name,
            label=label,
            symbols=spec.symbols,
            first=spec.first,
            last=spec.last,
            sessions=len(calendar.sessions(spec.warm_up_from or spec.first, spec.last)),
            steps=tuple(steps),
        )
    )


def _fail(services: Services, spec: RunSpec, error: BaseException, journal: JournalWriter, publish: Publish) -> None:
    now = services.clock.now()
    outcome = RunOutcome.FAILED if isinstance(error, Exception) else RunOutcome.INTERRUPTED
    detail = str(error) if isinstance(error, PaperdeskError) else type(error).__name__
    journal.run_finished(spec.run, outcome, now, detail=detail)
    publish(RunFinished(spec.run, now, outcome, None, detail))


def _end(services: Services, spec: RunSpec, result: Result, publish: Publish) -> None:
    now, equity = services.clock.now(), result.test.equity
    for note in result.notes:
        publish(Noticed(spec.run, now, "info", note))
    value = equity[-1].value if equity else result.test.initial_value
    outcome = RunOutcome.INTERRUPTED if result.interrupted else RunOutcome.DONE
    publish(RunFinished(spec.run, now, outcome, value, ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRun:
    """Agents and what they are played on.

    services: where the memory's embedder and the configured costs come from.
    spec: the run's description.
    preset: the agents' preset, with the run's briefing.
    models: the models that answer them.
    market: all data of the run's window, as traded.
    """

    services: Services
    spec: RunSpec
    preset: Preset
    models: ModelSet
    market: Market

    @property
    def calendar(self) -> Calendar:
        """The calendar that the run decides on."""
        return desk_calendar_of(self.market, self.spec.symbols)


async def play(
    run: AgentRun,
    journal: JournalWriter | None = None,
    *,
    publish: Callable[[Event], None] = lambda event: None,
    stop: Callable[[], bool] = lambda: False,
) -> Result:
    """Play a preset over a market. Where a journal is kept its memory is kept too, of a run that ends early as well."""
    meter, spec = CostMeter(run.models.spec), run.spec
    with run_memory(run.services, run.preset, run.calendar, embedder=spec.embedder, on_use=meter.add) as memory:
        context = backtest_context(run, memory, journal, publish=publish, stop=stop, on_answer=meter.count)
        trouble = ""
        try:
            result = await run_agents(spec, context)
        finally:
            if journal is not None:
                trouble = keep_run_memory(memory, spec.run)
    return replace(result, model=meter.use, notes=(*result.notes, trouble) if trouble else result.notes)


def backtest_context(
    run: AgentRun,
    memory: TradingMemory | None,
    journal: JournalWriter | None = None,
    *,
    publish: Callable[[Event], None] = lambda event: None,
    stop: Callable[[], bool] = lambda: False,
    on_answer: Callable[[AnswerRecord], None] = lambda record: None,
) -> BacktestContext:
    """The context of a backtest of agents; `on_answer` hears of every call of a model."""
    spec, desk = run.spec, run.services.desk
    clock = BacktestClock(datetime.combine(FIRST_SESSION, datetime.min.time(), tzinfo=UTC))
    recorder = Silent() if journal is None else JournalRecorder(journal, spec.run, desk, clock)

    def heard(record: AnswerRecord) -> None:
        on_answer(record)
        if isinstance(recorder, JournalRecorder):
            recorder.answered(record)
        publish(answered(record, spec.run, clock.now()))

    def said(asked: QuestionKey, text: str) -> None:
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

    models, market = run.models, on_convention(spec, run.market)
    rules, cash = with_costs(spec, run.services.config)
    asker = Asker(
        models.models,
        models.settings,
        heard,
        said,
        sample=spec.sample,
        options=spec.options,
        insisted=models.insisted,
    )
    return BacktestContext(
        run=spec.run,
        desk=desk,
        symbols=spec.symbols,
        market=market,
        calendar=run.calendar,
        clock=clock,
        cycle=Cycle(run.preset, asker, market.calendars, publish, memory),
        rules=replace(rules, allow_short=rules.allow_short and run.preset.sizing.allow_short),
        cash=cash,
        publish=publish,
        recorder=recorder,
        stop=stop,
        memory=memory,
    )
