"""Answers of a recorded run, given again to the same questions: the journal as recorded answers, failures included."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from decimal import Decimal

from engine.agents.ask import prompt_hash
from engine.domain.model_call import ModelRequest, ModelResult
from engine.journal.entries import AnswerEntry
from engine.offline.model import OfflineModel
from engine.ports import LanguageModel


class RecordedModel:
    """A model that gives a run's recorded answers where the same model was asked the same, and asks the inner one
    otherwise. Offline rules are asked anew: they cost nothing and answer the same."""

    def __init__(self, inner: LanguageModel, answers: Iterable[AnswerEntry]) -> None:
        self.spec, self.label, self.sees = inner.spec, inner.label, inner.sees
        self._inner = inner
        self._said: dict[tuple[str, str, str, str], list[ModelResult]] = {}
        if isinstance(inner, OfflineModel):
            return
        for entry in answers:
            if entry.result.model == inner.spec:
                key = entry.agent, entry.key.symbol, entry.key.owner, entry.prompt_hash
                self._said.setdefault(key, []).append(entry.result)

    async def answer(self, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> ModelResult:
        """The answer of the run, the last one where it was asked more often than then; else the inner model's."""
        asked = prompt_hash(request.system, request.messages)
        said = self._said.get((request.purpose, request.symbol, request.owner, asked))
        if not said:
            return await self._inner.answer(request, on_delta)
        found = said.pop(0) if len(said) > 1 else said[0]
        return replace(found, cached=True, cost=Decimal(0), latency=0.0)
