"""Sentence vectors by meaning, with sentence-transformers (extra `minilm`) and a local model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from memory.errors import EmbedderUnavailable
from memory.ports import Matrix


class SentenceEmbedder:
    """A sentence-transformers model, named or as a folder; loaded at the first use of `dimension` or `embed`."""

    def __init__(self, model: str) -> None:
        self._name = model
        self._model: Any = None

    @property
    def id(self) -> str:
        """`minilm:` and the model's name; the last part of a folder, so that a store can be moved with its model."""
        return f"minilm:{Path(self._name).name}"

    @property
    def dimension(self) -> int:
        """Length of the model's vectors. Raises EmbedderUnavailable."""
        return int(self._loaded().get_sentence_embedding_dimension())

    def embed(self, texts: Sequence[str]) -> Matrix:
        """One row of length 1 per text. Raises EmbedderUnavailable."""
        rows = self._loaded().encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(rows, np.float32).reshape(len(texts), self.dimension)

    def _loaded(self) -> Any:
        if self._model is None:
            try:
                from sentence_transformers import SentenceTransformer
            except ImportError:
                raise EmbedderUnavailable(
                    "embedder minilm needs sentence-transformers: install paperdesk[minilm], or use hash-384"
                ) from None
            try:
                self._model = SentenceTransformer(self._name)
            except Exception as error:
                text = " ".join(str(error).split())[:160]
                raise EmbedderUnavailable(
                    f"embedder minilm cannot load {self._name}: {text}; name a model folder in the config"
                ) from error
        return self._model
