"""Lexical relevancy: BM25 as of the step, in [0, 1], fused with vectors by meaning and never with those by letters."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.embedders import HashEmbedder
from memory.in_memory_store import InMemoryStore
from memory.layer_rank import Hit
from memory.lexical import K1, B, terms
from memory.presets import PRESETS, Ranking, Relevancy
from memory.recall import LayeredMemory
from memory.record import Item, Layer
from tests.memory.chosen_vectors import ChosenVectors

ALONE = replace(PRESETS["desk"], ranking=Ranking.RELEVANCY, duplicate_similarity=None)
VOCABULARY = (
    *("earnings", "revenue", "margin", "guidance", "dividend", "recall", "lawsuit"),
    *("merger", "chips", "cloud", "retail", "Europe", "2024", "7.5"),
)


def memory(preset: object = ALONE, embedder: object = None) -> LayeredMemory:
    embedder = embedder or HashEmbedder()
    return LayeredMemory(InMemoryStore(embedder.dimension), embedder, preset)  # type: ignore[attr-defined, arg-type]


def remembered(desk: LayeredMemory, texts: Sequence[str], step: float, kind: str = "news") -> None:
    items = [Item(symbol="MSFT", kind=kind, text=text, source=f"{step} {n}") for n, text in enumerate(texts)]
    desk.remember(items, step)


def shallow(desk: LayeredMemory, query: str, now: float, k: int = 20) -> tuple[Hit, ...]:
    return desk.recall("MSFT", {"all": query}, now, k=k)[Layer.SHALLOW]


def sentences(seed: int, count: int) -> list[str]:
    chance = random.Random(seed)
    return [f"{' '.join(chance.choices(VOCABULARY, k=chance.randrange(3, 9)))} item{n}" for n in range(count)]


def bm25(texts: Sequence[str], query: str) -> list[float]:
    """The formula from the literature, document by document."""
    documents = [Counter(terms(text)) for text in texts]
    average = sum(map(Counter.total, documents)) / len(documents)
    scores = []
    for document in documents:
        score = 0.0
        for word in set(terms(query)):
            found = sum(word in other for other in documents)
            idf = math.log(1 + (len(documents) - found + 0.5) / (found + 0.5))
            count = document[word]
            score += idf * count * (K1 + 1) / (count + K1 * (1 - B + B * document.total() / average))
        scores.append(score)
    return scores


@given(st.integers(0, 10_000))
def test_relevancy_is_bm25_scaled_by_the_best_of_the_layer(seed: int) -> None:
    desk, texts = memory(), sentences(seed, 12)
    remembered(desk, texts, 1)
    query = " ".join(random.Random(seed + 1).choices(VOCABULARY, k=4))
    expected = dict(zip(texts, bm25(texts, query), strict=True))
    best = max(expected.values())
    for hit in shallow(desk, query, 1):
        assert hit.relevancy == pytest.approx(expected[hit.record.text] / best if best else 0.0, abs=1e-9)
        assert 0 <= hit.relevancy <= 1


@given(st.integers(0, 10_000))
def test_what_comes_later_changes_no_earlier_ranking(seed: int) -> None:
    desk, query = memory(PRESETS["desk"]), "guidance cut in Europe 2024"
    remembered(desk, sentences(seed, 15), 1)
    before = [(hit.record.id, hit.relevancy, hit.composite) for hit in shallow(desk, query, 3)]
    remembered(desk, ["guidance guidance guidance", *sentences(seed + 1, 30)], 4)
    desk.sweep(6)
    after = [(hit.record.id, hit.relevancy, hit.composite) for hit in shallow(desk, query, 3)]
    assert after == before
    # What is written with hindsight counts from the step at which it may be recalled.
    desk.remember([Item(symbol="MSFT", kind="news", text="guidance " * 9, source="h", seen_until=9)], 6)
    assert "h" not in {hit.record.source for hit in shallow(desk, query, 7)}


def test_a_store_that_was_opened_anew_ranks_alike() -> None:
    desk = memory(PRESETS["desk"])
    for day in range(1, 120):
        desk.sweep(day)
        remembered(desk, sentences(day, 3), day)
    again = desk.copy_to(InMemoryStore(HashEmbedder.dimension))
    for query in ("recall lawsuit", "7.5 margin", "nothing of that"):
        now = [(h.record.id, h.composite, h.rank) for h in shallow(desk, query, 119)]
        assert now == [(h.record.id, h.composite, h.rank) for h in shallow(again, query, 119)]


def test_words_are_compared_without_case_plural_or_spaces_between_characters() -> None:
    assert list(terms("Chips, CHIP's 7.5%")) == ["chip", "chip", "s", "7.5"]
    assert list(terms("贵州茅台")) == ["贵州", "州茅", "茅台"]
    desk = memory()
    remembered(desk, ["贵州茅台 季度利润增长", "中国平安 保费"], 1)
    assert shallow(desk, "茅台利润", 1)[0].record.text.startswith("贵州")


def test_an_embedder_of_meaning_is_fused_by_ranks_and_the_one_of_letters_is_not() -> None:
    texts = sentences(3, 10)
    query = "merger retail"
    lexical, cosine = memory(), memory(replace(ALONE, relevancy=Relevancy.COSINE))
    meaning = memory(embedder=ChosenVectors())
    for desk in (lexical, cosine, meaning):
        remembered(desk, texts, 1)
    scores = bm25(texts, query)
    vectors = ChosenVectors().embed([*texts, query]).astype(np.float64)
    likeness = [float(vector @ vectors[-1]) for vector in vectors[:-1]]

    def place(values: Sequence[float], n: int) -> int:
        return 1 + sum(other > values[n] for other in values)

    expected = [
        (1 / (60 + place(likeness, n)) + (1 / (60 + place(scores, n)) if scores[n] else 0)) * 61 / 2
        for n in range(len(texts))
    ]
    by_text = {hit.record.text: hit.relevancy for hit in shallow(meaning, query, 1)}
    assert [by_text[text] for text in texts] == pytest.approx(expected)
    by_letters = [hit.record.text for hit in shallow(lexical, query, 1) if hit.relevancy]
    assert by_letters == sorted(by_letters, key=lambda text: -scores[texts.index(text)])
    assert [h.record.text for h in shallow(cosine, query, 1)] != [h.record.text for h in shallow(lexical, query, 1)]


@pytest.mark.parametrize("name", ["investorbench", "investorbench-code", "finmem-code", "tradinggpt", "finagent"])
def test_the_papers_presets_keep_the_cosine(name: str) -> None:
    assert PRESETS[name].relevancy is Relevancy.COSINE
    assert PRESETS["desk"].relevancy is Relevancy.LEXICAL


def test_weighted_scores_take_words_as_well() -> None:
    desk = memory(replace(PRESETS["tradinggpt"], relevancy=Relevancy.LEXICAL, name="own"))
    remembered(desk, ["lawsuit over chips", "dividend raised", "cloud revenue in Europe"], 1)
    assert shallow(desk, "chips lawsuit", 1, k=1)[0].record.text == "lawsuit over chips"
