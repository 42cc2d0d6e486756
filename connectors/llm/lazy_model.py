"""A model that is made for its first question: until then it needs no key."""

from __future__ import annotations

from collections.abc import Callable

from connectors.llm.remote_model import RemoteModel
from engine.domain.model_call import ModelRequest, ModelResult


class LazyModel:
    """A LanguageModel behind an address, made by `make` for the first question without a recorded answer."""

    def __init__(self, make: Callable[[], RemoteModel], *, provider: str, model: str, sees: bool) -> None:
        """Take the names of the model that `make` will make."""
        self.spec = f"{provider}:{model}"
        self.label = f"{model} ({provider})"
        self.sees = sees
        self._make = make
        self._made: RemoteModel | None = None

    async def answer(self, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> ModelResult:
        """The made model's answer. Raises the errors of making it (CredentialsRefused without a key) and its own."""
        if self._made is None:
            self._made = self._make()
        return await self._made.answer(request, on_delta)

    async def aclose(self) -> None:
        """Close the model, if it was made."""
        if self._made is not None:
            await self._made.aclose()
