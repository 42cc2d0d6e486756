"""A model whose every question waits at a gate, where an operator's pause holds it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from engine.domain.model_call import ModelRequest, ModelResult
from engine.ports import LanguageModel

Gate = Callable[[], Awaitable[None]]
"""A wait while the desk is paused; awaited before every question to a model."""
PAUSE_SECONDS = 1.0
"""Seconds between two looks at a pause, which another process may end."""


class Gated:
    """A model that waits at the gate before every question."""

    def __init__(self, inner: LanguageModel, gate: Gate) -> None:
        self.spec, self.label, self.sees = inner.spec, inner.label, inner.sees
        self._inner = inner
        self._gate = gate

    async def answer(self, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> ModelResult:
        """The inner model's answer, once the gate is open."""
        await self._gate()
        return await self._inner.answer(request, on_delta)
