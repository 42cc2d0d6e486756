"""A backtest of agents or of a rule strategy: its data loaded, played beside its baselines, kept in a journal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from engine import places
from engine.agents.ask import AnswerRecord, QuestionKey
from engine.app.look_index import count_result
from engine.app.market_data import load_run
from engine.app.memory import keep_run_memory, run_memory
from engine.app.models import ModelSet, OnUnanswered, build_models, model_notes
from engine.app.resumption import FirstPart, resumed_journal, run_lock
from engine.app.run_spec import check_spec, preset_of, settled, with_costs
from engine.clock import BacktestClock
from engine.cycle.cycle import Cycle
from engine.cycle.recall import TradingMemory
from engine.domain.model_call import UnansweredCall
from engine.domain.run import LookKind, Result, RunKind, RunOutcome, RunSpec
from engine.errors import PaperdeskError
from engine.journal.entries import RunEntry
from engine.journal.writer import JournalWriter
from engine.lab.backtest import BacktestContext, run_agents, windows
from engine.lab.rule_backtest import run_strategy
from engine.lab.window import desk_calendar_of, on_convention
from engine.market.as_of import Market, data_fingerprint
from engine.market.trading_hours import FIRST_SESSION, decision_time
from engine.messages.events import Noticed, Publish, RunFinished
from engine.ports import Calendar
from engine.preset import Preset
from engine.reports.performance import Report
from engine.reports.stored import store_document
from engine.services import Services
from engine.session.cost_meter import CostMeter
from engine.session.recorder import JournalRecorder, Recorder, begin_run

BASELINES = ("buy-and-hold", "equal-weight", "macd", "kdj-rsi", "z-score", "random", "cash")
"""The strategies that every result is compared with."""

NEVER_TRADED = "the run never traded: its figures are those of cash"

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
    first_part: FirstPart | None = None,
) -> Report:
    """Run a backtest and its `baselines` and keep the run's journal. `publish` hears every event, `stop` is asked
    before each session, `on_baseline` gets each baseline before the run begins; `market` is the run's where it is
    loaded already. It is counted as a look of a `kind` at its window. A run that was stopped goes on from its
    `first_part`.

    Raises UsageError, DataError, ConfigError, CredentialsRefused, and TryAgainLater where another process plays the
    run, before anything is kept.
    """
    check_spec(spec, services.clock.now())
    spec = settled(services, spec)
    preset = preset_of(spec)
    models = None if preset is None else build_models(services, preset, spec.model, recorded=spec.models)
    market = asyncio.run(load_run(services, spec)) if market is None else market
    calendar = desk_calendar_of(market, spec.symbols)
    _, sessions = windows(spec, calendar)
    spec = replace(spec, data_fingerprint=data_fingerprint(market, decision_time(calendar, sessions[-1])))
    beside: dict[str, Result] = {}
    for name in baselines:
        rule = replace(
            spec,
            preset=None,
            strategy=name,
            params=(),
            model=None,
            models=(),
            without=(),
            warm_up_from=None,
            preset_text=None,
        )
        beside[name] = run_strategy(rule, market, *with_costs(rule, services.config))
        on_baseline(name, beside[name])
    label, started = "a rule strategy" if models is None else models.label, services.clock.now()
    if first_part is not None:
        label, started = first_part.label(label), first_part.run.started
    with run_lock(spec.run), _journal(spec.run, first_part) as journal:
        begin_run(
            journal,
            publish,
            RunEntry(
                id=spec.run,
                kind=RunKind.BACKTEST,
                name=spec.preset or spec.strategy or "",
                started=started,
                label=label,
                spec=spec,
                symbols=spec.symbols,
            ),
            window=(spec.first, spec.last),
            sessions=len(calendar.sessions(spec.warm_up_from or spec.first, spec.last)),
            steps=() if preset is None else preset.questions,
        )
        try:
            if preset is None or models is None:
                result = run_strategy(spec, market, *with_costs(spec, services.config))
            else:
                agents = AgentRun(
                    services=services,
                    spec=spec,
                    preset=preset,
                    models=models,
                    market=market,
                    publish=publish,
                    stop=stop,
                    first_part=first_part,
                )
                result = asyncio.run(play(agents, journal))
        except BaseException as error:
            outcome = RunOutcome.FAILED if isinstance(error, Exception) else RunOutcome.INTERRUPTED
            detail = str(error) if isinstance(error, PaperdeskError) else type(error).__name__
            journal.run_finished(spec.run, outcome, services.clock.now(), detail=detail)
            publish(RunFinished(spec.run, services.clock.now(), outcome, None, detail))
            raise
        notes = () if preset is None else model_notes(services, preset, spec)
        idle = (NEVER_TRADED,) if result.test.equity and not result.test.fills else ()
        result = replace(result, notes=(*result.notes, *idle, *notes))
        report = Report(result, beside, label, services.config.metrics.risk_free, services.config.exchanges)
        store_document(journal, report)
        journal.backtest_result(spec.run, result, services.clock.now())
    now, equity = services.clock.now(), result.test.equity
    count_result(kind, result, now)
    for note in result.notes:
        publish(Noticed(spec.run, now, "info", note))
    value = equity[-1].value if equity else result.test.initial_value
    outcome = RunOutcome.INTERRUPTED if result.interrupted else RunOutcome.DONE
    publish(RunFinished(spec.run, now, outcome, value, ""))
    return report


def _journal(run: str, first_part: FirstPart | None) -> AbstractContextManager[JournalWriter]:
    return JournalWriter(places.run_journal(run), batched=True) if first_part is None else resumed_journal(first_part)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRun:
    """A preset's agents with everything that they need, to be played over a market.

    services: source of the memory's embedder and of the configured costs.
    spec: the run's description.
    preset: the agents' preset, with the run's briefing.
    models: the models that answer them.
    market: all data of the run's window, as traded.
    publish: hears every event.
    stop: asked before each session.
    first_part: what there is of a run that was stopped, and goes on.
    """

    services: Services
    spec: RunSpec
    preset: Preset
    models: ModelSet
    market: Market
    publish: Publish = lambda event: None
    stop: Stop = lambda: False
    first_part: FirstPart | None = None

    @property
    def calendar(self) -> Calendar:
        """The calendar that the run decides on."""
        return desk_calendar_of(self.market, self.spec.symbols)

    def context(
        self,
        memory: TradingMemory | None,
        on_answer: Callable[[AnswerRecord], None] = lambda record: None,
        journal: JournalWriter | None = None,
        on_unanswered: OnUnanswered = lambda key, call: None,
    ) -> BacktestContext:
        """The context of the backtest; `on_answer` and `on_unanswered` hear of every call of a model."""
        spec, desk = self.spec, self.services.desk
        clock = BacktestClock(datetime.combine(FIRST_SESSION, datetime.min.time(), tzinfo=UTC))
        recorder = Recorder() if journal is None else JournalRecorder(journal, spec.run, desk, clock)

        def record(answer: AnswerRecord) -> None:
            on_answer(answer)
            recorder.answered(answer)

        def unanswered(asked: QuestionKey, call: UnansweredCall) -> None:
            on_unanswered(asked, call)
            recorder.unanswered(asked, call)

        market, (rules, cash) = on_convention(spec, self.market), with_costs(spec, self.services.config)
        asker = self.models.publishing_asker(
            spec.run,
            clock,
            record,
            spec=spec,
            on_answered=self.publish,
            on_text=self.publish,
            on_unanswered=unanswered,
            through=self.first_part.through if self.first_part is not None else lambda model: model,
        )
        return BacktestContext(
            spec=spec,
            desk=desk,
            market=market,
            clock=clock,
            cycle=Cycle(self.preset, asker, market.calendars, self.publish, memory, rules.cost_rate),
            rules=rules,
            cash=cash,
            publish=self.publish,
            recorder=recorder,
            stop=self.stop,
            memory=memory,
        )


async def play(run: AgentRun, journal: JournalWriter | None = None) -> Result:
    """Play a preset over a market, and close its models. The memory is kept beside a journal, of a run that ends early
    as well."""
    spec, first_part = run.spec, run.first_part
    meter = CostMeter(run.models.spec if first_part is None else first_part.named(run.models.spec))
    for entry in () if first_part is None else first_part.unanswered:
        meter.unanswered(entry, entry.call)
        if journal is not None:
            journal.unanswered(entry)
    prompts: dict[str, set[str]] = {}

    def count(answer: AnswerRecord) -> None:
        meter.count(answer)
        prompts.setdefault(answer.key.agent, set()).add(answer.prompt_version)

    async with aclosing(run.models):
        with run_memory(
            run.services, run.preset, run.calendar, embedder=spec.embedder, on_use=meter.add_vectors
        ) as memory:
            context, trouble = run.context(memory, count, journal, meter.unanswered), ""
            try:
                result = await run_agents(context)
            finally:
                if journal is not None:
                    trouble = keep_run_memory(memory, spec.run)
    return replace(
        result,
        model=meter.use,
        notes=(*result.notes, trouble) if trouble else result.notes,
        extra={**result.extra, "prompts": {agent: sorted(versions) for agent, versions in sorted(prompts.items())}},
    )
