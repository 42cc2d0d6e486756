"""Ask models the agents' questions, check every answer, and send a bad one back once.

Nothing else calls a LanguageModel: what a model can write reaches the cycle as a checked answer or as an abstention.
Where no answer could be had there is no decision either: that is an error, and ends the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from datetime import date
from functools import cache
from typing import Any, Generic

from pydantic import ValidationError

from engine.agents.agent import A, Agent, Answer, V, View, one_line, plain
from engine.agents.rendering import Question, fields_of, prompt_version, render, render_complaint
from engine.agents.type_repairs import repaired
from engine.domain.decision import LEANING, DecisionKey
from engine.domain.market import Symbol
from engine.domain.model_call import (
    NO_OPTIONS,
    REPAIRED,
    AnswerOptions,
    AnswerRecord,
    FailureKind,
    Message,
    ModelKind,
    ModelRequest,
    ModelResult,
    ModelSettings,
    UnansweredCall,
    prompt_hash,
)
from engine.errors import ConfigError, TryAgainLater
from engine.ports import LanguageModel
from engine.settings.values import AgentSettings

MAY_PASS = frozenset({FailureKind.UNAVAILABLE, FailureKind.TIMED_OUT, FailureKind.RATE_LIMITED, FailureKind.NO_CREDIT})
"""Failures after which the same question may be answered later."""
STAYS = frozenset({FailureKind.NOT_CONFIGURED, FailureKind.TOO_LONG})
"""Failures that no waiting changes."""
_CHARACTERS = 4
"""Characters of a token, about."""
DEFAULT = "default"
"""The key under which a model or settings serve every agent that has none of its own."""


def for_owner(agent: str, owner: str) -> str:
    """The key under which a model serves an agent of one owner alone."""
    return f"{agent}@{owner}"


def agent_of(key: str) -> str:
    """The agent that a model's key is of."""
    return key.partition("@")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionKey:
    """The key of a question.

    agent: its name in the registry.
    step: the question's name in events; the performance reflection has two.
    symbol, session, owner: the view's.
    sample: number of the repeat, from 0.
    """

    agent: str
    step: str
    symbol: Symbol
    session: date
    owner: str
    sample: int = 0


@dataclass(frozen=True, slots=True)
class Reply(Generic[A]):
    """A checked answer, or None and the reason of the abstention. `result` is the last call's, `attempts` the number
    of calls, `inputs` the text that the agent read: quoted figures are looked up in it."""

    answer: A | None
    abstained_because: str
    result: ModelResult
    attempts: int
    inputs: str


@dataclass(frozen=True, slots=True)
class Asker:
    """The way from agents to their models, one per run. It keeps nothing between questions.

    models, settings: by agent, `default` for the rest; models also by agent and owner (`for_owner`)
    on_answer: receives every call
    on_delta: receives text as it streams
    sample: number of the repeat of a run, from 0
    options: go with every question of an agent that has none of its own
    insisted: agents whose temperature the user set: where a model refuses it that is a ConfigError; a preset's
        temperature is dropped
    on_unanswered: receives every call that no agent got an answer from
    late_abstains: a call that passed its deadline is an abstention, in a run that waits for nobody
    ahead: questions are asked before their session, for an asker of it
    """

    models: Mapping[str, LanguageModel]
    settings: Mapping[str, AgentSettings]
    on_answer: Callable[[AnswerRecord], None]
    on_delta: Callable[[QuestionKey, str], None]
    _: KW_ONLY
    sample: int = 0
    options: AnswerOptions = NO_OPTIONS
    insisted: frozenset[str] = frozenset()
    on_unanswered: Callable[[QuestionKey, UnansweredCall], None] = lambda key, call: None
    late_abstains: bool = False
    ahead: bool = False

    def model_of(self, agent: str, owner: str = "") -> LanguageModel:
        """The model that an agent asks, for an owner that has one of its own. Raises ConfigError where there is
        none."""
        model = self.models.get(for_owner(agent, owner)) or self.models.get(agent) or self.models.get(DEFAULT)
        if model is None:
            raise ConfigError(f"no model for the agent {agent}; name one in its settings or a default")
        return model

    def models_of(self, agent: str) -> Sequence[LanguageModel]:
        """All models that an agent asks, for some owner or other."""
        own = [model for key, model in self.models.items() if agent_of(key) == agent and key != agent]
        return [self.model_of(agent), *own]

    @property
    def asks_rules_alone(self) -> bool:
        """True where every model is the rules."""
        return all(model.spec == ModelKind.OFFLINE for model in self.models.values())

    def settings_of(self, agent: str) -> ModelSettings:
        """The settings of an agent's questions."""
        wish = self.settings.get(agent) or self.settings.get(DEFAULT) or AgentSettings()
        return ModelSettings(wish.temperature, wish.max_output_tokens, wish.timeout, agent in self.insisted)

    def options_of(self, agent: str) -> AnswerOptions:
        """The options of an agent's questions: its own before the run's."""
        wish = self.settings.get(agent) or self.settings.get(DEFAULT) or AgentSettings()
        own = {name: getattr(wish, name) for name in ("effort", "verbosity", "tier", "thinking")}
        return replace(self.options, **{name: value for name, value in own.items() if value is not None})

    async def ask(self, agent: Agent[V, A], view: V, about: str = "", currency: str = "") -> Reply[A]:
        """Ask once, and once more with the complaint where the answer was malformed, broke a rule or left something
        out, which may be missing the second time. Then the agent abstains, as it does at once where the model refused
        or its answer was cut off. A model that refuses pictures is asked about their figures; a
        question that is too long for it is shortened once. `about` says in a few words what the asset is, `currency`
        what it is quoted in.

        Raises TryAgainLater and ConfigError where no answer could be had (`check_had`), and what the model raises.
        """
        model, answer = self.model_of(agent.name, view.owner), agent.expects(view)
        key = QuestionKey(
            agent=agent.name,
            step=view.question or agent.questions[0],
            symbol=view.symbol,
            session=view.session,
            owner=view.owner,
            sample=self.sample,
        )
        question, more = render(agent.prompt, view, answer, model.sees, about, currency=currency), tuple[Message, ...]()
        for attempt in (1, 2):
            question, result = await self._taken(key, question, more, agent, view)
            messages = question.messages + more
            if not (self.late_abstains and _failed_by(result, FailureKind.TIMED_OUT)):
                check_had(result, f"asked by {key.agent} about {key.symbol} after {key.session}")
            checked, complaint, repairs = _checked(result, answer, view)
            result = replace(result, notes=(*result.notes, *(f"{REPAIRED}{repair}" for repair in repairs)))
            if checked is not None and attempt == 1 and (missing := checked.missing(view)):
                checked, complaint = None, f"incomplete: {plain(missing, 300)}"
            repairable = result.failure is None or _failed_by(result, FailureKind.MALFORMED)
            retry = checked is None and attempt == 1 and repairable
            outcome = "answered" if checked is not None else "sent back" if retry else "abstained"
            self.on_answer(
                AnswerRecord(
                    key=DecisionKey("", key.session, 0, key.symbol, key.owner),
                    agent=key.agent,
                    step=key.step,
                    sample=key.sample,
                    attempt=attempt,
                    prompt_hash=prompt_hash(question.system, messages),
                    prompt_version=prompt_version(agent.prompt, answer),
                    system=question.system,
                    messages=messages,
                    charts=question.charts,
                    seen=question.seen,
                    view=view.summary(),
                    result=result,
                    outcome=outcome,
                    reason=complaint,
                    answer=None if checked is None else _recorded(checked, agent),
                )
            )
            if not retry:
                break
            more = render_complaint(result.text, complaint)
        return Reply(checked, complaint, result, attempt, question.text)

    async def _taken(
        self, key: QuestionKey, question: Question, more: tuple[Message, ...], agent: Agent[V, A], view: V
    ) -> tuple[Question, ModelResult]:
        """The question in the form that the model takes, and its result."""
        result, notes = await self._answer(key, question, more, agent, view), tuple[str, ...]()
        if _failed_by(result, FailureKind.NO_IMAGES):
            about, currency, notes = question.about, question.currency, result.notes
            question = render(agent.prompt, view, agent.expects(view), False, about, currency=currency)
            result = await self._answer(key, question, more, agent, view)
        if _failed_by(result, FailureKind.TOO_LONG) and question.whole:
            before, question = question, question.shorter
            lengths = f"from about {_tokens(before):,} to {_tokens(question):,} tokens"
            notes = (*notes, f"quoted texts shortened {lengths}: the question was too long for {result.model}")
            result = await self._answer(key, question, more, agent, view)
        if result.failure is not None and result.failure.kind is FailureKind.TOO_LONG:
            tried = f"about {_tokens(question):,} tokens after its quoted texts were shortened"
            result = replace(result, failure=replace(result.failure, detail=f"{result.failure.detail}; {tried}"))
        return question, replace(result, notes=notes + result.notes)

    async def _answer(
        self, key: QuestionKey, question: Question, more: tuple[Message, ...], agent: Agent[V, A], view: V
    ) -> ModelResult:
        request = self._request(key, question.system, question.messages + more, agent, view)
        result = await self.model_of(key.agent, key.owner).answer(request, lambda text: self.on_delta(key, text))
        for call in result.failed:
            self.on_unanswered(key, call)
        return result

    def _request(
        self, key: QuestionKey, system: str, messages: tuple[Message, ...], agent: Agent[V, A], view: V
    ) -> ModelRequest:
        answer = agent.expects(view)
        return ModelRequest(
            purpose=key.agent,
            symbol=key.symbol,
            session=key.session,
            owner=key.owner,
            system=system,
            messages=messages,
            view=view,
            schema_name=answer.__name__,
            schema=_schema(answer, fields_of(answer) in system),
            settings=self.settings_of(key.agent),
            options=self.options_of(key.agent),
            sample=key.sample,
            rule=agent.rule,
            ahead=self.ahead,
        )


def check_had(result: ModelResult, question: str) -> None:
    """Raise TryAgainLater or ConfigError where no answer could be had; `question` says in the message by whom it was
    asked. A recorded one counts as the abstention that it was then."""
    failure = result.failure
    if failure is None or result.cached or failure.kind not in MAY_PASS | STAYS:
        return
    text = f"{result.model}, {question}: {failure.kind.value}: {plain(failure.detail, 300)}"
    if failure.kind in STAYS:
        raise ConfigError(f"{text}; fix the model's configuration or name another")
    raise TryAgainLater(f"{text}; no decision is possible without it: try again later, recorded answers will be reused")


def _failed_by(result: ModelResult, kind: FailureKind) -> bool:
    return result.failure is not None and result.failure.kind is kind


def _tokens(question: Question) -> int:
    return len(question.text) // _CHARACTERS


@cache
def _schema(answer: type[Answer], told: bool) -> Mapping[str, Any]:
    """The JSON schema without the docstrings of its classes, which are for programmers and no part of the question, and
    without its fields' descriptions where the prompt has `told` them: each is paid for once."""
    schema = answer.model_json_schema()
    for described in (schema, *schema.get("$defs", {}).values()):
        described.pop("description", None)
        if "properties" in described:  # asked for, also where an answer without it is taken
            described["required"] = list(described["properties"])
        for field in described.get("properties", {}).values():
            if told:
                field.pop("description", None)
            elif "description" in field:
                field["description"] = one_line(field["description"])
    return schema


def _checked(result: ModelResult, answer: type[A], view: View) -> tuple[A | None, str, tuple[str, ...]]:
    """The answer that passed all rules, an empty string and what was repaired of it, or None and the complaint."""
    if result.failure is not None:
        return None, f"{result.failure.kind.value}: {plain(result.failure.detail, 300)}", ()
    if result.answer is None:
        return None, "malformed: there was no answer", ()
    try:
        checked, repairs = _validated(result.answer, answer)
        checked.check(view)
    except ValidationError as error:
        return None, f"malformed: {_spelled_out(error)}", ()
    except ValueError as error:
        return None, f"malformed: {plain(str(error), 300)}", ()
    return checked, "", repairs


def _validated(said: Mapping[str, Any], answer: type[A]) -> tuple[A, tuple[str, ...]]:
    """The answer by its types, repaired where it has to be, and what was repaired. Raises ValidationError."""
    try:
        return answer.model_validate(said), ()
    except ValidationError:
        meant, repairs = repaired(said, _schema(answer, False))
        return answer.model_validate(meant), repairs


def _recorded(answer: Answer, agent: Agent[Any, Any]) -> Mapping[str, Any]:
    """The answer as plain JSON; that of an agent of the user's own with the side that it takes, which no rule of ours
    could read off its fields."""
    made: dict[str, Any] = answer.model_dump(mode="json")
    side = 0 if agent.see is None else answer.leaning()
    return {**made, LEANING: side} if side and LEANING not in made else made


def _spelled_out(error: ValidationError) -> str:
    """Up to five faults on one line: field, fault, and the value."""
    faults = []
    for fault in error.errors(include_url=False)[:5]:
        where = ".".join(str(part) for part in fault["loc"])
        got = "" if isinstance(fault["input"], dict) else f" (got {plain(repr(fault['input']), 60)})"
        faults.append(f"{where + ': ' if where else ''}{plain(fault['msg'], 300).removeprefix('Value error, ')}{got}")
    return "; ".join(faults)
