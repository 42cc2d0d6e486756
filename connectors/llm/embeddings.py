"""Embeddings by OpenAI's models and those of compatible endpoints."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from connectors.llm.endpoint import Endpoint
from connectors.llm.gate import CallFailed
from connectors.llm.paid_results import EmbeddingStore
from engine.domain.model_call import FailureKind, PriceTable, Usage
from engine.domain.run import ModelUse
from engine.errors import BudgetReached, TryAgainLater
from engine.services import SpendingLimit, Spent
from memory.errors import EmbedderUnavailable

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from memory.ports import Matrix

T = TypeVar("T")

_VENDOR = "openai"
_DIMENSIONS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}
_LONGEST_TEXT = 24_000
"""Longest text sent, in characters: the model's 8,192 tokens hold at least that much English."""
_TEXTS_PER_CALL = 256
_CHARACTERS_PER_CALL = 400_000
"""Most characters of one call, whose limits are 2,048 texts and 300,000 tokens."""
_PASSING = (FailureKind.UNAVAILABLE, FailureKind.TIMED_OUT, FailureKind.RATE_LIMITED, FailureKind.NO_CREDIT)
"""Failures that are no fault of the configuration and may pass."""


class OpenAIEmbedder:
    """An Embedder of memory's port over the official package: vectors of length 1, each text paid for once.

    `embed` may be called from any thread, an event loop's included (which it blocks): the calls run on a loop of the
    embedder's own. Close it with `close`.
    """

    def __init__(
        self,
        model: str,
        endpoint: Endpoint,
        store: EmbeddingStore,
        *,
        timeout: float = 60.0,
        prices: PriceTable | None = None,
        on_use: Callable[[ModelUse], None] = lambda use: None,
        limit: SpendingLimit | None = None,
    ) -> None:
        """Check the endpoint. Raises CredentialsRefused without a key and ConfigError for an invalid base URL.

        `timeout` is a call's, in seconds; `on_use` gets the use of every answered call, on the embedder's own loop. A
        call that does not fit into `limit` raises BudgetReached.
        """
        self.id = f"{endpoint.provider}:{model}"
        endpoint.check(self.id)
        self._model = model
        self._endpoint = endpoint
        self._store = store
        self._timeout = timeout
        self._dimension = _DIMENSIONS.get(model) if endpoint.provider == _VENDOR else None
        self._price = prices.find(endpoint.provider, model) if prices is not None else None
        self._on_use = on_use
        self._limit = limit
        self._client: AsyncOpenAI | None = None
        self._opening = threading.Lock()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=self.id, daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"

    @property
    def dimension(self) -> int:
        """Length of every vector; for an unknown model it is taken from a first vector."""
        if self._dimension is None:
            known = self._store.any_vector(self.id)
            self._dimension = self.embed(["dimension"]).shape[1] if known is None else len(known) // 4
        return self._dimension

    def embed(self, texts: Sequence[str]) -> Matrix:
        """One row per text, shape (len(texts), dimension), float32, of length 1.

        A text longer than the model's limit is embedded by its beginning. Raises TryAgainLater where the endpoint
        cannot be had now, CredentialsRefused, and EmbedderUnavailable where its answers cannot be used.
        """
        import numpy as np

        for at, text in enumerate(texts, 1):
            if not text.strip():
                raise EmbedderUnavailable(
                    f"embedder {self.id}: text {at} of {len(texts)} is empty; an empty text has no vector"
                )
        cut = [text[:_LONGEST_TEXT] for text in texts]
        vectors = self._store.find(self.id, cut)
        missing = list(dict.fromkeys(text for text in cut if text not in vectors))
        if missing:
            vectors |= self._run(self._embed_all(missing))
        if not texts:
            return np.empty((0, self.dimension), "<f4")
        rows = np.frombuffer(b"".join(vectors[text] for text in cut), "<f4")
        return rows.reshape(len(cut), -1)

    def close(self) -> None:
        """Close connections and end the embedder's thread; the store belongs to the caller."""
        if self._client is not None:
            self._run(self._client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _embed_all(self, texts: Sequence[str]) -> dict[str, bytes]:
        done = await asyncio.gather(*(self._embed_some(some) for some in _batches(texts)))
        return {text: vector for part in done for text, vector in part.items()}

    async def _embed_some(self, texts: Sequence[str]) -> dict[str, bytes]:
        async with self._endpoint.limiter.slot(sum(map(len, texts)) // 4):
            try:
                reply = await self._endpoint.gate.call(partial(self._capped, texts), self._timeout)
            except CallFailed as error:
                failure = error.failure
                message = f"embedder {self.id}: {failure.kind.value}: {failure.detail}"
                if failure.kind in _PASSING:
                    raise TryAgainLater(f"{message}; try again later") from None
                message = f"{message}; check the endpoint or name another (memory.embedder)"
                raise EmbedderUnavailable(message) from None
        self._store.store(self.id, reply)
        return reply

    async def _capped(self, texts: Sequence[str], timeout: float) -> dict[str, bytes]:
        """Call within the limit. Whoever waits for vectors holds up the run: a call that does not fit beside those in
        flight is not made later either."""
        if self._limit is None:
            return await self._call(texts, timeout)
        worst = self._spent(sum(len(text.encode(errors="replace")) for text in texts))
        if isinstance(trouble := self._limit.reserve(worst), BudgetReached):
            raise trouble
        used = worst  # a call whose end nobody saw may have cost all of it

        def spend(spent: Spent) -> None:
            nonlocal used
            used = spent

        try:
            return await self._call(texts, timeout, spend)
        finally:
            self._limit.settle(worst, used)

    def _spent(self, tokens: int) -> Spent:
        return Spent(tokens=tokens) if self._price is None else Spent(usd=self._price.cost(Usage(tokens)))

    async def _call(
        self, texts: Sequence[str], timeout: float, spend: Callable[[Spent], None] = lambda spent: None
    ) -> dict[str, bytes]:
        with self._endpoint.errors(f"embedder {self.id}", self._timeout):
            client = await asyncio.to_thread(self._opened)
            async with asyncio.timeout(timeout):
                # "float": the package's own choice, base64, is not understood by every endpoint.
                reply = await client.embeddings.create(
                    model=self._model, input=list(texts), encoding_format="float", timeout=timeout
                )
            use = self._use(reply)
            self._on_use(use)
            if use.usage.input_tokens:
                spend(self._spent(use.usage.input_tokens))
            return self._checked(reply, texts)

    def _use(self, reply: Any) -> ModelUse:
        """Use of one call; its cost is None where the price or the count of tokens is unknown."""
        tokens = getattr(getattr(reply, "usage", None), "prompt_tokens", None)
        cost = None if self._price is None or tokens is None else self._price.cost(Usage(input_tokens=tokens))
        uncounted = int(tokens is None)
        return ModelUse(spec=self.id, calls=1, usage=Usage(tokens or 0), uncounted_calls=uncounted, cost=cost)

    def _checked(self, reply: Any, texts: Sequence[str]) -> dict[str, bytes]:
        import numpy as np

        rows = sorted(reply.data, key=lambda row: row.index)
        if [row.index for row in rows] != list(range(len(texts))):
            raise EmbedderUnavailable(f"embedder {self.id}: {len(rows)} vectors came back for {len(texts)} texts")
        sizes = {len(row.embedding) for row in rows}
        if len(sizes) != 1 or (self._dimension or max(sizes)) not in sizes or not max(sizes):
            wanted = self._dimension or "one size"
            raise EmbedderUnavailable(
                f"embedder {self.id}: vectors of {sorted(sizes)} numbers came back, not of {wanted}"
            )
        matrix = np.array([row.embedding for row in rows], np.float64)
        lengths = np.sqrt((matrix * matrix).sum(axis=1))
        if not (np.isfinite(lengths).all() and (lengths > 0).all()):
            raise EmbedderUnavailable(f"embedder {self.id}: a vector came back that is zero or holds no numbers")
        self._dimension = sizes.pop()
        unit = (matrix / lengths[:, None]).astype("<f4")
        return {text: row.tobytes() for text, row in zip(texts, unit, strict=True)}

    def _opened(self) -> AsyncOpenAI:
        with self._opening:
            if self._client is None:
                from openai import AsyncOpenAI

                self._client = self._endpoint.client(self.id, AsyncOpenAI)
            return self._client

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    characters = 0
    for text in texts:
        if batch and (len(batch) == _TEXTS_PER_CALL or characters + len(text) > _CHARACTERS_PER_CALL):
            yield batch
            batch, characters = [], 0
        batch.append(text)
        characters += len(text)
    if batch:
        yield batch
