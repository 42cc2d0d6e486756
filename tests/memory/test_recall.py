"""What is recalled: the exact best of each layer, from every query, known by now, each thing once."""

from __future__ import annotations

import math
import random
import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from memory import partition, projection, search
from memory.embedders import HashEmbedder
from memory.errors import EmbedderUnavailable, InvalidRecord, TimeOrder, UnknownPreset, UnknownRecord
from memory.in_memory_store import InMemoryStore
from memory.placement import Inquiry, Placement, Reason, placement_of
from memory.presets import PRESETS, MemoryPreset, Relevancy
from memory.projection import similarity
from memory.recall import LayeredMemory
from memory.record import MARKET, Cause, Item, Layer
from tests.bench.bench_memory import texts
from tests.memory.chosen_vectors import ChosenVectors, memory, news

WORDS = [f"text {n}" for n in range(400)]
QUERIES = {"short-term": "query one", "long-term": "query two", "reports": "query three"}


BY_COSINE = replace(PRESETS["desk"], name="desk by cosine", relevancy=Relevancy.COSINE)


def placement(
    desk: LayeredMemory, name: str, symbol: str, queries: dict[str, str], now: float, **how: Any
) -> Placement:
    return placement_of(desk, name, Inquiry(symbol=symbol, queries=queries, now=now, **how))


def filled(preset: str | MemoryPreset, days: int = 40) -> LayeredMemory:
    """Random news, filings and reflections of some weeks, some of them rewarded."""
    chance = random.Random(getattr(preset, "name", preset))
    desk = memory(preset)
    words = iter(WORDS)
    for day in range(1, days + 1):
        desk.sweep(day)
        items = [
            Item(
                symbol="MSFT",
                kind=chance.choice(("news", "news", "10-Q", "10-K", "reflection")),
                text=next(words),
                importance=value,
            )
            for value in (chance.uniform(30, 100) for _ in range(6))
        ]
        names = desk.remember(items, day)
        desk.reinforce(names[:2], chance.choice((1, -1)), day, "decision")
    return desk


@pytest.mark.parametrize("preset", ["investorbench", "finmem-code", "tradinggpt", "finagent", BY_COSINE])
def test_the_first_k_are_the_best_of_all_living_records(preset: str | MemoryPreset) -> None:
    desk = filled(preset)
    embedder = ChosenVectors()
    query = embedder.embed(["query one"])[0].astype(float)
    scored_records = [s for s in desk.scored_records(40) if preset != "tradinggpt" or s.layer is not Layer.SHALLOW]

    found = desk.recall("MSFT", {"": "query one"}, 40, k=4)

    assert scored_records
    for layer in {s.layer for s in scored_records}:
        here = [s for s in scored_records if s.layer is layer]
        triples = [
            (s.recency, float(s.record.vector.astype(float) @ query), min(max(s.importance / 100, 0), 1)) for s in here
        ]
        if preset == "tradinggpt":
            columns = [[t[n] for t in triples] for n in range(3)]
            scaled = [
                [(x - min(column)) / (max(column) - min(column)) if max(column) > min(column) else 1.0 for x in column]
                for column in columns
            ]
            a, b, c = (40, 20, 40) if layer is Layer.REFLECTION else (24, 20, 56)
            gammas = [a * r + b * v + c * i for r, v, i in zip(*scaled, strict=True)]
        elif preset == "finagent":
            gammas = [v for _, v, _ in triples]
        else:
            gammas = [sum(t) for t in triples]
        best = sorted(zip(gammas, [s.record.text for s in here], strict=True), reverse=True)[:4]
        assert [hit.record.text for hit in found[layer]] == [text for _, text in best]
        assert [hit.composite for hit in found[layer]] == pytest.approx([gamma for gamma, _ in best], rel=1e-9)
        assert [hit.rank for hit in found[layer]] == list(range(1, len(best) + 1))


def test_as_many_are_taken_as_is_asked_or_as_the_layer_says_or_the_preset() -> None:
    desk = filled(PRESETS["investorbench"].changed({"k": 2, "layers": {"shallow": {"k": 4}}}))
    layers = (Layer.SHALLOW, Layer.INTERMEDIATE, Layer.DEEP)
    for k, expected in ((None, [4, 2, 2]), (3, [3, 3, 3])):
        found = desk.recall("MSFT", {"": "query one"}, 40, k=k)
        assert [len(found[layer]) for layer in layers] == expected


def test_several_queries_are_united_by_id_and_keep_their_ranks() -> None:
    desk = filled("investorbench")
    alone = {asked: desk.recall("MSFT", {asked: text}, 40, k=3)[Layer.SHALLOW] for asked, text in QUERIES.items()}

    united = desk.recall("MSFT", QUERIES, 40, k=3)[Layer.SHALLOW]

    ids = [hit.record.id for hit in united]
    assert len(ids) == len(set(ids)) <= 9
    assert set(ids) == {hit.record.id for hits in alone.values() for hit in hits}
    for hit in united:
        asked = {(name, one.rank) for name, hits in alone.items() for one in hits if one.record.id == hit.record.id}
        assert set(hit.query_ranks) == asked
        assert hit.composite == max(
            one.composite for hits in alone.values() for one in hits if one.record.id == hit.record.id
        )
    assert [hit.composite for hit in united] == sorted((hit.composite for hit in united), reverse=True)


def test_of_equals_the_younger_comes_first() -> None:
    desk = memory("finagent", dict.fromkeys(("old", "new", "newer"), (1.0, 0.0)))
    for text, step in (("new", 2), ("newer", 3), ("old", 1)):
        desk.remember([news(text)], step)

    hits = desk.recall("MSFT", {"": "old"}, 3, k=2)[Layer.SHALLOW]

    assert [hit.record.text for hit in hits] == ["newer", "new"]


def test_the_desk_shows_what_is_alike_once() -> None:
    near = math.sqrt(1 - 0.96**2)
    vectors = {"first": (1.0, 0.0), "again": (0.96, near), "other": (0.9, -math.sqrt(1 - 0.81)), "today": (1.0, 0.0)}
    desk = memory("desk", vectors)
    ids = desk.remember([news("first"), news("again"), news("other")], 1)

    hits = desk.recall("MSFT", {"a": "today", "b": "today"}, 1, k=2)[Layer.SHALLOW]
    places = [placement(desk, name, "MSFT", {"a": "today", "b": "today"}, 1, k=2) for name in ids]

    assert [hit.record.text for hit in hits] == ["first", "other"]
    assert [place.reason for place in places] == [Reason.RECALLED, Reason.LIKE_ANOTHER, Reason.RECALLED]
    assert [[(one.rank, one.of) for one in place.ranks] for place in places] == [[(n, 3)] * 2 for n in (1, 2, 3)]
    assert places[1].like == ids[0]
    assert len(desk.scored_records(1)) == 3
    kept = memory("investorbench", vectors)
    kept.remember([news(text, importance=40.0) for text in ("first", "again", "other")], 1)
    assert len(kept.recall("MSFT", {"a": "today"}, 1, k=3)[Layer.SHALLOW]) == 3


def test_many_alike_do_not_crowd_out_the_others() -> None:
    vectors = {f"copy {n}": (1.0, n / 1000) for n in range(60)} | {"other": (0.5, 0.9), "today": (1.0, 0.0)}
    desk = memory("desk", vectors)
    desk.remember([news(f"copy {n}") for n in range(60)] + [news("other")], 1)

    hits = desk.recall("MSFT", {"": "today"}, 1, k=2)[Layer.SHALLOW]

    assert [hit.record.text for hit in hits] == ["copy 0", "other"]


def test_owners_and_symbols_keep_to_themselves_and_the_market_is_everybodys() -> None:
    desk = memory()
    desk.remember(
        [
            news("mine"),
            news("hers", owner="cautious"),
            news("of another symbol", symbol="HON"),
            Item(symbol=MARKET, kind="macro", text="claims fell"),
        ],
        1,
    )

    def texts(symbol: str, owner: str) -> set[str]:
        found = desk.recall(symbol, {"": "anything"}, 1, owner=owner)
        return {hit.record.text for hits in found.values() for hit in hits}

    assert texts("MSFT", "desk") == {"mine", "claims fell"}
    assert texts("MSFT", "cautious") == {"hers"}
    assert texts("HON", "desk") == {"of another symbol", "claims fell"}
    assert texts("JNJ", "nobody") == set()
    mine = next(record.id for record in desk.records() if record.text == "mine")
    assert placement(desk, mine, "MSFT", {"": "anything"}, 1, owner="cautious").reason is Reason.OTHER_OWNER
    assert placement(desk, mine, "HON", {"": "anything"}, 1).reason is Reason.OTHER_SYMBOL


def test_kinds_and_labels_narrow_a_recall() -> None:
    desk = memory()
    bull, _ = desk.remember([news("bull", labels=("bullish",)), news("bear", labels=("bearish",))], 1)
    desk.remember([news("lesson", kind="reflection"), news("comment", kind="debate")], 1)

    by_label = desk.recall("MSFT", {"bullish": "x", "bearish": "y"}, 1, labelled=True)[Layer.SHALLOW]
    assert {(hit.record.text, hit.query_ranks) for hit in by_label} == {
        ("bull", (("bullish", 1),)),
        ("bear", (("bearish", 1),)),
    }
    debates = desk.recall("MSFT", {"": "x"}, 1, kinds={"debate"})
    assert {layer: [hit.record.text for hit in hits] for layer, hits in debates.items() if hits} == {
        Layer.REFLECTION: ["comment"]
    }
    assert placement(desk, bull, "MSFT", {"": "x"}, 1, kinds={"debate"}).reason is Reason.OTHER_KIND
    assert placement(desk, bull, "MSFT", {"bearish": "y"}, 1, labelled=True).reason is Reason.OTHER_TYPES


@pytest.mark.parametrize("rows", [0, 1, 1023, 1024, 1025, 40_000])
def test_likeness_is_that_of_every_query_and_vector(rows: int) -> None:
    """Whatever the blocks and threads it is reckoned in."""
    chance = np.random.default_rng(rows)
    vectors = chance.normal(size=(rows, 8)).astype(np.float32)
    queries = chance.normal(size=(3, 8)).astype(np.float32)

    found = similarity(vectors, queries)

    assert found.shape == (3, rows)
    assert np.allclose(found, queries.astype(float) @ vectors.astype(float).T, atol=1e-4)


def test_without_a_query_what_is_recent_and_important_comes() -> None:
    desk = memory("investorbench")
    desk.remember([news("slight", importance=20.0), news("weighty", importance=90.0)], 1)

    hits = desk.recall("MSFT", {"news": "  "}, 1)[Layer.SHALLOW]

    assert [(hit.record.text, hit.relevancy) for hit in hits] == [("weighty", 0.0), ("slight", 0.0)]
    alike = memory("finagent")
    alike.remember([news("anything")], 1)
    assert alike.recall("MSFT", {}, 1)[Layer.SHALLOW] == ()
    assert placement(alike, alike.records()[0].id, "MSFT", {}, 1).reason is Reason.NO_QUERY


def test_nothing_written_later_is_recalled() -> None:
    desk = memory("investorbench")
    (early,) = desk.remember([news("early", importance=50.0)], 10)
    (planted,) = desk.remember([news("from the future", importance=100.0)], 12)
    desk.reinforce([early], 1, 12, "a later decision")

    for now in (10, 11, 11.99):
        hits = [hit for found in desk.recall("MSFT", {"": "x"}, now).values() for hit in found]
        assert [hit.record.id for hit in hits] == [early]
        assert hits[0].importance == pytest.approx(0.5 * 0.9 ** (now - 10))
    later = {hit.record.id for found in desk.recall("MSFT", {"": "x"}, 12).values() for hit in found}
    assert later == {early, planted}


def test_hindsight_waits_until_what_it_saw_has_closed() -> None:
    desk = memory()
    (name,) = desk.remember([news("tomorrow it rose", kind="reflection", seen_until=6.0)], 5)

    assert desk.record(name).hindsight
    assert desk.recall("MSFT", {"": "x"}, 5.9)[Layer.REFLECTION] == ()
    (hit,) = desk.recall("MSFT", {"": "x"}, 6)[Layer.REFLECTION]
    assert (hit.record.id, hit.record.born_step, hit.record.available_at) == (name, 5, 6)


def test_the_memory_of_an_old_day_is_what_it_was() -> None:
    desk = memory("investorbench")
    recalled, scored = {}, {}
    for day in range(1, 60):
        desk.sweep(day)
        names = desk.remember([news(f"news {day} {n}") for n in range(3)], day)
        recalled[day] = desk.recall("MSFT", {"": f"news {day} 0"}, day)
        scored[day] = desk.scored_records(day)
        # After the decision, within the same session.
        desk.remember([news(f"reflection {day}", kind="reflection")], day + 0.5)
        desk.reinforce(names[:1], 1, day + 0.5, f"reward {day}")

    for day in (1, 20, 45, 59):
        assert desk.recall("MSFT", {"": f"news {day} 0"}, day) == recalled[day]
        assert desk.scored_records(day) == scored[day]
    assert len(desk.scored_records(20.5)) > len(scored[20])


def test_a_lifeline_says_what_happened_and_why() -> None:
    desk = memory("investorbench")
    (name,) = desk.remember([news("weighty", importance=58.0, source="wire 7")], 1)
    desk.cite([name], 1, "decision 1")
    desk.reinforce([name], 1, 2, "decision 1")
    desk.reinforce([name], 1, 2, "decision 2")
    desk.sweep(200)

    line = desk.lifeline(name)

    # 58 x 0.9 + 5 + 5 = 62.2 at step 2, under the 60 of a promotion a day later, under 5 after 24 more.
    assert [(t.state.step, t.cause, t.key) for t in line] == [
        (1, Cause.BORN, "wire 7"),
        (1, Cause.CITED, "decision 1"),
        (2, Cause.PAID, "decision 1"),
        (2, Cause.PAID, "decision 2"),
        (26, Cause.PURGED, ""),
    ]
    assert line[-1].state.layer is None
    assert line[3].state.importance == pytest.approx(58 * 0.9 + 10)
    assert desk.record(name).text == "weighty"
    with pytest.raises(UnknownRecord, match="nonsense"):
        desk.lifeline("nonsense")


def test_writing_again_changes_nothing() -> None:
    desk = memory("finmem-code")

    def day() -> None:
        names = desk.remember([news("one"), news("two"), news("one")], 3)
        assert names[0] == names[2] != names[1]
        desk.cite(names, 3, "decision")
        desk.reinforce(names, 1, 3, "decision")

    day()
    once, lines = desk.scored_records(3), [desk.lifeline(record.id) for record in desk.records()]
    day()

    assert desk.scored_records(3) == once
    assert [desk.lifeline(record.id) for record in desk.records()] == lines
    (next_day,) = desk.remember([news("one")], 4)
    assert next_day not in {s.record.id for s in once}


def test_a_reward_is_for_the_living_and_an_abstention_for_nobody() -> None:
    desk = memory("investorbench")
    old, new = desk.remember([news("old", importance=6.0)], 1) + desk.remember([news("new")], 10)

    assert desk.reinforce([new], 0, 10, "held") == []
    assert [touch.record_id for touch in desk.reinforce([old, new], -1, 10, "sold")] == [new]
    with pytest.raises(UnknownRecord, match=r"bought.*made-up"):
        desk.reinforce([new, "made-up"], 1, 11, "bought")
    with pytest.raises(InvalidRecord):
        desk.reinforce([new], 2, 11, "bought")
    with pytest.raises(TimeOrder):
        desk.reinforce([new], 1, 9, "bought")


def test_of_a_batch_with_one_fault_nothing_is_written() -> None:
    class Broken(ChosenVectors):
        def embed(self, texts: object) -> np.ndarray:  # type: ignore[type-arg, override]
            rows = super().embed(texts)  # type: ignore[arg-type]
            rows[-1, 0] = np.nan
            return rows

    for fault, now, error in (
        (news("x", kind="rumour"), 1.0, UnknownPreset),
        (news("x", kind="10K"), 1.0, UnknownPreset),
        (news("x", rating=1.5), 1.0, InvalidRecord),
        (news("x", importance=math.nan), 1.0, InvalidRecord),
        (news("x", symbol=""), 1.0, InvalidRecord),
        (news("x"), math.nan, InvalidRecord),
    ):
        desk = memory()
        with pytest.raises(error):
            desk.remember([news("good"), fault], now)
        assert desk.scored_records(1) == [] and desk.records() == []
    broken = LayeredMemory(InMemoryStore(8), Broken(), "desk")
    with pytest.raises(InvalidRecord):
        broken.remember([news("good"), news("bad")], 1)
    with pytest.raises(InvalidRecord):
        broken.recall("MSFT", {"": "x"}, 1)
    with pytest.raises(InvalidRecord):
        LayeredMemory(InMemoryStore(8), ChosenVectors(dimension=4), "desk").remember([news("good")], 1)

    class Short(ChosenVectors):
        def embed(self, texts: object) -> np.ndarray:  # type: ignore[type-arg, override]
            return super().embed(texts)[:0]  # type: ignore[arg-type]

    with pytest.raises(EmbedderUnavailable):
        LayeredMemory(InMemoryStore(8), Short(), "desk").remember([news("good")], 1)


def test_a_store_is_opened_with_a_preset_that_has_its_layers() -> None:
    store = InMemoryStore(8)
    LayeredMemory(store, ChosenVectors(), "desk").remember([news("report", kind="10-K")], 1)

    with pytest.raises(UnknownPreset, match=r"deep.*finagent"):
        LayeredMemory(store, ChosenVectors(), "finagent")
    with pytest.raises(UnknownPreset, match=r"finmem.*finmem-code"):
        LayeredMemory(store, ChosenVectors(), "finmem")


def test_a_weighty_item_stands_deeper_and_a_filing_stays_in_the_layer_of_its_birth() -> None:
    desk = memory()
    names = desk.remember(
        [news("plain"), news("weighty", rating=0.85), news("grave", rating=1.0), news("report", kind="10-K")], 1
    )

    assert [desk.record(name).birth_layer for name in names] == [
        Layer.SHALLOW,
        Layer.INTERMEDIATE,
        Layer.DEEP,
        Layer.DEEP,
    ]
    assert [desk.record(name).importance for name in names[:3]] == [50, 71, 80]
    for n in range(20):
        desk.reinforce(names[2:], -1, 1 + n, f"cost {n}")
    layers = {s.record.text: s.layer for s in desk.scored_records(22)}
    assert "grave" not in layers  # sank, and faded there
    desk.reinforce(names[3:], 1, 22, "paid")
    assert all(t.state.layer in (Layer.DEEP, None) for t in desk.lifeline(names[3]))


def test_with_hysteresis_a_promotion_lasts() -> None:
    desk = memory()
    (name,) = desk.remember([news("paid twice", importance=25.0)], 1)
    desk.reinforce([name], 1, 2, "first")
    desk.reinforce([name], 1, 3, "second")
    desk.sweep(300)

    moves = [(t.cause, t.state.step) for t in desk.lifeline(name) if not t.key]
    assert [cause for cause, _ in moves[1:]] == [Cause.PROMOTED, Cause.DEMOTED, Cause.PURGED]
    promoted, demoted, _ = (step for _, step in moves[1:])
    assert promoted == 4
    assert demoted - promoted > 20


@pytest.mark.parametrize(
    ("preset", "labelled"),
    [
        ("finagent", True),
        pytest.param("desk", True, marks=pytest.mark.slow),
        *(pytest.param(preset, False, marks=() if preset == "desk" else pytest.mark.slow) for preset in PRESETS),
    ],
)
def test_many_are_ranked_as_few_are(monkeypatch: pytest.MonkeyPatch, preset: str, labelled: bool) -> None:
    """What an outline leaves out is not among the first: with and without one, the same is recalled every day."""
    embedder = HashEmbedder()
    asked = {f"type {n}": text for n, text in enumerate(texts(3, seed=8))}

    def lived(*, outlined: bool) -> list[object]:
        monkeypatch.setattr(partition, "PROJECT_FROM", 20 if outlined else 10**9)
        for module, name, few in (
            (projection, "BLOCK", 16),
            (search, "_HEAD", 1),
            (search, "_AT_ONCE", 2),
            (search, "_BATCH", 8),
        ):
            monkeypatch.setattr(module, name, few)
        desk = LayeredMemory(InMemoryStore(embedder.dimension), embedder, preset)
        made, chance = texts(480, seed=7), random.Random(preset)
        seen: list[object] = []
        for day in range(1, 9):
            desk.sweep(day)
            kinds = chance.choices(("news", "10-Q", "10-K", "reflection"), (6, 2, 1, 1), k=60)
            items = [
                Item(
                    symbol="MSFT" if n % 5 else MARKET,
                    kind=kind,
                    text=next(made),
                    source=str(n),
                    labels=(f"type {n % 2}", "x"),
                )
                for n, kind in enumerate(kinds)
            ]
            names = desk.remember(items, day)
            desk.reinforce(names[:9], chance.choice((1, -1)), day, "decision")
            seen.append(desk.recall("MSFT", asked, day, labelled=labelled))
            seen.append(desk.recall("MSFT", asked, day, kinds=("10-K",)))
        return seen

    assert lived(outlined=True) == lived(outlined=False)


def test_of_thousands_that_are_alike_one_is_recalled_without_a_table_of_every_two() -> None:
    alike = [f"the same again, number {n}" for n in range(2000)]
    desk = memory(vectors={text: [1.0] for text in alike})
    desk.remember([news(text) for text in alike], 1)
    tracemalloc.start()
    try:
        found = desk.recall("MSFT", {"": "the same again"}, 2)
        assert [len(hits) for hits in found.values()] == [1, 0, 0, 0]
        assert tracemalloc.get_traced_memory()[1] < 8 * len(alike) ** 2
    finally:
        tracemalloc.stop()
