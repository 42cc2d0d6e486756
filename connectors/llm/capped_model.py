"""A cap on what models may cost: what a call may cost is reserved before it is sent, and what it has cost is booked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal

from connectors.llm.remote_model import RemoteModel
from engine.domain.model_call import BATCH, PREFLIGHT, TIERS, ModelPrice, ModelRequest, ModelResult, Usage
from engine.errors import BudgetReached, PaperdeskError
from engine.services import USUAL_ANSWER_TOKENS, SpendingLimit, Spent

_PATIENCE = 0.2
"""Seconds between two looks at a limit that has no room."""
_MARGIN = 1.1
"""Factor by which a question may take more tokens than the ones before it, by their length."""
_LONGER = 1.25
"""Factor by which an answer may be longer than the longest one before it."""


class SpendingCap:
    """The rest of a limit for the models of one event loop."""

    def __init__(self, limit: SpendingLimit) -> None:
        self.longest = limit.longest
        self._limit = limit
        self._changed = asyncio.Condition()

    async def reserve(self, most: Spent, least: Spent, *, first: bool) -> Spent:
        """Reserve what a call may cost, or the rest of the limit where that is `least` at least. The first call of a
        question waits for calls in flight before it makes do with the rest. Raises BudgetReached."""
        async with self._changed:
            while isinstance(granted := self._limit.reserve(most, first=first), BudgetReached):
                if not (first and self._limit.in_flight):
                    granted = self._limit.reserve(most, least, first=first)
                    break
                with suppress(TimeoutError):  # what other processes and threads settle is not told here
                    await asyncio.wait_for(self._changed.wait(), _PATIENCE)
        if isinstance(granted, BudgetReached):
            raise granted
        return granted

    def grant(self, most: Spent) -> Spent | None:
        """Reserve what a question may cost, waiting for nothing; None where there is no room."""
        granted = self._limit.reserve(most)
        return None if isinstance(granted, BudgetReached) else granted

    async def settle(self, reserved: Spent, used: Spent) -> None:
        """Put what a question has used in the place of what was reserved for it."""
        async with self._changed:
            self._limit.settle(reserved, used)
            self._changed.notify_all()


@dataclass(eq=False)
class CappedModel:
    """A remote model that asks nothing a cap has no room for. `price` is None where it is not known: then tokens
    count."""

    inner: RemoteModel
    cap: SpendingCap
    price: ModelPrice | None
    _ratio: float = 0.0
    """The most tokens that were counted for one of the estimate; 0 where none were."""
    _longest: int = 0
    """Tokens of the longest answer so far, thinking included."""

    def __post_init__(self) -> None:
        self.spec, self.label, self.sees = self.inner.spec, self.inner.label, self.inner.sees
        self._longest = self.cap.longest

    async def answer(self, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> ModelResult:
        """The model's answer. Raises BudgetReached, and what the model raises."""
        allowance = _Allowance(self, request)
        await allowance.cover(Usage(), self.inner.output_limit(request))
        used: Spent | None = None  # a call whose end nobody saw may have cost all of it
        try:
            result = await self.inner.answer(request, on_delta, allowance)
            used = self._used(result)
            return result
        except PaperdeskError:
            used = Spent()
            raise
        finally:
            reserved = allowance.reserved
            await asyncio.shield(self.cap.settle(reserved, reserved if used is None else used))

    def reserve_batched(self, request: ModelRequest) -> tuple[Spent, int] | None:
        """Reserve a question of a batch, with the limit of its answer; None where the cap has no room for it."""
        limit = self.inner.output_limit(request)
        limit = min(limit, self.least_answer(limit))
        most = self.worst(Usage(self.largest_request(request), 0, limit))
        granted = self.cap.grant(replace(most, usd=most.usd * TIERS[BATCH]))
        return None if granted is None else (granted, limit)

    async def settle_batched(self, reserved: Spent | None, result: ModelResult | None) -> None:
        """Book a question of a batch: `reserved` is None for one that was sent by a process before this, `result` for
        one that was not answered."""
        held = self.cap.grant(Spent()) if reserved is None else reserved
        assert held is not None  # there is always room for nothing
        used = Spent() if result is None else self._used(result)
        await self.cap.settle(held, held if used is None else used)

    def largest_request(self, request: ModelRequest) -> int:
        """The most tokens of a question: by those before it, else a third of its bytes."""
        return round(self.inner.estimated_tokens(request) * (self._ratio * _MARGIN or 4 / 3))

    def least_answer(self, limit: int) -> int:
        """Tokens that an answer is not refused: by those before it."""
        return round(self._longest * _LONGER) or min(limit, USUAL_ANSWER_TOKENS)

    def saw(self, request: ModelRequest, usage: Usage) -> None:
        """Learn from what a service has counted."""
        if usage.counted and request.purpose != PREFLIGHT:
            self._ratio = max(self._ratio, usage.input_tokens / self.inner.estimated_tokens(request))
            self._longest = max(self._longest, usage.output_tokens)

    def worst(self, total: Usage) -> Spent:
        """The most that tokens cost: all of the input may be written to a cache."""
        if self.price is None:
            return Spent(tokens=total.total)
        return Spent(usd=max(self.price.cost(total), self.price.cost(total, total.input_tokens)))

    def _used(self, result: ModelResult) -> Spent | None:
        """The cost of a question, its failed calls included; None where that is not known."""
        failed, usage = result.failed, result.usage
        if self.price is not None:
            if result.cost is None:
                return None
            return Spent(usd=sum((call.cost or Decimal(0) for call in failed), result.cost))
        if not usage.counted and result.text:
            return None
        lost = sum(call.input_tokens + call.output_tokens for call in failed)
        return Spent(tokens=usage.input_tokens + usage.output_tokens + lost)

    async def aclose(self) -> None:
        """Close the model's connections."""
        await self.inner.aclose()


@dataclass(eq=False)
class _Allowance:
    """The allowance of the calls for one question (remote_model.Allowance)."""

    model: CappedModel
    request: ModelRequest
    reserved: Spent = field(default_factory=Spent)
    _begun: bool = False

    def __post_init__(self) -> None:
        self._asked = self.model.largest_request(self.request)

    async def cover(self, taken: Usage, limit: int) -> int:
        """Reserve a call with answers of up to `limit` tokens, beside what the calls before it have taken; return the
        limit that there is room for. Raises BudgetReached."""
        model = self.model
        least = max(model.least_answer(limit), 2 * taken.output_tokens)
        if not self._begun or self._room(taken) < least:
            most, enough = (model.worst(self._total(taken, tokens)) for tokens in (max(limit, least), least))
            before, first = self.reserved, not self._begun
            self.reserved += await model.cap.reserve(most - before, enough - before, first=first)
            self._begun = True
        return min(limit, self._room(taken))

    def saw(self, usage: Usage) -> None:
        """Learn from what the service has counted."""
        self.model.saw(self.request, usage)

    def _total(self, taken: Usage, tokens: int) -> Usage:
        return taken + Usage(self._asked, 0, tokens)

    def _room(self, taken: Usage) -> int:
        """The tokens of an answer that are covered."""
        model, sample = self.model, 1_000_000
        asked, more = (model.worst(self._total(taken, tokens)) for tokens in (0, sample))
        if model.price is None:
            return self.reserved.tokens - asked.tokens
        each = (more - asked).usd / sample
        return int((self.reserved - asked).usd / each) if each else sample
