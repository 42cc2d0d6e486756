"""A model that is made when it is first asked: until then it needs no key."""

from __future__ import annotations

from collections.abc import Callable

from connectors.llm.remote_model import RemoteModel
from engine.domain.model_call import ModelRequest, ModelResult


class OnDemand:
    """A LanguageModel behind an address, made by `make` for the first question that it has to answer itself."""

    def __init__(self, make: Callable[[], RemoteModel], *, provider: str, model: str, sees: bool) -> None:
        """`provider`, `model` and `sees` are what the made one will say of itself."""
        self.spec = f"{provider}:{model}"
        self.label = f"{model} ({provider})"
        self.sees = sees
        self._make = make
        self._made: RemoteModel | None = None

    async def answer(self, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> ModelResult:
        """The model's own answer. Raises what making it raises (CredentialsRefused without a key), and what it
        raises."""
        if self._made is None:
            self._made = self._make()
        return await self._made.answer(request, on_delta)

    async def aclose(self) -> None:
        """Closes the model, where it was made."""
        if self._made is not None:
            await self._made.aclose()
