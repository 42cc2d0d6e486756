"""Models as the agents of a batch are given them: none is asked the same twice, or shown pictures that are left out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from decimal import Decimal

from engine.domain.market import Symbol
from engine.domain.model_call import (
    FailureKind,
    ModelRequest,
    ModelResult,
    prompt_hash,
)
from engine.ports import LanguageModel
from engine.preset import Preset

Asking = tuple[Symbol, str]
"""The symbol and the owner that a question is put for."""


def without_repeats(preset: Preset, models: Mapping[str, LanguageModel]) -> Mapping[str, LanguageModel]:
    """The models, each asked once where a cycle puts the same question several times: for several owners, or for every
    symbol of a portfolio."""
    if len(preset.owners) < 2 and preset.decision != "portfolio":
        return models
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


class _AskedOnce:
    """A model that is asked once where several owners, or an agent of the whole portfolio for several symbols, put the
    same question on a session: those who come second get the answer of the first, as one that is paid for already. A
    service's failure is nobody else's answer."""

    def __init__(self, model: LanguageModel) -> None:
        self.spec, self.label, self.sees = model.spec, model.label, model.sees
        self._model = model
        self._session = date.min
        self._first: dict[tuple[str, str], tuple[set[Asking], asyncio.Future[ModelResult | None]]] = {}

    async def answer(self, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> ModelResult:
        """The model's answer, or that of another owner or symbol from the same batch."""
        if request.session != self._session:
            self._session, self._first = request.session, {}
        question = request.purpose, prompt_hash(request.system, request.messages)
        asking: Asking = request.symbol, request.owner
        before, first = self._first.get(question, (set[Asking](), None))
        if first is not None and asking not in before:
            before.add(asking)
            result = await asyncio.shield(first)
            if result is not None:
                if on_delta is not None:
                    on_delta(result.text)
                return replace(result, cached=True, cost=Decimal(0), latency=0.0)
        first = asyncio.get_running_loop().create_future()
        self._first[question] = {asking}, first
        result = None
        try:
            result = await self._model.answer(request, on_delta)
            return result
        finally:
            replied = result is not None and (result.failure is None or result.failure.kind is FailureKind.MALFORMED)
            first.set_result(result if replied else None)
