"""Recorded answers: a question that was answered once is not paid for again, and a killed run resumes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from datetime import datetime
from decimal import Decimal
from functools import partial
from pathlib import Path

from connectors.llm.batches import Batches
from connectors.llm.capped_model import CappedModel
from connectors.llm.paid_results import AnswerStore, request_hash
from connectors.llm.remote_model import RemoteModel, without_images
from engine.clock import LiveClock
from engine.domain.model_call import (
    FailureKind,
    ModelRequest,
    ModelResult,
    ModelSpec,
    RecordedAnswer,
    ReplayMode,
    UnansweredCall,
)
from engine.errors import ConfigError, MissingData
from engine.ports import Clock, LanguageModel
from engine.services import Report


@dataclass(eq=False)
class ReplayModel:
    """A LanguageModel that reads the recorded answers before it asks another model.

    Complete replies are recorded: answers, refusals, questions that are too long, and prose in place of an answer,
    which is sent back with a complaint; asked again it would differ, and with it every later question of the run.
    Truncated replies and failures of the service are never recorded. A recorded answer is returned as it was given,
    with `cached` set and a cost of zero; its usage is that of the original call.

    store: the recorded answers.
    inner: answers unrecorded questions; None in replay-only mode alone, else ConfigError is raised.
    provider, model: of the recorded answers.
    painter_version: of the recorded answers' charts; None for a model without vision.
    mode: the use of recorded answers.
    clock: tells when an answer is recorded.
    before: awaited before a question goes to `inner`; may refuse it by an error.
    paid_since: the beginning (UTC) of a run that goes on: an answer that was recorded from then on is its own, and is
        given again as it was, in any mode.
    """

    store: AnswerStore
    inner: LanguageModel | None
    _: KW_ONLY
    provider: str
    model: str
    painter_version: str | None
    mode: ReplayMode = ReplayMode.READ_THROUGH
    clock: Clock = LiveClock()  # noqa: RUF009 - it has no state
    before: Callable[[ModelRequest], Awaitable[None]] | None = None
    paid_since: datetime | None = None

    def __post_init__(self) -> None:
        if self.inner is None and self.mode is not ReplayMode.REPLAY_ONLY:
            raise ConfigError(f"{self.mode} needs a model to ask; name one or use {ReplayMode.REPLAY_ONLY}")
        self.spec = f"{self.provider}:{self.model}"
        self.label = self.inner.label if self.inner is not None else f"{self.model} ({self.provider}, recorded)"
        self.sees = self.painter_version is not None
        self._batched: dict[str, ModelResult] = {}

    async def answer(self, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> ModelResult:
        """The recorded answer, or one that has come in a batch, else the inner model's, which is then recorded if it is
        complete.

        In replay-only mode an unrecorded question with charts has the result of a model that takes none, which was
        asked about their figures. Raises MissingData for any other unrecorded question in that mode.
        """
        digest = self._hash(request)
        batched = self._batched.pop(digest, None)
        if batched is not None and _is_complete(batched):
            return batched
        result = await self._answer(digest, request, on_delta)
        return result if batched is None else replace(result, failed=(_lost(batched), *result.failed))

    async def _answer(self, digest: str, request: ModelRequest, on_delta: Callable[[str], None] | None) -> ModelResult:
        kept = None
        if self.mode is not ReplayMode.LIVE or self.paid_since is not None:
            kept = await asyncio.to_thread(self.store.answer, digest)
            if kept is not None and self._serves(kept):
                recorded = kept.result
                if on_delta is not None and recorded.text:
                    on_delta(recorded.text)
                own = self._is_own(kept)
                return recorded if own else replace(recorded, cached=True, cost=Decimal(0), latency=0.0)
        if self.mode is ReplayMode.REPLAY_ONLY or self.inner is None:
            if any(message.charts for message in request.messages):
                return without_images(self.spec, digest)
            raise MissingData(
                f"no answer of {self.spec} is recorded for {request.purpose} of {request.symbol} "
                f"on {request.session}; run once with the model itself to record one"
            )
        if self.before is not None:
            await self.before(request)
        result = replace(await self.inner.answer(request, on_delta), request_hash=digest)
        await asyncio.to_thread(self._record, result, overwrite=self.mode is ReplayMode.LIVE or kept is not None)
        return result

    async def batch(self, requests: Sequence[ModelRequest], run: str, booked: Collection[str], report: Report) -> None:
        """Have a run's questions answered in batches, as far as no answer is recorded and the service takes them: each
        is the answer of the first who asks, as from the model itself. So are those of batches that the run collected
        before, but for answers that it has `booked`, by their hashes. Raises as Batches and `answer`."""
        live = self.inner.inner if isinstance(self.inner, CappedModel) else self.inner
        if not isinstance(live, RemoteModel) or not live.takes_batches:
            return
        capped = self.inner if isinstance(self.inner, CappedModel) else None
        overwrite = self.mode is ReplayMode.LIVE
        left: dict[str, ModelRequest] = {}
        batches = await asyncio.to_thread(self.store.batches, live.spec)
        own = [batch for batch in batches if batch.run == run]
        sent = {name for batch in own if batch.collected for name in batch.questions}
        # The run may have ended while it recorded the answers of one: it pays for all of them.
        waiting = {name for batch in own if not batch.collected and batch.id is not None for name in batch.questions}
        for request in requests:
            name = self._hash(request)
            kept = await asyncio.to_thread(self.store.answer, name)
            if name in waiting or (name not in sent and (kept is None or overwrite)):
                left[name] = request
            elif kept is not None and name in sent.difference(booked):
                self._batched[name] = kept.result
                if capped is not None:
                    await capped.settle_batched(None, kept.result)
        if left:
            if self.before is not None:
                await self.before(next(iter(left.values())))
            record = partial(self._record, overwrite=overwrite)
            sending = Batches(
                live, capped, self.store, self.clock, run=run, shares=not overwrite, record=record, report=report
            )
            answers = await sending.answers(left)
            self._batched |= {name: answers[name] for name in answers.keys() & left.keys()}

    def _hash(self, request: ModelRequest) -> str:
        return request_hash(self.provider, self.model, request, self.painter_version)

    def _record(self, result: ModelResult, *, overwrite: bool) -> None:
        """Keep a result that is complete."""
        if _is_complete(result):
            answer = RecordedAnswer(
                provider=self.provider, model=self.model, sees=self.sees, result=result, recorded=self.clock.now()
            )
            self.store.record(answer, overwrite=overwrite)

    def _is_own(self, kept: RecordedAnswer) -> bool:
        return self.paid_since is not None and kept.recorded is not None and kept.recorded >= self.paid_since

    def _serves(self, kept: RecordedAnswer) -> bool:
        """True for a recorded answer that is given in place of the inner model's."""
        if self._is_own(kept):
            return True
        return self.mode is not ReplayMode.LIVE and (self.inner is None or not _too_long(kept.result))

    async def aclose(self) -> None:
        """Close the recorded answers and the inner model."""
        if isinstance(self.inner, (RemoteModel, CappedModel)):
            await self.inner.aclose()
        await asyncio.to_thread(self.store.close)


class StoredAnswers(AnswerStore):
    """RecordedAnswers in a file; charts count by the version of the painter that they were drawn with."""

    def __init__(self, path: Path, painter_version: str) -> None:
        """Open the file. Raises as AnswerStore does."""
        super().__init__(path)
        self._painter_version = painter_version
        self._models = self.models()

    def has(self, spec: ModelSpec) -> bool:
        """True where any answer of a model is recorded."""
        return (spec.provider, spec.model) in self._models

    def find(self, spec: ModelSpec, request: ModelRequest) -> ModelResult | None:
        """The model's recorded answer to a question."""
        version = self._painter_version if self._models.get((spec.provider, spec.model)) else None
        found = self.answer(request_hash(spec.provider, spec.model, request, version))
        return None if found is None or _too_long(found.result) else found.result

    def reasoning(self, spec: ModelSpec) -> float | None:
        """Tokens of reasoning in a model's answer, the mean of those that are recorded; None where there is none."""
        return self.mean_reasoning(spec.provider, spec.model)

    def specs(self) -> list[str]:
        """Every model of which any answer is recorded."""
        return sorted(f"{provider}:{model}" for provider, model in self._models)


def _too_long(result: ModelResult) -> bool:
    """True for a question that was too long: recorded for a replay, and asked again where the model can be asked, since
    its limit may be another one by now."""
    return result.failure is not None and result.failure.kind is FailureKind.TOO_LONG


def _lost(result: ModelResult) -> UnansweredCall:
    """The call of a batch whose answer was cut off: it is paid, and the question is asked again."""
    return UnansweredCall(
        model=result.model,
        kind="" if result.failure is None else result.failure.kind,
        detail="" if result.failure is None else result.failure.detail,
        input_tokens=result.usage.input_tokens,
        output_tokens=result.usage.output_tokens,
        cost=result.cost,
    )


def _is_complete(result: ModelResult) -> bool:
    """True for a model's complete reply; a reply that is not even the API's JSON has no stop reason."""
    if result.failure is None:
        return True
    if result.failure.kind is FailureKind.MALFORMED:
        return bool(result.stop_reason)
    return result.failure.kind in (FailureKind.REFUSED, FailureKind.TOO_LONG)
