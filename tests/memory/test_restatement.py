"""A reflection that says what an earlier one said touches it; one with other figures, or of another kind, is new."""

from __future__ import annotations

import pytest

from memory.embedders import HashEmbedder
from memory.in_memory_store import InMemoryStore
from memory.recall import LayeredMemory
from memory.record import Cause, Item

SAID = "Two of five sessions earned 1.4 %: the desk sold in every dip and bought back above it, do less of that."


def lesson(text: str, kind: str = "reflection", **changes: object) -> Item:
    return Item(**{"symbol": "MSFT", "kind": kind, "text": text, "source": f"of {text[:3]}"} | changes)  # type: ignore[arg-type]


def opened(preset: str = "investorbench") -> LayeredMemory:
    return LayeredMemory(InMemoryStore(384), HashEmbedder(), preset)


@pytest.mark.parametrize(
    ("later", "again"),
    [
        (lesson(SAID), True),
        (lesson(SAID.replace("that.", "it.")), True),
        (lesson(SAID, query_text="what is asked for has no part in it"), True),
        (lesson(SAID.replace("1.4", "1.5")), False),
        (lesson("Quarterly sales rose 1.4 %, and nobody had expected it.", query_text=SAID), False),
        (lesson(SAID, kind="extended-reflection"), False),
        (lesson(SAID, owner="bull"), False),
        (lesson(SAID, symbol="JNJ"), False),
        (lesson(SAID, seen_until=9), False),
        (lesson(SAID, kind="news"), False),
    ],
)
def test_what_is_said_again(later: Item, again: bool) -> None:
    desk = opened()
    desk.remember([lesson(SAID)], 1)
    (first,) = desk.remember([lesson(SAID)], 1)

    assert (desk.remember([later], 5) == [first]) == again
    assert len(desk.records()) == (1 if again else 2)
    assert [t.cause for t in desk.lifeline(first)] == [Cause.BORN, *([Cause.RESTATED] if again else [])]
    assert desk.remember([later], 5) == desk.remember([later], 5)
    assert len(desk.records()) + len(desk.lifeline(first)) == 3


def test_what_is_said_again_is_recent_and_as_important_as_it_was() -> None:
    desk, silent = opened(), opened()
    for memory in (desk, silent):
        memory.remember([lesson(SAID)], 1)
    desk.remember([lesson(SAID)], 30)
    ((one,), (other,)) = (memory.scored_records(31) for memory in (desk, silent))

    assert one.recency > other.recency and one.importance == pytest.approx(other.importance)


def test_what_is_forgotten_is_said_anew() -> None:
    desk = opened()
    (first,) = desk.remember([lesson(SAID)], 1)
    (second,) = desk.remember([lesson(SAID)], 400)

    assert second != first and [one.record.id for one in desk.scored_records(400)] == [second]


def test_the_authors_program_stores_everything() -> None:
    desk = opened("finmem-code")
    desk.remember([lesson(SAID)], 1)
    desk.remember([lesson(SAID)], 2)
    assert len(desk.records()) == 2
