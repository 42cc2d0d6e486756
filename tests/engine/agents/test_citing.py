"""Nothing is cited but what was shown, and memories are shown by layer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.agents.agent import by_layer, check_cited, cited_ids, recollection_line
from tests.engine.agents.evidence_samples import MEMORIES, recollection

IDS = st.lists(st.sampled_from(["a", "b", "c", "d", "e"]), max_size=7)


@given(IDS, IDS)
def test_citing_passes_for_known_ids_each_once_and_for_nothing_else(cited: list[str], known: list[str]) -> None:
    if set(cited) <= set(known) and len(cited) == len(set(cited)):
        check_cited(cited, known, "evidence")
    else:
        with pytest.raises(ValueError, match=r"^evidence names ids "):
            check_cited(cited, known, "evidence")


def test_strangers_are_named_before_repeats() -> None:
    with pytest.raises(ValueError, match=r"not given: x, y$"):
        check_cited(["y", "a", "a", "x"], ["a"], "evidence")


def test_layers_come_in_their_order_with_memories_in_theirs() -> None:
    odd = recollection("o", "text", "other")
    layers = by_layer((odd, *reversed(MEMORIES)))
    assert list(layers) == ["shallow", "intermediate", "deep", "reflection", "other"]
    assert [memory.id for memory in layers["shallow"]] == ["n2", "n1"]
    assert by_layer(()) == {}


def test_handles_mean_the_memories_that_were_shown() -> None:
    assert [memory.handle for memory in MEMORIES] == ["S1", "S2", "I1", "D1", "R1"]
    assert cited_ids(["D1", "S2"], MEMORIES) == ("k1", "n2") and cited_ids([], MEMORIES) == ()


def test_a_memory_is_told_on_one_bounded_line() -> None:
    memory = recollection("id", "Line\none " + "word " * 2_000, kind="10-Q", rank=7)
    line = recollection_line(memory)
    assert (
        line.startswith("[S7] 2023-05-22 10-Q: Line one word")
        and 7_900 < len(line) < 8_040
        and line.endswith(" characters)")
    )
