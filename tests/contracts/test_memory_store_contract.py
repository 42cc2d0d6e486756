"""What holds for every store of memories; a new adapter adds one line to STORES."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from memory.errors import InvalidRecord
from memory.in_memory_store import InMemoryStore
from memory.lancedb_store import LanceStore
from memory.ports import Store
from memory.recall import LayeredMemory
from memory.record import Cause, Item, Layer, MemoryRecord, State, Touch
from memory.reembed import reembed
from tests.memory.chosen_vectors import ChosenVectors

EMBEDDER = ChosenVectors()

STORES: dict[str, Callable[[Path], Store]] = {
    "volatile": lambda folder: InMemoryStore(EMBEDDER.dimension),
    "lancedb": lambda folder: LanceStore(folder, EMBEDDER, writing=True),
}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made = STORES[request.param](tmp_path / "memory")
    yield made
    made.close()


def record(name: str, sequence: int, text: str = "a text") -> MemoryRecord:
    return MemoryRecord(
        id=name,
        owner="desk",
        symbol="MSFT",
        kind="news",
        text=text,
        query_text="what it is about",
        source="wire",
        born_step=3.25,
        available_at=4.0,
        hindsight=True,
        birth_layer=Layer.INTERMEDIATE,
        importance=60.5,
        rests_on=("x", "y"),
        labels=("bullish",),
        vector=EMBEDDER.embed([text])[0],
        sequence=sequence,
    )


def touch(name: str, sequence: int, step: float = 5.0, layer: Layer | None = Layer.DEEP, key: str = "") -> Touch:
    return Touch(
        name,
        Cause.PROMOTED,
        State(step=step, layer=layer, importance=71.5, importance_step=step, recency_step=step, access_count=-2),
        key,
        sequence,
    )


def test_a_new_store_is_empty_and_writable(store: Store) -> None:
    assert store.writable
    assert store.records() == [] and store.touches() == []
    assert store.record("none") is None
    assert store.touches("none") == []


def test_what_was_written_is_read(store: Store) -> None:
    odd = record("b", 2, "O'Neill: \u201cquoted\u201d, \U0001f4c8 and\na second line")
    store.append_records([record("a", 1), odd])
    store.append_touches([touch("a", 3), touch("b", 4, layer=None), touch("a", 5, 6.5, key="decision 'one'")])

    assert store.records() == [record("a", 1), odd]
    assert [r.sequence for r in store.records()] == [1, 2]
    assert np.array_equal(store.records()[1].vector, odd.vector)
    assert store.record("b") == odd and store.record("a'b") is None
    assert [(t.record_id, t.sequence) for t in store.touches()] == [("a", 3), ("b", 4), ("a", 5)]
    assert store.touches("a") == [touch("a", 3), touch("a", 5, 6.5, key="decision 'one'")]
    assert store.touches("b")[0].state.layer is None


def test_writing_again_is_harmless(store: Store) -> None:
    for _ in range(2):
        store.append_records([record("a", 1), record("a", 1), record("b", 2)])
        store.append_touches([touch("a", 3), touch("a", 3), touch("a", 4, key="other")])
        store.append_records([])
        store.append_touches([])

    assert [r.id for r in store.records()] == ["a", "b"]
    assert [t.sequence for t in store.touches()] == [3, 4]


def test_the_version_grows_with_every_change(store: Store) -> None:
    versions = [store.version]
    store.append_records([record("a", 1)])
    versions.append(store.version)
    store.append_touches([touch("a", 2)])
    versions.append(store.version)

    assert versions == sorted(set(versions))


def test_a_vector_of_another_size_is_refused_and_nothing_written(store: Store) -> None:
    wrong = replace(record("b", 2), vector=np.ones(3, np.float32))

    with pytest.raises(InvalidRecord, match="has 3 numbers, the store's have 8"):
        store.append_records([record("a", 1), wrong])
    assert store.records() == []


def test_optimizing_loses_nothing(store: Store) -> None:
    for n in range(30):
        store.append_records([record(f"r{n}", 2 * n)])
        store.append_touches([touch(f"r{n}", 2 * n + 1)])
    records, touches = store.records(), store.touches()

    report = store.optimize()

    assert (report.records, report.touches) == (30, 30)
    assert store.records() == records and store.touches() == touches
    assert not store.needs_compaction
    store.append_records([record("after", 100)])
    assert store.records()[-1].id == "after"


def story(memory: LayeredMemory, days: range, seed: int = 5) -> None:
    """Days of a desk: news, filings, rewards, citations."""
    for day in days:
        chance = random.Random(f"{seed} {day}")
        memory.sweep(day)
        kinds = [chance.choice(("news", "news", "10-Q", "10-K", "reflection")) for _ in range(4)]
        names = memory.remember(
            [Item(symbol="MSFT", kind=kind, text=f"{kind} {day} {n}") for n, kind in enumerate(kinds)], day
        )
        known = [scored.record.id for scored in memory.scored_records(day)]
        memory.cite(names[:1], day + 0.5, f"decision {day}")
        memory.reinforce(chance.sample(known, min(3, len(known))), chance.choice((1, -1)), day + 0.5, f"reward {day}")


def test_a_memory_over_it_lives_as_over_any_other(store: Store) -> None:
    ours = LayeredMemory(store, EMBEDDER, "finmem-code")
    other = LayeredMemory(InMemoryStore(EMBEDDER.dimension), EMBEDDER, "finmem-code")
    story(ours, range(1, 15))
    story(other, range(1, 40))

    # Another process goes on from what is there.
    again = LayeredMemory(store, EMBEDDER, "finmem-code")
    story(again, range(15, 40))

    assert len(again.records()) == len(other.records())
    assert again.scored_records(39.5) == other.scored_records(39.5)
    queries = {"a": "news 38 1", "b": "annual"}
    assert again.recall("MSFT", queries, 39.5) == other.recall("MSFT", queries, 39.5)
    assert again.scored_records(20.5) == other.scored_records(20.5)
    for scored in other.scored_records(39.5):
        assert again.lifeline(scored.record.id) == other.lifeline(scored.record.id)


def test_it_can_be_embedded_anew(store: Store) -> None:
    desk = LayeredMemory(store, EMBEDDER, "desk")
    story(desk, range(1, 12))
    wider = ChosenVectors(dimension=12)
    target = InMemoryStore(12)

    assert reembed(store, target, wider) == len(store.records())

    anew = LayeredMemory(target, wider, "desk")
    assert anew.scored_records(12) == desk.scored_records(12)
    name = desk.scored_records(12)[0].record.id
    assert anew.lifeline(name) == desk.lifeline(name)
    assert len(anew.record(name).vector) == 12
