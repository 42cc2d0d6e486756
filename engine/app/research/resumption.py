"""Go on with a backtest that was stopped: its models' answers are given again as they were, and the rest is asked.

The run is played from its first session. Its journal is written anew and takes the place of the old one when the run
ends, so that it reads like that of an unbroken run, and a process that is killed leaves what there was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import takewhile
from pathlib import Path

from engine.app.models.model_notes import label_after
from engine.app.models.recorded_run import Question, answers_by_question, question_of
from engine.app.records.lock import one_process
from engine.domain.model_call import AnswerRecord, FailureKind, ModelRequest, ModelResult, UnansweredCall
from engine.domain.run import RunOutcome, RunSpec
from engine.errors import TryAgainLater, UsageError
from engine.journal.entries import RunEntry, UnansweredEntry
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.ports import LanguageModel
from engine.services import Spent
from engine.session.abstentions import NO_DECISION
from engine.settings import places


@dataclass(frozen=True, slots=True)
class FirstPart:
    """The recorded part of a run that was stopped: the run, the answers of its models, and their other calls. Where it
    was stopped for want of a usable decision, the answers of the sessions without one that were none are such calls."""

    run: RunEntry
    answers: Mapping[Question, ModelResult]
    unanswered: tuple[UnansweredEntry, ...]

    def through(self, model: LanguageModel) -> LanguageModel:
        """A model that gives the answers of this part again, cost included, and asks `model` for all others."""
        return _Answered(model, self.answers)

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

    def label(self, label: str) -> str:
        """The label of the run that goes on: every model that decides it."""
        return label_after(self.run.label, label)


def run_lock(run: str) -> AbstractContextManager[None]:
    """Hold a run until the block ends: it is played by one process. Raises TryAgainLater where another one holds it."""
    return one_process(places.run_lock(run), f"the run {run} is being played by another process")


def recorded_spec(run: str) -> RunSpec:
    """The description of a backtest, with every setting that its journal has. Raises MissingData where there is no such
    run, UsageError for one that is no backtest."""
    with JournalReader(places.run_journal(run)) as reader:
        spec = reader.run(run).spec
    if spec is None:
        raise UsageError(f"{run} is no backtest: only a backtest can be run again")
    return spec


def first_part(run: str) -> FirstPart:
    """The recorded part of a stopped run. Raises MissingData where there is no such run, UsageError for one that came
    to its end, TryAgainLater for one that another process is playing."""
    with JournalReader(places.run_journal(run)) as reader, run_lock(run):
        entry = reader.run(run)
        answers, unanswered = reader.answers(run=run), reader.unanswered(run=run)
        anew = _undecided(reader, run) if entry.detail.startswith(NO_DECISION) else set()
    if entry.outcome is RunOutcome.DONE or entry.spec is None:
        raise UsageError(f"--resume {run}: the run has come to its end; paperdesk report --run {run} shows it")
    lost = [one for one in answers if one.key.session in anew and one.outcome != "answered"]
    kept = [one for one in answers if one not in lost]
    return FirstPart(entry, answers_by_question(kept), (*unanswered, *map(_unanswered, lost)))


def _undecided(reader: JournalReader, run: str) -> set[date]:
    """The last sessions of a run, as far back as nothing usable was decided in them."""
    decided: dict[date, bool] = {}
    for made in reader.decisions(run):
        decided[made.key.session] = decided.get(made.key.session, False) or not made.abstained
    return set(takewhile(lambda session: not decided[session], sorted(decided, reverse=True)))


def _unanswered(entry: AnswerRecord) -> UnansweredEntry:
    """An answer that is asked for anew: it stays paid."""
    assert entry.time is not None  # the journal has it
    result = entry.result
    call = UnansweredCall(
        model=result.model,
        kind=FailureKind.MALFORMED if result.failure is None else result.failure.kind,
        attempt=entry.attempt,
        detail=entry.reason,
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
            raise TryAgainLater(f"the run {first.run.id} was gone on with by another process: try again")
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


class _Answered:
    """A model in front of which the answers of a run's first part stand."""

    def __init__(self, model: LanguageModel, answers: Mapping[Question, ModelResult]) -> None:
        self.spec, self.label, self.sees = model.spec, model.label, model.sees
        self._model, self._answers = model, answers

    async def answer(self, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> ModelResult:
        """The answer that there is, or the model's own."""
        result = self._answers.get(question_of(request))
        if result is None:
            return await self._model.answer(request, on_delta)
        if on_delta is not None:
            on_delta(result.text)
        return result
