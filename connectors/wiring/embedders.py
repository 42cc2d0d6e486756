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
        from memory.embedders import HashEmbedder

        yield HashEmbedder()
        return
    if text == "minilm" or text.startswith("minilm:"):
        from memory.embedders import SentenceEmbedder

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
    from connectors.llm.embeddings import OpenAIEmbedder
    from connectors.llm.paid_results import EmbeddingStore
    from connectors.llm.pricing import load_prices
    from connectors.wiring.models import ConfiguredModels
    from connectors.wiring.remote_models import endpoint_of

    endpoint, prices = endpoint_of(ConfiguredModels(config), config, named, environ), load_prices()
    with (
        closing(EmbeddingStore(places.embeddings())) as store,
        closing(OpenAIEmbedder(named.model, endpoint, store, prices=prices, on_use=on_use)) as made,
    ):
        yield made
