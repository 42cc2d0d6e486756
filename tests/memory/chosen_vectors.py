"""What tests of the memory share: an embedder whose vectors a test can choose, and items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from memory.in_memory_store import InMemoryStore
from memory.ports import Matrix
from memory.presets import MemoryPreset
from memory.recall import LayeredMemory
from memory.record import Item


class ChosenVectors:
    """Gives each text the vector that the test chose for it, scaled to length 1; unknown texts a seeded one."""

    def __init__(self, vectors: Mapping[str, Sequence[float]] | None = None, dimension: int = 8) -> None:
        self.id = f"chosen-{dimension}"
        self.dimension = dimension
        self._vectors = dict(vectors or {})

    def embed(self, texts: Sequence[str]) -> Matrix:
        rows = [self._vectors.get(text, self._seeded(text)) for text in texts]
        found = np.zeros((len(texts), self.dimension), np.float32)
        for row, vector in zip(found, rows, strict=True):
            row[: len(vector)] = vector
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        return np.asarray(found / np.where(lengths == 0, 1, lengths), np.float32)

    def _seeded(self, text: str) -> Sequence[float]:
        seed = np.frombuffer(text.encode("utf-8").ljust(8, b" "), np.uint8)
        return np.random.default_rng(seed).normal(size=self.dimension).tolist()


def news(text: str, **said: Any) -> Item:
    return Item(**({"symbol": "MSFT", "kind": "news", "text": text} | said))


def memory(preset: str | MemoryPreset = "desk", vectors: Mapping[str, Sequence[float]] | None = None) -> LayeredMemory:
    embedder = ChosenVectors(vectors)
    return LayeredMemory(InMemoryStore(embedder.dimension), embedder, preset)
