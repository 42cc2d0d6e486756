"""A cap on what models may cost in a day: the worst case of every call is reserved before it is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal

from connectors.llm.remote_model import RemoteModel
from engine.domain.model_call import ModelRequest, ModelResult
from engine.domain.model_price import ModelPrice
from engine.services import SpendingLimit, Spent

_PATIENCE = 0.2
"""Seconds between two looks at a limit that has no room."""


class SpendingCap:
    """The rest of a limit for the models of one event loop."""

    def __init__(self, limit: SpendingLimit) -> None:
        self._limit = limit
        self._changed = asyncio.Condition()

    async def reserve(self, worst: Spent) -> None:
        """Reserve the worst case of a call, after calls in flight have come back where it does not fit beside theirs.
        Raises BudgetReached where it does not fit at all."""
        async with self._changed:
            while trouble := self._limit.reserve(worst):
                if not self._limit.in_flight:
                    raise trouble
                with suppress(TimeoutError):  # what other processes and threads settle is not told here
                    await asyncio.wait_for(self._changed.wait(), _PATIENCE)

    async def settle(self, worst: Spent, used: Spent) -> None:
        """Put what a call has used in the place of its worst case."""
        async with self._changed:
            self._limit.settle(worst, used)
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
        worst = self._worst_case(request)
        await self.cap.reserve(worst)
        used = worst  # a call whose end nobody saw may have cost all of it
        try:
            result = await self.inner.answer(request, on_delta)
            used = self._used(result, worst)
            return result
        finally:
            await asyncio.shield(self.cap.settle(worst, used))

    def _worst_case(self, request: ModelRequest) -> Spent:
        total = self.inner.most_used(request)
        if self.price is None:
            return Spent(tokens=total.input_tokens + total.output_tokens)
        return Spent(usd=max(self.price.cost(total), self.price.cost(total, total.input_tokens)))

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
