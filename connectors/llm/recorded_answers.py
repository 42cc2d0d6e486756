"""Recorded answers by model and question, for whoever asks nobody."""

from __future__ import annotations

from connectors.llm.answer_store import AnswerStore
from connectors.llm.request_hash import request_hash
from engine.domain.model_call import ModelRequest, ModelResult
from engine.domain.model_spec import ModelSpec


class StoredAnswers:
    """RecordedAnswers over a store; charts count by the version of the painter that they were drawn with."""

    def __init__(self, store: AnswerStore, painter_version: str) -> None:
        self._store, self._painter_version = store, painter_version
        self._models = {(model.provider, model.model) for model in store.models()}

    def has(self, spec: ModelSpec) -> bool:
        """True where any answer of a model is recorded."""
        return (spec.provider, spec.model) in self._models

    def find(self, spec: ModelSpec, request: ModelRequest) -> ModelResult | None:
        """The model's recorded answer to a question."""
        return self._store.find(request_hash(spec.provider, spec.model, request, self._painter_version))
