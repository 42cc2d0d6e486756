"""Recorded answers: a question that was answered once is not paid for again, and a killed run resumes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import partial

from connectors.llm.answer_store import AnswerStore
from connectors.llm.lazy_model import LazyModel
from connectors.llm.remote_model import RemoteModel
from connectors.llm.request_hash import request_hash
from engine.domain.model_call import FailureKind, ModelFailure, ModelRequest, ModelResult
from engine.domain.model_spec import ReplayMode
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
        sees: bool,
        painter_version: str | None,
        mode: ReplayMode = ReplayMode.READ_THROUGH,
        raise_on_miss: bool = False,
    ) -> None:
        """Wrap `inner`, which answers unrecorded questions; None in replay-only mode.

        `sees` and `painter_version` are those of the recorded answers. `raise_on_miss` turns a miss in replay-only mode
        from a failure into a MissingData error. Raises ConfigError where a model is needed and none given.
        """
        if inner is None and mode is not ReplayMode.REPLAY_ONLY:
            raise ConfigError(f"{mode} needs a model to ask; name one or use {ReplayMode.REPLAY_ONLY}")
        self.spec = f"{provider}:{model}"
        self.label = inner.label if inner is not None else f"{model} ({provider}, recorded)"
        self.sees = sees
        self._store = store
        self._inner = inner
        self._provider = provider
        self._model = model
        self._painter_version = painter_version if sees else None
        self._mode = mode
        self._raise_on_miss = raise_on_miss

    async def answer(self, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> ModelResult:
        """The recorded answer, else the inner model's, which is then recorded if it is complete."""
        digest = request_hash(self._provider, self._model, request, self._painter_version)
        if self._mode is not ReplayMode.LIVE:
            recorded = await asyncio.to_thread(self._store.find, digest)
            if recorded is not None:
                if on_delta is not None and recorded.text:
                    on_delta(recorded.text)
                return replace(recorded, cached=True, cost=Decimal(0), latency=0.0)
        if self._mode is ReplayMode.REPLAY_ONLY or self._inner is None:
            return self._miss(request, digest)
        result = replace(await self._inner.answer(request, on_delta), request_hash=digest)
        if _is_complete(result):
            record = partial(self._store.record, overwrite=self._mode is ReplayMode.LIVE)
            await asyncio.to_thread(record, digest, self._provider, self._model, self.sees, result)
        return result

    async def aclose(self) -> None:
        """Close the recorded answers and the inner model."""
        if isinstance(self._inner, RemoteModel | LazyModel):
            await self._inner.aclose()
        await asyncio.to_thread(self._store.close)

    def _miss(self, request: ModelRequest, digest: str) -> ModelResult:
        detail = (
            f"no answer of {self.spec} is recorded for {request.purpose} of {request.symbol} "
            f"on {request.session}; run once with the model itself to record it"
        )
        if self._raise_on_miss:
            raise MissingData(detail)
        failure = ModelFailure(FailureKind.NOT_CONFIGURED, detail)
        return ModelResult(model=self.spec, failure=failure, cost=Decimal(0), request_hash=digest)


def _is_complete(result: ModelResult) -> bool:
    """True for a model's complete reply; a reply that is not even the API's JSON has no stop reason."""
    if result.failure is None:
        return True
    if result.failure.kind is FailureKind.MALFORMED:
        return bool(result.stop_reason)
    return result.failure.kind is FailureKind.REFUSED
