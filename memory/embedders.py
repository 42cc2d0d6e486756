"""Embedders without a service: the default one, by words, and one by meaning with a local model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from memory.errors import EmbedderUnavailable
from memory.ports import Matrix

DIMENSION = 384
SHORTEST, LONGEST = 3, 5

# Odd 64-bit constants (from the fractional parts of the golden ratio and of square roots): they spread close code
# points over all bits. Changing one changes every vector, and so needs a new id.
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xBF58476D1CE4E5B9)
_BATCH = 512


class HashEmbedder:
    """Signed hashing of character n-grams into 384 numbers of length 1, the same on every machine.

    It matches words and their forms, not meaning: a follow-up on the same event is similar, a paraphrase is not. Case
    and runs of white space do not count.
    """

    id = "hash-384"
    dimension = DIMENSION

    def embed(self, texts: Sequence[str]) -> Matrix:
        """One row per text, shape (len(texts), 384), float32."""
        rows = np.empty((len(texts), DIMENSION), np.float32)
        for start in range(0, len(texts), _BATCH):
            rows[start : start + _BATCH] = _embed(texts[start : start + _BATCH])
        return rows


def _embed(texts: Sequence[str]) -> Matrix:
    # Spaces stand around each text, so that a word at its edge has the n-grams it has inside; the shortest text
    # that is not blank has an n-gram this way.
    padded = [f" {' '.join(text.casefold().split())} " for text in texts]
    codes = np.frombuffer("".join(padded).encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)
    lengths = np.array([len(text) for text in padded])
    owner = np.repeat(np.arange(len(texts)), lengths)
    left = np.repeat(np.cumsum(lengths), lengths) - np.arange(len(codes))  # code points up to the end of its text
    sums = np.zeros(len(texts) * DIMENSION)
    with np.errstate(over="ignore"):
        mixed = codes * _SPREAD
        gram = mixed
        for size in range(2, LONGEST + 1):
            following = mixed[size - 1 :]
            gram = (gram[: len(following)] ^ (gram[: len(following)] >> np.uint64(29))) * _MIX + following
            if size < SHORTEST:
                continue
            inside = left[: len(gram)] >= size
            hashed = gram[inside] ^ (gram[inside] >> np.uint64(32))
            hashed = (hashed * _MIX) >> np.uint64(20)
            cell = owner[: len(gram)][inside] * DIMENSION + (hashed % np.uint64(DIMENSION)).astype(np.int64)
            sign = 1.0 - 2.0 * ((hashed >> np.uint64(40)) & np.uint64(1)).astype(np.float64)
            sums += np.bincount(cell, sign, len(sums))
    rows = sums.reshape(len(texts), DIMENSION)
    norms = np.sqrt((rows * rows).sum(axis=1))
    # Signs can cancel out in a very short text; it is then like nothing else, and still of length 1.
    rows[norms == 0, 0] = 1.0
    norms[norms == 0] = 1.0
    return np.asarray(rows / norms[:, None], np.float32)


class SentenceEmbedder:
    """A sentence-transformers model (extra `minilm`), named or as a folder; loaded at the first use."""

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
