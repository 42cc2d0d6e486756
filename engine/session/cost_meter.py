"""The use of models by a run, call by call, and the event of each answer.

Sessions in a row in which models were asked and nothing usable was decided: a model that never decides is no trader,
and its run would look like one that holds cash.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from engine.domain.model_call import AHEAD, PREFLIGHT, AnswerRecord, FailureKind, ModelKind, UnansweredCall, Usage
from engine.domain.run import ModelUse, total_cost
from engine.errors import TryAgainLater
from engine.journal.entries import CallCost, UnansweredEntry
from engine.messages.answer_text import agent_answered
from engine.messages.events import AgentAnswered
from engine.ports import Clock

if TYPE_CHECKING:
    from engine.agents.ask import QuestionKey  # it loads pydantic

COUNTS = (
    *("calls", "cached_calls", "abstentions", "refusals", "repairs", "preflight_calls", "failed_calls"),
    *("estimated_calls", "usage", "uncounted_calls"),
)
"""The figures of ModelUse that add up, beside the cost."""
VECTORS = "vectors"
"""The name of an embedder's calls among the agents."""


class CostMeter:
    """The sum of a run's calls. An answer that was sent back costs like any other; an abstention is counted once."""

    def __init__(
        self, spec: str, training_cutoff: str = "", prices_as_of: str = "", clock: Clock | None = None
    ) -> None:
        self._use = ModelUse(spec=spec, training_cutoff=training_cutoff, prices_as_of=prices_as_of)
        self._clock = clock
        self._calls: list[CallCost] = []

    @property
    def use(self) -> ModelUse:
        """The sum so far: calls are added up when somebody asks."""
        calls, self._calls = self._calls, []
        groups: dict[tuple[str, str, str], list[CallCost]] = {}
        for call in calls:
            groups.setdefault((call.line, call.model, call.month), []).append(call)
        for (line, model, month), group in groups.items():
            use = _use(model, group)
            self._add(replace(use, agents={line: use}, models={model: use}, months={month: use} if month else {}))
        return self._use

    def count(self, record: AnswerRecord) -> None:
        """Add one call. The cost of a run is unknown (None) once that of one call is."""
        result = record.result
        call = CallCost(
            agent=record.agent,
            model=result.model,
            abstained=record.outcome == "abstained",
            cached=result.cached,
            usage=result.usage,
            cost=result.cost,
            latency=result.latency,
            refused=result.failure is not None and result.failure.kind is FailureKind.REFUSED,
            tier=result.tier,
            repairs=result.repairs,
            month=self._month,
        )
        self.restore([call])

    def unanswered(self, key: QuestionKey | UnansweredEntry, call: UnansweredCall) -> None:
        """Add one call that no agent got an answer from."""
        counted = CallCost(
            agent=key.agent,
            model=call.model,
            abstained=False,
            cached=False,
            usage=Usage(call.input_tokens, 0, call.output_tokens),
            cost=call.cost,
            latency=call.latency,
            kind=call.kind,
            estimated=call.estimated,
            month=self._month,
        )
        self.restore([counted])

    def restore(self, calls: Iterable[CallCost]) -> None:
        """Add what the run had asked before it was killed, or waited."""
        self._calls.extend(calls)

    def add_vectors(self, use: ModelUse) -> None:
        """Add calls of an embedder, under a name of their own beside the agents'."""
        months = {self._month: use} if self._month else {}
        self.add(replace(use, agents={VECTORS: use}, models={use.spec: use}, months=months))

    def add(self, use: ModelUse) -> None:
        """Add the use of models, part by part, after the calls so far."""
        self._use = self.use
        self._add(use)

    def _add(self, use: ModelUse) -> None:
        own = self._use
        self._use = replace(
            _sum(own, use),
            agents=_joined(own.agents, use.agents),
            models=_joined(own.models, use.models),
            months=_joined(own.months, use.months),
        )

    @property
    def _month(self) -> str:
        return "" if self._clock is None else f"{self._clock.now():%Y-%m}"


def _use(model: str, calls: Sequence[CallCost]) -> ModelUse:
    """The use of a model by some calls."""
    silent = [call for call in calls if not (call.kind or call.usage.counted)]
    return ModelUse(
        spec=model,
        calls=sum(not call.kind for call in calls),
        preflight_calls=sum(call.kind == PREFLIGHT for call in calls),
        failed_calls=sum(call.kind not in ("", PREFLIGHT, AHEAD) for call in calls),
        estimated_calls=sum(call.estimated for call in calls),
        cached_calls=sum(call.cached for call in calls),
        abstentions=sum(call.abstained for call in calls),
        refusals=sum(call.refused for call in calls),
        repairs=sum(call.repairs for call in calls),
        usage=sum((call.usage for call in calls), Usage()),
        uncounted_calls=0 if model == ModelKind.OFFLINE else len(silent),
        cost=total_cost(call.cost for call in calls),
        tier=", ".join(sorted({call.tier for call in calls if not call.cached} - {""})),
    )


def _joined(one: Mapping[str, ModelUse], other: Mapping[str, ModelUse]) -> Mapping[str, ModelUse]:
    return {**one, **{key: _sum(one[key], part) if key in one else part for key, part in other.items()}}


def _sum(one: ModelUse, other: ModelUse) -> ModelUse:
    sums = {name: getattr(one, name) + getattr(other, name) for name in COUNTS}
    tiers = sorted({*one.tier.split(", "), *other.tier.split(", ")} - {""})
    return replace(one, **sums, cost=total_cost((one.cost, other.cost)), tier=", ".join(tiers))


def use_of(answers: Iterable[AnswerRecord]) -> ModelUse:
    """The model use of some decisions, recorded answers included; `spec` names the models."""
    asked = list(answers)
    meter = CostMeter(", ".join(dict.fromkeys(answer.result.model for answer in asked)))
    for answer in asked:
        meter.count(answer)
    return meter.use


def answered(record: AnswerRecord, run: str, now: datetime) -> AgentAnswered:
    """The event of one call."""
    return agent_answered(
        now,
        replace(record.key, run=run),
        record.step,
        result=record.result,
        outcome=record.outcome,
        reason=record.reason,
        answer=record.answer,
    )


NO_DECISION = "no usable decision"
"""The beginning of the error, and of the note of a daily run."""


@dataclass(slots=True)
class AbstentionGuard:
    """The count of such sessions of one run; `limit` of them stop it, 0 never does.

    hashes: of the requests of these sessions that were sent back or ended in an abstention.
    """

    limit: int
    hashes: tuple[str, ...] = ()
    _sessions: int = 0
    _reason: str = ""
    _asked: tuple[str, ...] = ()
    _usable: bool = False

    def answered(self, record: AnswerRecord, decides: str = "") -> None:
        """Hear of a call of the session at work; an answer of the agent `decides` is a usable decision."""
        self._usable = self._usable or (record.outcome == "answered" and record.agent == decides)
        if record.outcome != "answered" and record.result.model != ModelKind.OFFLINE:
            self._asked += (record.result.request_hash,)
            self._reason = f"{record.agent}, {record.result.model}: {record.reason}"

    def decided(self, usable: bool = False) -> None:
        """End a session, with a usable decision or, as far as no answer was one, without. Raises TryAgainLater where it
        is one too many without."""
        if usable or self._usable or not self._reason:
            self._sessions, self.hashes = 0, ()
        else:
            self._sessions, self.hashes = self._sessions + 1, self.hashes + self._asked
        reason, self._reason, self._asked, self._usable = self._reason, "", (), False
        if self.limit and self._sessions >= self.limit:
            count = f"{self._sessions} sessions in a row" if self._sessions > 1 else "a session"
            raise TryAgainLater(
                f"{NO_DECISION} in {count} ({reason}): fix the model, or name another with --model; "
                "unanswered questions are asked again, and --abstain-limit 0 never stops a run"
            )
