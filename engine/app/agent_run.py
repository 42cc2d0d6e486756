"""A preset's agents with everything that they need, played over a market by backtest, bench, forecast and audit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from engine.agents.ask import AnswerRecord, Asker, QuestionKey
from engine.app.memory import keep_run_memory, run_memory
from engine.app.models import ModelSet
from engine.app.run_spec import with_costs
from engine.clock import BacktestClock
from engine.cycle.cycle import Cycle
from engine.cycle.recall import TradingMemory
from engine.domain.run import Result, RunSpec
from engine.journal.writer import JournalWriter
from engine.lab.backtest import BacktestContext, run_agents
from engine.lab.window import desk_calendar_of, on_convention
from engine.market.as_of import Market
from engine.market.trading_hours import FIRST_SESSION
from engine.messages.events import AgentSaid, Event
from engine.ports import Calendar
from engine.preset import Preset
from engine.services import Services
from engine.session.cost_meter import CostMeter, answered
from engine.session.recorder import JournalRecorder, Silent


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
