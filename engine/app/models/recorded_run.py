"""The answers that a run's models have given, question by question: to go on with the run, or to replay it.

Models as the agents of a batch are given them: none is asked the same twice, or shown pictures that are left out.

Recorded answers of models: counted, carried to another machine and back, removed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from engine.agents.ask import agent_of
from engine.domain.market import Symbol
from engine.domain.model_call import (
    PREFLIGHT,
    AnswerRecord,
    FailureKind,
    ModelAnswers,
    ModelRequest,
    ModelResult,
    RecordedAnswer,
    prompt_hash,
)
from engine.errors import DataError, MalformedData, MissingData, UsageError
from engine.journal.reader import JournalReader
from engine.offline.model import OfflineModel
from engine.ports import LanguageModel
from engine.reports.documents.records import open_records
from engine.reports.stored import journal_of
from engine.services import RecordedAnswers, Services
from engine.settings import places

Question = tuple[str, Symbol, date, str, int, str]
"""Agent, symbol, session, owner, sample and hash of the prompt."""
OpenModel = Callable[[str], LanguageModel]
"""Opener of a model by its spec."""


def answers_by_question(answers: Iterable[AnswerRecord]) -> Mapping[Question, ModelResult]:
    """The results of a run's calls by their question."""
    return {
        (one.agent, one.key.symbol, one.key.session, one.key.owner, one.sample, one.prompt_hash): one.result
        for one in answers
    }


def _given_again(answers: Iterable[AnswerRecord]) -> Mapping[Question, ModelResult]:
    """The same, paid for already."""
    given = answers_by_question(answers).items()
    return {asked: replace(result, cached=True, cost=Decimal(0), latency=0.0) for asked, result in given}


def answered_again(model: LanguageModel, answers: Iterable[AnswerRecord]) -> LanguageModel:
    """A model that gives a run's recorded answers, failures included, where the same model was asked the same. Rules
    are asked anew: they cost nothing and answer the same."""
    if model.spec == OfflineModel.spec:
        return model
    return Answered(model, _given_again(one for one in answers if one.result.model == model.spec))


def question_of(request: ModelRequest) -> Question:
    """The question that a request puts."""
    prompt = prompt_hash(request.system, request.messages)
    return request.purpose, request.symbol, request.session, request.owner, request.sample, prompt


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run's answers, and the specs of the models that gave them, by agent in the order in which they were asked."""

    run: str
    answers: Mapping[Question, ModelResult]
    models: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, reader: JournalReader, run: str, answers: Iterable[AnswerRecord]) -> RecordedRun:
        """A run of a journal with those of its answers that are asked for again."""
        models: dict[str, tuple[str, ...]] = {}
        for call in reader.calls(run):
            if not call.kind:
                models[call.agent] = tuple(dict.fromkeys((*models.get(call.agent, ()), call.model)))
        return cls(run, _given_again(answers), models)

    @property
    def by_rules(self) -> bool:
        """True where rules alone have answered, which record nothing."""
        return all(specs == (OfflineModel.spec,) for specs in self.models.values())

    def model(self, agent: str, opened: OpenModel) -> LanguageModel:
        """The model that replays an agent: the run's own answers, then what else is recorded of the model that it asked
        last. An agent that the run never asked has the run's model, where it had but one."""
        every = tuple(dict.fromkeys(spec for specs in self.models.values() for spec in specs))
        specs = self.models.get(agent_of(agent)) or (every if len(every) == 1 else ())
        if specs == (OfflineModel.spec,):
            return OfflineModel()
        try:
            return Answered(opened(specs[-1]) if specs else _Silent(agent, self.run), self.answers)
        except UsageError:  # its endpoint is not configured any more
            return Answered(_Silent(agent, self.run, specs[-1]), self.answers)


def recorded_backtest(run: str) -> RecordedRun:
    """The answers of a backtest. Raises MissingData where there is no such run, or no model has answered it."""
    with JournalReader(journal_of(run)) as reader:
        found = RecordedRun.of(reader, run, reader.answers(run=run))
    if found.by_rules:
        raise MissingData(f"--model replay: {run} has no recorded answers, no language model was asked")
    return found


class Answered:
    """A model in front of which recorded answers stand."""

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


class _Silent:
    """A model of which nothing else is recorded than a run has: one that the run never asked, or that is not
    configured any more."""

    sees = True

    def __init__(self, agent: str, run: str, spec: str = "") -> None:
        self.spec = spec
        self.label = f"{spec or agent} (recorded)"
        self._missing = f"{run} asked {agent} nothing" if not spec else f"{run} has no such answer of {spec}"

    async def answer(self, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> ModelResult:
        """Raises MissingData."""
        raise MissingData(
            f"--model replay: no answer for {request.purpose} of {request.symbol} on {request.session}: {self._missing}"
        )


Asking = tuple[Symbol, str]
"""The symbol and the owner that a question is put for."""


def each_once(models: Mapping[str, LanguageModel]) -> Mapping[str, LanguageModel]:
    """The models, each asked once where a cycle puts the same question several times: for several owners, or for every
    symbol of a portfolio; and where it was asked ahead of the cycle."""
    once = {id(model): _AskedOnce(model) for model in models.values()}
    return {name: once[id(model)] for name, model in models.items()}


class Unseeing:
    """A model that is shown no pictures: it reads their figures, as one that cannot see does."""

    sees = False

    def __init__(self, model: LanguageModel) -> None:
        self.spec, self.label = model.spec, model.label
        self._model = model

    async def answer(self, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> ModelResult:
        """The model's own answer."""
        return await self._model.answer(request, on_delta)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question under way or answered: who has its answer, nobody where it was asked ahead, and the answer."""

    had_by: set[Asking]
    result: asyncio.Future[ModelResult | None]


class _AskedOnce:
    """A model that is asked once where several owners, or an agent of the whole portfolio for several symbols, put the
    same question on a session: those who come second get the answer of the first, as one that is paid for already. A
    service's failure is nobody else's answer. What was asked ahead of its session is the answer of the first who asks
    in it."""

    def __init__(self, model: LanguageModel) -> None:
        self.spec, self.label, self.sees = model.spec, model.label, model.sees
        self._model = model
        self._session = date.min
        self._asked: dict[date, dict[tuple[str, str], _Asked]] = {}

    async def answer(self, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> ModelResult:
        """The model's answer, or that of another owner or symbol from the same batch."""
        if request.purpose == PREFLIGHT:
            return await self._model.answer(request, on_delta)
        if not request.ahead and request.session != self._session:
            goes_on, self._session = request.session > self._session, request.session
            self._asked = {day: had for day, had in self._asked.items() if goes_on and day >= request.session}
        questions = self._asked.setdefault(request.session, {})
        question = request.purpose, prompt_hash(request.system, request.messages)
        asking: set[Asking] = set() if request.ahead else {(request.symbol, request.owner)}
        if (asked := questions.get(question)) is not None and (request.ahead or not asking <= asked.had_by):
            is_first = not asked.had_by
            asked.had_by.update(asking)
            result = await asyncio.shield(asked.result)
            if result is not None and (is_first or request.ahead or _is_reply(result)):
                if on_delta is not None:
                    on_delta(result.text)
                return result if is_first else replace(result, cached=True, cost=Decimal(0), latency=0.0)
        asked = questions[question] = _Asked(asking, asyncio.get_running_loop().create_future())
        result = None
        try:
            result = await self._model.answer(request, on_delta)
            return result
        finally:
            asked.result.set_result(result)


def _is_reply(result: ModelResult) -> bool:
    return result.failure is None or result.failure.kind is FailureKind.MALFORMED


_LINES = TypeAdapter(RecordedAnswer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """The end of a pruning.

    removed, retained: answers.
    shared: retained answers of the run that another run has too.
    undated: retained answers of which nobody knows when they were recorded.
    """

    removed: int
    retained: int
    shared: int = 0
    undated: int = 0


def answers_by_model(services: Services) -> tuple[ModelAnswers, ...]:
    """The recorded answers of each model. Raises MalformedData, TryAgainLater."""
    found: dict[str, ModelAnswers] = {}
    with services.models.recorded() as recorded:
        for one in _answers(recorded, recorded.hashes()):
            spec = f"{one.provider}:{one.model}"
            found[spec] = found.get(spec, ModelAnswers(spec=spec)).with_one(one)
    return tuple(found[spec] for spec in sorted(found))


def export_answers(services: Services, file: Path, run: str | None = None) -> int:
    """Write recorded answers, one JSON object a line: all of them, or those of a run. Raises MissingData for a run that
    there is not, DataError where the file cannot be written."""
    with services.models.recorded() as recorded:
        known = recorded.hashes()
        wanted = known if run is None else sorted(_hashes_of(services.desk, run).intersection(known))
        try:
            with file.open("wb") as lines:
                for one in _answers(recorded, wanted):
                    lines.write(_LINES.dump_json(one) + b"\n")
        except OSError as error:
            raise DataError(f"{file} cannot be written ({error.strerror}): choose another file") from None
    return len(wanted)


def import_answers(services: Services, file: Path) -> tuple[int, int]:
    """Add recorded answers that `export_answers` wrote; how many are new, and how many were there already and stay.
    Nothing is added from a file with a line that is none. Raises MissingData, MalformedData naming the line."""
    try:
        lines = file.read_bytes().splitlines()
    except OSError as error:
        raise MissingData(f"{file} cannot be read ({error.strerror})") from None
    answers = [_answer(file, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    with services.models.recorded() as recorded:
        new = sum(recorded.record(one) for one in answers)
    return new, len(answers) - new


def prune_answers(services: Services, before: date | None, run: str | None) -> Pruned:
    """Remove recorded answers from before a day, or those of a run that no other run has, or what is both. Raises
    MissingData for a run that there is not, and as JournalReader does for a journal that cannot be asked."""
    with services.models.recorded() as recorded:
        known = frozenset(recorded.hashes())
        chosen, shared = known, frozenset[str]()
        if run is not None:
            own = _hashes_of(services.desk, run) & known
            shared = own & _hashes_of_others(services.desk, run)
            chosen = own - shared
        undated = 0
        if before is not None:
            limit = datetime(before.year, before.month, before.day, tzinfo=UTC)
            times = {one.result.request_hash: one.recorded for one in _answers(recorded, sorted(chosen))}
            undated = sum(time is None for time in times.values())
            chosen = frozenset(name for name, time in times.items() if time is not None and time < limit)
        recorded.remove(chosen)
    return Pruned(removed=len(chosen), retained=len(known) - len(chosen), shared=len(shared), undated=undated)


def _answers(recorded: RecordedAnswers, hashes: Iterable[str]) -> Iterator[RecordedAnswer]:
    """Recorded answers, one after the other: all of them are more than memory should hold."""
    return (one for name in hashes if (one := recorded.answer(name)) is not None)


def _answer(file: Path, number: int, line: bytes) -> RecordedAnswer:
    try:
        one = _LINES.validate_json(line)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"]))
        told = f"{where + ': ' if where else ''}{fault['msg']}"
        raise MalformedData(f"{file} line {number} is not a recorded answer: {told}; nothing was imported") from None
    if not one.result.request_hash or (one.result.answer is None) is (one.result.failure is None):
        raise MalformedData(f"{file} line {number} is not a recorded answer: it has no hash, or no result of its own")
    return one


def _hashes_of(desk: str, run: str) -> frozenset[str]:
    with open_records(desk, run) as records:
        return records.required.request_hashes(run=run)


def _hashes_of_others(desk: str, run: str) -> frozenset[str]:
    """The request hashes of all runs but one: of every desk, and of every backtest."""
    found: frozenset[str] = frozenset()
    for file in (*places.desk_journal(desk).parent.glob("*.db"), *places.runs_dir().glob("*.db")):
        with JournalReader(file) as reader:
            found |= reader.request_hashes(besides=run)
    return found
