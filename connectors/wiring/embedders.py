"""The embedder that turns texts to vectors, by its spec."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from engine import places
from engine.config import Config
from engine.domain.run import ModelUse
from engine.errors import ConfigError, UsageError

MINILM = "all-MiniLM-L6-v2"
"""The model of `minilm` where no other is named."""

if TYPE_CHECKING:
    from connectors.llm.embedding_store import EmbeddingStore
    from connectors.llm.embeddings import OpenAIEmbedder
    from engine.domain.model_spec import ModelSpec
    from memory.ports import Embedder


@contextmanager
def open_embedder(
    config: Config, spec: str | None, on_use: Callable[[ModelUse], None], environ: Mapping[str, str] = os.environ
) -> Iterator[Embedder]:
    """The embedder of a spec (None: the one that [memory] names), with its connections and its file of vectors, until
    the block ends; `on_use` hears of every call of a remote one. Raises ConfigError for a spec that means none,
    CredentialsRefused for a missing key."""
    from engine.domain.model_spec import ModelKind, parse_model_spec

    text = spec or config.memory.embedder
    if text == "hash-384":
        from memory.hash_embedder import HashEmbedder

        yield HashEmbedder()
        return
    if text == "minilm" or text.startswith("minilm:"):
        from memory.minilm import SentenceEmbedder

        yield SentenceEmbedder(text.removeprefix("minilm").removeprefix(":") or MINILM)
        return
    try:
        named = parse_model_spec(text, config.endpoints)
    except UsageError:
        named = None
    if named is None or named.kind not in (ModelKind.OPENAI, ModelKind.ENDPOINT):
        own = sorted(config.endpoints) or ["NAME"]
        known = ("hash-384", "minilm:FOLDER", "openai:MODEL", *(f"{name}:MODEL" for name in own))
        hint = "" if config.endpoints else " of an [endpoints.NAME]"
        raise ConfigError(f"memory.embedder: {text!r} makes no vectors; possible are {', '.join(known)}{hint}")
    from connectors.llm.embedding_store import EmbeddingStore

    with (
        closing(EmbeddingStore(places.embeddings())) as store,
        closing(_remote(named, store, config, environ, on_use)) as made,
    ):
        yield made


def _remote(
    spec: ModelSpec,
    store: EmbeddingStore,
    config: Config,
    environ: Mapping[str, str],
    on_use: Callable[[ModelUse], None],
) -> OpenAIEmbedder:
    from connectors.llm.embeddings import OpenAIEmbedder
    from connectors.llm.pricing import load_prices
    from connectors.llm.rate_limiter import RateLimiter

    prices = load_prices()
    endpoint = config.endpoints.get(spec.endpoint)
    if endpoint is None:
        key = environ.get("OPENAI_API_KEY")
        return OpenAIEmbedder(spec.model, store, api_key=key, prices=prices, on_use=on_use)
    variable = endpoint.key_env or ""
    return OpenAIEmbedder(
        spec.model,
        store,
        api_key=environ.get(variable) if variable else None,
        limiter=lambda: RateLimiter(endpoint.concurrency, endpoint.requests_per_minute),
        provider=spec.endpoint,
        key_variable=variable,
        base_url=endpoint.base_url,
        needs_key=bool(variable),
        prices=prices,
        on_use=on_use,
    )
