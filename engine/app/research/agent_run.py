"""A preset's agents played over a market: their models, memory and recorder put together, and the result.

Go on with a backtest that was stopped: its models' answers are given again as they were, and the rest is asked.

The run is played from its first session. Its journal is written anew and takes the place of the old one when the run
ends, so that it reads like that of an unbroken run, and a process that is killed leaves what there was.

Apart from the backtest, which loads none of this for a rule strategy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import takewhile
from pathlib import Path

from engine.agents.ask import QuestionKey
from engine.agents.registry import market_alone
from engine.app.memory import keep_run_memory, run_memory
from engine.app.models.models import ModelSet, OnUnanswered, known_of, label_after
from engine.app.models.recorded_run import Answered, Question, answers_by_question, question_of
from engine.app.records.desk_journal import run_lock
from engine.app.research.run_spec import Stop, with_costs
from engine.clock import BacktestClock
from engine.cycle.cycle import Cycle
from engine.cycle.recall import TradingMemory
from engine.domain.decision import Decision
from engine.domain.model_call import (
    AHEAD,
    AnswerRecord,
    FailureKind,
    ModelRequest,
    ModelResult,
    ReplayMode,
    UnansweredCall,
    replays,
)
from engine.domain.run import ModelUse, Result, RunOutcome, RunSpec
from engine.errors import TryAgainLater, UsageError
from engine.journal.entries import RunEntry, UnansweredEntry
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.lab.backtest import BacktestContext, run_agents
from engine.lab.window import desk_calendar_of, on_convention
from engine.market.as_of import Market
from engine.market.trading_hours import FIRST_SESSION
from engine.messages.events import Publish
from engine.offline.model import OfflineModel
from engine.ports import Calendar, LanguageModel
from engine.preset import Preset
from engine.reports.stored import journal_of
from engine.services import Services, Spent
from engine.session.cost_meter import NO_DECISION, AbstentionGuard, CostMeter
from engine.session.recorder import JournalRecorder, Recorder
from engine.settings import places


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
    report: gets the work at hand where that takes long.
    """

    services: Services
    spec: RunSpec
    preset: Preset
    models: ModelSet
    market: Market
    publish: Publish = lambda event: None
    stop: Stop = lambda: False
    first_part: FirstPart | None = None
    report: Callable[[str], None] = lambda text: None

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
    return AbstentionGuard(0 if _recorded_alone(services, model) else services.abstain_limit)


def _recorded_alone(services: Services, model: str | None) -> bool:
    return replays(model) or services.config.models.replay == ReplayMode.REPLAY_ONLY


def _asking_ahead(run: AgentRun, context: BacktestContext) -> BacktestContext:
    """The context of a run with the way in which agents are asked ahead, where anybody has to wait for their answers:
    so many sessions, or in batches."""
    alone, asker, spec = market_alone(run.preset.registered), context.cycle.asker, run.spec
    asked = [model for agent in run.models.agents if agent.name in alone for model in asker.models_of(agent.name)]
    remote = any(model.spec != OfflineModel.spec for model in asked)
    if not remote or _recorded_alone(run.services, spec.model):
        return context
    if not spec.batch:
        return replace(context, ahead=run.services.config.models.ahead)
    known: Mapping[Question, ModelResult] = {} if run.first_part is None else run.first_part.answers
    booked = frozenset() if run.first_part is None else run.first_part.booked

    async def send(questions: Sequence[tuple[LanguageModel, ModelRequest]]) -> None:
        mask = run.models.mask
        asked = [(model.spec, request) for model, request in questions if question_of(request) not in known]
        new = asked if mask is None else [(spec, mask.request(request)) for spec, request in asked]
        await run.models.opened.batch(new, spec.run, booked, run.report)

    return replace(context, send=send)


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
    meter = CostMeter(specs, *known_of(run.services, specs), run.services.clock)
    for entry in () if first_part is None else first_part.unanswered:
        meter.unanswered(entry, entry.call)
        if journal is not None:
            journal.unanswered(entry)
    prompts: dict[str, set[str]] = {}

    early = _Early(run, meter, journal)

    def count(answer: AnswerRecord) -> None:
        early.had(answer)
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
                result = await run_agents(_asking_ahead(run, replace(context, on_ahead=early.add)))
            finally:
                early.book(context.clock.now())
                if journal is not None:
                    trouble = keep_run_memory(memory, spec.run)
    return replace(
        result,
        model=meter.use,
        notes=(*result.notes, trouble) if trouble else result.notes,
        extra={**result.extra, "prompts": {agent: sorted(versions) for agent, versions in sorted(prompts.items())}},
    )


class _Early:
    """The answers that came ahead of their sessions, until their questions are put in these."""

    def __init__(self, run: AgentRun, meter: CostMeter, journal: JournalWriter | None) -> None:
        self._run, self._meter, self._journal = run, meter, journal
        self._paid: dict[str, AnswerRecord] = {}

    def add(self, answer: AnswerRecord) -> None:
        """Take in an answer that came ahead; one that had been recorded costs nothing."""
        if not answer.result.cached:
            self._paid[answer.result.request_hash] = answer

    def had(self, answer: AnswerRecord) -> None:
        """Leave out an answer that its session has had."""
        self._paid.pop(answer.result.request_hash, None)

    def book(self, now: datetime) -> None:
        """Book what no session has come to: it is paid."""
        for answer in self._paid.values():
            entry = _unanswered(answer.in_run(self._run.spec.run, 1, now), AHEAD)
            self._meter.unanswered(entry, entry.call)
            if self._journal is not None:
                self._journal.unanswered(entry)


@dataclass(frozen=True, slots=True)
class FirstPart:
    """The recorded part of a run that was stopped: the run, the answers of its models, and their other calls. Where it
    was stopped for want of a usable decision, the answers of the sessions without one that were none are such calls."""

    run: RunEntry
    answers: Mapping[Question, ModelResult]
    unanswered: tuple[UnansweredEntry, ...]

    def through(self, model: LanguageModel) -> LanguageModel:
        """A model that gives the answers of this part again, cost included, and asks `model` for all others."""
        return Answered(model, self.answers)

    def named(self, spec: str) -> str:
        """The specs of the models that have answered, and of those that go on."""
        had = [result.model for result in self.answers.values()]
        return ", ".join(dict.fromkeys((*had, *spec.split(", "))))

    @property
    def spent(self) -> Spent:
        """The use of the models of this part, calls without an answer included."""
        results = [result for result in self.answers.values() if not result.cached]
        costs = [(one.cost, one.usage.total) for one in results]
        costs += [(one.call.cost, one.call.input_tokens + one.call.output_tokens) for one in self.unanswered]
        unpriced = sum(tokens for cost, tokens in costs if cost is None)
        return Spent(sum((cost for cost, _ in costs if cost is not None), Decimal(0)), unpriced)

    @property
    def booked(self) -> frozenset[str]:
        """The request hashes of answers that came ahead of their session and are booked as such."""
        return frozenset(entry.call.detail for entry in self.unanswered if entry.call.kind == AHEAD)

    def label(self, label: str) -> str:
        """The label of the run that goes on: every model that decides it."""
        return label_after(self.run.label, label)


def first_part(run: str) -> FirstPart:
    """The recorded part of a stopped run. Raises MissingData where there is no such run, UsageError for one that came
    to its end, TryAgainLater for one that another process is playing."""
    with JournalReader(journal_of(run)) as reader, run_lock(run):
        entry = reader.run(run)
        answers, unanswered = reader.answers(run=run), reader.unanswered(run=run)
        anew = _undecided(reader, run) if entry.detail.startswith(NO_DECISION) else set()
    if entry.outcome is RunOutcome.DONE or entry.spec is None:
        raise UsageError(f"--resume {run}: the run is finished; paperdesk report --run {run} shows it")
    lost = [one for one in answers if one.key.session in anew and one.outcome != "answered"]
    kept = [one for one in answers if one not in lost]
    return FirstPart(entry, answers_by_question(kept), (*unanswered, *map(_unanswered, lost)))


def _undecided(reader: JournalReader, run: str) -> set[date]:
    """The last sessions of a run, as far back as nothing usable was decided in them."""
    decided: dict[date, bool] = {}
    for made in reader.decisions(run):
        decided[made.key.session] = decided.get(made.key.session, False) or not made.abstained
    return set(takewhile(lambda session: not decided[session], sorted(decided, reverse=True)))


def _unanswered(entry: AnswerRecord, kind: str = "") -> UnansweredEntry:
    """An answer that is asked for anew, or was not asked for yet: it stays paid. Its kind is that of its failure where
    none is given."""
    assert entry.time is not None  # the journal has it
    result = entry.result
    call = UnansweredCall(
        model=result.model,
        kind=kind or (FailureKind.MALFORMED if result.failure is None else result.failure.kind),
        attempt=entry.attempt,
        detail=entry.reason if kind != AHEAD else result.request_hash,
        input_tokens=result.usage.input_tokens,
        output_tokens=result.usage.output_tokens,
        cost=result.cost,
        latency=result.latency,
    )
    return UnansweredEntry(key=entry.key, time=entry.time, agent=entry.agent, call=call)


@contextmanager
def resumed_journal(first: FirstPart) -> Iterator[JournalWriter]:
    """The new journal of a run that goes on. It takes the place of the old one at the end of the block, unless the run
    was stopped before it came as far as that. Raises TryAgainLater where another process went on with it meanwhile."""
    path = places.run_journal(first.run.id)
    with JournalReader(path) as reader:
        if reader.run(first.run.id) != first.run:
            raise TryAgainLater(f"the run {first.run.id} was resumed by another process: try again")
    part = path.with_name(f"{path.name}.part")
    _delete(part)
    try:
        with JournalWriter(part, batched=True) as journal:
            yield journal
    finally:
        with JournalReader(part) as reader:
            as_far = reader.counts(first.run.id)["answers"] >= len(first.answers)
        if as_far:
            _delete(path)
            part.rename(path)
        _delete(part)


def _delete(path: Path) -> None:
    for ending in ("", "-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)


def use_so_far(services: Services, models: ModelSet, journal: JournalWriter, run: str) -> ModelUse:
    """Calls and cost of the models of a run that broke off."""
    meter = CostMeter(models.spec, *known_of(services, models.spec), services.clock)
    journal.flush()
    with JournalReader(places.run_journal(run)) as reader:
        meter.restore(reader.calls(run))
    return meter.use
