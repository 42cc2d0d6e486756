"""A copy of a memory as it was at a step: what was dated later, or written too late to be known, is not in it."""

from __future__ import annotations

from memory.embedders import HashEmbedder
from memory.in_memory_store import InMemoryStore
from memory.recall import LayeredMemory
from memory.record import Item

AFTER = 2**-10


def fresh() -> LayeredMemory:
    embedder = HashEmbedder()
    return LayeredMemory(InMemoryStore(embedder.dimension), embedder, "desk")


def past(memory: LayeredMemory, step: int) -> LayeredMemory:
    return memory.copy_to(InMemoryStore(memory.embedder.dimension), step)


def item(text: str, **more: object) -> Item:
    return Item(symbol="AAA", kind="news", text=text, rating=0.5, **more)  # type: ignore[arg-type]


def test_a_past_copy_recalls_to_the_last_bit_what_was_recalled_then() -> None:
    memory = fresh()
    then = {}
    for step in range(1, 40):
        memory.sweep(step)
        asked = {"all": f"orders and margin of the quarter, item {step % 7}"}
        then[step] = (asked, memory.recall("AAA", asked, step))
        memory.remember([item(f"item {step}: margin and orders rose by {step % 5} points")], step + AFTER)
        cited = [hit.record.id for hits in then[step][1].values() for hit in hits][:2]
        memory.cite(cited, step, f"decision {step}")
        memory.reinforce(cited, 1 if step % 3 else -1, step + 1, f"decision {step}")
    assert any(hits for _, found in then.values() for hits in found.values())
    for step, (asked, found) in then.items():
        copy = past(memory, step)
        copy.sweep(step)
        assert copy.recall("AAA", asked, step) == found
    assert len(memory.records()) == 39


def test_a_reward_that_was_written_after_a_later_day_was_not_known_on_the_earlier() -> None:
    memory = fresh()
    (early,) = memory.remember([item("a first large order")], 1)
    memory.reinforce([early], 1, 2, "known in time")
    memory.remember([item("another story")], 3 + AFTER)
    memory.reinforce([early], -1, 3, "settled late")
    assert [touch.key for touch in past(memory, 3).lifeline(early)][1:] == ["known in time"]
    assert [touch.key for touch in past(memory, 4).lifeline(early)][1:] == ["known in time", "settled late"]


def test_what_is_written_into_a_past_copy_is_not_in_the_memory() -> None:
    memory = fresh()
    memory.remember([item("a first large order")], 1)
    copy = past(memory, 2)
    copy.remember([item("what never was")], 2 + AFTER)
    assert len(copy.records()) == 2
    assert [record.text for record in memory.records()] == ["a first large order"]
    assert past(memory, 0).records() == []


def test_a_lesson_of_hindsight_is_carried_and_stays_closed_until_its_day() -> None:
    memory = fresh()
    lesson = Item(symbol="AAA", kind="low-level-reflection", text="the rise went on for three sessions", seen_until=6)
    memory.remember([lesson], 2 + AFTER)
    asked = {"lessons": "the rise went on"}
    for step, seen in ((3, 0), (5, 0), (6, 1)):
        found = past(memory, step).recall("AAA", asked, step, kinds=("low-level-reflection",))
        assert sum(len(hits) for hits in found.values()) == seen
