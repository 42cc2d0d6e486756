"""Recorded answers: a question that was answered once is not paid for again, and a killed run resumes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import partial

from connectors.llm.paid_results import AnswerStore
from connectors.llm.remote_model import RemoteModel
from connectors.llm.request_hash import request_hash
from engine.domain.model_call import FailureKind, ModelRequest, ModelResult
from engine.domain.model_spec import ModelSpec, ReplayMode
from engine.errors import ConfigError, MissingData
from engine.ports import LanguageModel


class ReplayModel:
    """A LanguageModel that reads the recorded answers before it asks another model.

    Complete replies are recorded: answers, refusals, and prose in place of an answer, which is sent back with a
    complaint; asked again it would differ, and with it every later question of the run. Truncated replies and failures
    of the service are never recorded. A recorded answer is returned as it was given, with `cached` set and a cost of
    zero; its usage is that of the original call.
    """

    def __init__(
        self,
        store: AnswerStore,
        inner: LanguageModel | None,
        *,
        provider: str,
        model: str,
        painter_version: str | None,
        mode: ReplayMode = ReplayMode.READ_THROUGH,
    ) -> None:
        """Wrap `inner`, which answers unrecorded questions; None in replay-only mode.

        `painter_version` is that of the recorded answers; None for a model without vision. Raises ConfigError where a
        model is needed and none given.
        """
        if inner is None and mode is not ReplayMode.REPLAY_ONLY:
            raise ConfigError(f"{mode} needs a model to ask; name one or use {ReplayMode.REPLAY_ONLY}")
        self.spec = f"{provider}:{model}"
        self.label = inner.label if inner is not None else f"{model} ({provider}, recorded)"
        self.sees = painter_version is not None
        self._store = store
        self._inner = inner
        self._provider = provider
        self._model = model
        self._painter_version = painter_version
        self._mode = mode

    async def answer(self, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> ModelResult:
        """The recorded answer, else the inner model's, which is then recorded if it is complete.

        Raises MissingData for an unrecorded question in replay-only mode.
        """
        digest = request_hash(self._provider, self._model, request, self._painter_version)
        if self._mode is not ReplayMode.LIVE:
            recorded = await asyncio.to_thread(self._store.find, digest)
            if recorded is not None:
                if on_delta is not None and recorded.text:
                    on_delta(recorded.text)
                return replace(recorded, cached=True, cost=Decimal(0), latency=0.0)
        if self._mode is ReplayMode.REPLAY_ONLY or self._inner is None:
            raise MissingData(
                f"no answer of {self.spec} is recorded for {request.purpose} of {request.symbol} "
                f"on {request.session}; run once with the model itself to record it"
            )
        result = replace(await self._inner.answer(request, on_delta), request_hash=digest)
        if _is_complete(result):
            overwrite = self._mode is ReplayMode.LIVE
            record = partial(self._store.record, sees=self.sees, result=result, overwrite=overwrite)
            await asyncio.to_thread(record, digest, self._provider, self._model)
        return result

    async def aclose(self) -> None:
        """Close the recorded answers and the inner model."""
        if isinstance(self._inner, RemoteModel):
            await self._inner.aclose()
        await asyncio.to_thread(self._store.close)


class StoredAnswers:
    """RecordedAnswers over a store; charts count by the version of the painter that they were drawn with."""

    def __init__(self, store: AnswerStore, painter_version: str) -> None:
        self._store = store
        self._painter_version = painter_version
        self._models = store.models()

    def has(self, spec: ModelSpec) -> bool:
        """True where any answer of a model is recorded."""
        return (spec.provider, spec.model) in self._models

    def find(self, spec: ModelSpec, request: ModelRequest) -> ModelResult | None:
        """The model's recorded answer to a question."""
        version = self._painter_version if self._models.get((spec.provider, spec.model)) else None
        return self._store.find(request_hash(spec.provider, spec.model, request, version))


def _is_complete(result: ModelResult) -> bool:
    """True for a model's complete reply; a reply that is not even the API's JSON has no stop reason."""
    if result.failure is None:
        return True
    if result.failure.kind is FailureKind.MALFORMED:
        return bool(result.stop_reason)
    return result.failure.kind is FailureKind.REFUSED
