"""Sentence vectors: a clear word where the library or the model is missing, rows of length 1 where it is not."""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import pytest

from memory.embedders import SentenceEmbedder
from memory.errors import EmbedderUnavailable


def library(monkeypatch: pytest.MonkeyPatch, model: type) -> None:
    module = ModuleType("sentence_transformers")
    module.SentenceTransformer = model  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)

    with pytest.raises(EmbedderUnavailable, match=r"paperdesk\[minilm\]"):
        SentenceEmbedder("all-MiniLM-L6-v2").embed(["x"])


def test_without_the_model_it_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    class Missing:
        def __init__(self, name: str) -> None:
            raise OSError(f"{name} is not a local folder\nand there is no network")

    library(monkeypatch, Missing)

    with pytest.raises(EmbedderUnavailable, match="models/mini"):
        SentenceEmbedder("models/mini").dimension  # noqa: B018


def test_a_model_in_a_folder_gives_rows_and_is_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []

    class Model:
        def __init__(self, name: str) -> None:
            loaded.append(name)

        def get_sentence_embedding_dimension(self) -> int:
            return 3

        def encode(self, texts: list[str], normalize_embeddings: bool, show_progress_bar: bool) -> np.ndarray:  # type: ignore[type-arg]
            assert normalize_embeddings and not show_progress_bar
            return np.array([[len(text), 0, 0] for text in texts], float) / max(1, *map(len, texts), 1)

    library(monkeypatch, Model)
    embedder = SentenceEmbedder("/somewhere/models/all-MiniLM-L6-v2")

    rows = embedder.embed(["ab", "cd"])
    embedder.embed(["ef"])

    assert embedder.id == "minilm:all-MiniLM-L6-v2"
    assert rows.dtype == np.float32 and rows.tolist() == [[1, 0, 0], [1, 0, 0]]
    assert loaded == ["/somewhere/models/all-MiniLM-L6-v2"]
