"""A preset's agents played over a market: their models, memory and recorder put together, and the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from engine.agents.ask import QuestionKey
from engine.app.memory.memory import keep_run_memory, run_memory
from engine.app.models.model_notes import known_of
from engine.app.models.models import ModelSet, OnUnanswered
from engine.app.research.resumption import FirstPart
from engine.app.research.run_spec import with_costs
from engine.clock import BacktestClock
from engine.cycle.cycle import Cycle
from engine.cycle.recall import TradingMemory
from engine.domain.decision import Decision
from engine.domain.model_call import AnswerRecord, UnansweredCall
from engine.domain.model_spec import ReplayMode, replays
from engine.domain.run import Result, RunSpec
from engine.errors import TryAgainLater
from engine.journal.writer import JournalWriter
from engine.lab.backtest import BacktestContext, run_agents
from engine.lab.window import desk_calendar_of, on_convention
from engine.market.as_of import Market
from engine.market.trading_hours import FIRST_SESSION
from engine.messages.events import Publish
from engine.ports import Calendar
from engine.preset import Preset
from engine.services import Services
from engine.session.abstentions import AbstentionGuard
from engine.session.cost_meter import CostMeter
from engine.session.recorder import JournalRecorder, Recorder

Stop = Callable[[], bool]


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
        decided: Callable[[Sequence[Decision]], None] = lambda decisions: None,
    ) -> BacktestContext:
        """The context of the backtest; `on_answer` and `on_unanswered` hear of every call of a model, `decided` of the
        decisions of every session."""
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
            decided=decided,
            memory=memory,
        )


def guard_of(services: Services, model: str | None) -> AbstentionGuard:
    """The guard of a run by a model; recorded answers alone, which nobody can be asked for anew, stop none."""
    recorded = replays(model) or services.config.models.replay == ReplayMode.REPLAY_ONLY
    return AbstentionGuard(0 if recorded else services.abstain_limit)


def end_session(guard: AbstentionGuard, services: Services, *, usable: bool = False) -> None:
    """End a session of a guard. Raises TryAgainLater where it does; what was not answered is forgotten then, so that
    whoever goes on asks it anew."""
    try:
        guard.decided(usable)
    except TryAgainLater:
        if guard.hashes:
            with services.models.recorded() as recorded:
                recorded.remove(guard.hashes)
        raise


async def play(run: AgentRun, journal: JournalWriter | None = None) -> Result:
    """Play a preset over a market, and close its models. The memory is kept beside a journal, of a run that ends early
    as well."""
    spec, first_part = run.spec, run.first_part
    specs = run.models.spec if first_part is None else first_part.named(run.models.spec)
    meter = CostMeter(specs, *known_of(run.services, specs))
    for entry in () if first_part is None else first_part.unanswered:
        meter.unanswered(entry, entry.call)
        if journal is not None:
            journal.unanswered(entry)
    prompts: dict[str, set[str]] = {}

    def count(answer: AnswerRecord) -> None:
        meter.count(answer)
        guard.answered(answer)
        prompts.setdefault(answer.agent, set()).add(answer.prompt_version)

    guard = guard_of(run.services, spec.model)

    def decided(decisions: Sequence[Decision]) -> None:
        end_session(guard, run.services, usable=any(not decision.abstained for decision in decisions))

    async with aclosing(run.models):
        with run_memory(
            run.services, run.preset, run.calendar, embedder=spec.embedder, on_use=meter.add_vectors
        ) as memory:
            context, trouble = run.context(memory, count, journal, meter.unanswered, decided), ""
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
