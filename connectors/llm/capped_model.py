"""A cap on what models may cost in a day: the worst case of every call is reserved before it is sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from connectors.llm.remote_model import RemoteModel
from engine.domain.model_call import ModelRequest, ModelResult, Usage
from engine.domain.model_price import ModelPrice
from engine.services import SpendingLimit, Spent

_CALLS = 2
"""Calls of one question at most: an answer that was cut at the token limit is asked for once more."""
_LIMITS = 5
"""Token limits of those calls together: the second one's is four times the first one's."""
_THINKING = 6144
"""Tokens that a model may write beside its answer."""
_CHART_TOKENS = 3000
_OVERHEAD_TOKENS = 500
"""Tokens of a request's frame: roles, names, format."""


class SpendingCap:
    """The rest of a day's limit, shared by all models of a run; one per event loop."""

    def __init__(self, limit: SpendingLimit) -> None:
        self._limit = limit
        self._spent = limit.spent
        self._reserved = Spent()
        self._in_flight = 0
        self._changed = asyncio.Condition()

    async def reserve(self, worst: Spent) -> None:
        """Reserve the worst case of a call, after calls in flight have come back where it does not fit beside theirs.
        Raises BudgetReached where it does not fit at all."""
        async with self._changed:
            while trouble := self._limit.trouble(self._spent + self._reserved, worst):
                if not self._in_flight:
                    raise trouble
                await self._changed.wait()
            self._reserved += worst
            self._in_flight += 1

    async def settle(self, worst: Spent, used: Spent) -> None:
        """Put what a call has used in the place of its worst case."""
        async with self._changed:
            self._reserved -= worst
            self._spent += used
            self._in_flight -= 1
            self._changed.notify_all()


@dataclass(eq=False)
class CappedModel:
    """A remote model that asks nothing a cap has no room for. `price` is None where it is not known: then tokens
    count."""

    inner: RemoteModel
    cap: SpendingCap
    price: ModelPrice | None

    def __post_init__(self) -> None:
        self.spec, self.label, self.sees = self.inner.spec, self.inner.label, self.inner.sees

    async def answer(self, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> ModelResult:
        """The model's answer. Raises BudgetReached, and what the model raises."""
        worst = worst_case(request, self.price)
        await self.cap.reserve(worst)
        used = worst  # a call whose end nobody saw may have cost all of it
        try:
            result = await self.inner.answer(request, on_delta)
            used = self._used(result, worst)
            return result
        finally:
            await asyncio.shield(self.cap.settle(worst, used))

    def _used(self, result: ModelResult, worst: Spent) -> Spent:
        failed = result.failed
        if self.price is None:
            usage, lost = result.usage, sum(call.input_tokens + call.output_tokens for call in failed)
            return Spent(tokens=usage.input_tokens + usage.output_tokens + lost) if usage.counted else worst
        return (
            worst if result.cost is None else Spent(usd=sum((call.cost or Decimal(0) for call in failed), result.cost))
        )

    async def aclose(self) -> None:
        """Close the model's connections."""
        await self.inner.aclose()


def worst_case(request: ModelRequest, price: ModelPrice | None) -> Spent:
    """Highest cost of a question: a token is at least one byte of text, and every limit is written full."""
    texts = [request.system, *(message.text for message in request.messages), json.dumps(request.schema) * 2]
    charts = sum(len(message.charts) for message in request.messages)
    asked = sum(len(text.encode(errors="replace")) for text in texts) + charts * _CHART_TOKENS + _OVERHEAD_TOKENS
    total = Usage(_CALLS * asked, 0, _LIMITS * request.settings.max_output_tokens + _CALLS * _THINKING)
    if price is None:
        return Spent(tokens=total.input_tokens + total.output_tokens)
    return Spent(usd=max(price.cost(total), price.cost(total, total.input_tokens)))
