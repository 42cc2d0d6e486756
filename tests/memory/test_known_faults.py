"""The known faults of the authors' programs: each check holds for our rule and fails for theirs, written out here."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence

import pytest

from memory.errors import InvalidRecord
from memory.lifecycle import advance
from memory.presets import PRESETS, preset_named
from memory.recall import LayeredMemory
from memory.record import Item, Layer, State, id_of
from tests.memory.chosen_vectors import memory, news

Check = Callable[..., None]


def fails(check: Check, faulty: object) -> None:
    """The check tells the faulty rule from ours."""
    with pytest.raises(AssertionError):
        check(faulty)


ABOUT = {
    "recall of cars": (1.0, 0.0, 0.0),
    "new factory": (0.0, 1.0, 0.0),
    "cars today": (0.9, 0.1, 0.0),
    "factory today": (0.1, 0.9, 0.0),
    "a cautious trader": (0.5, 0.5, 0.7),
}


def test_a_query_is_what_is_known_today() -> None:
    """Fault: the same words, the character's, were asked every day, so relevancy never told one day from another."""
    Ask = Callable[[str], str]

    def check(ask: Ask) -> None:
        desk = memory("investorbench", ABOUT)
        desk.remember([news("recall of cars", importance=40.0), news("new factory", importance=40.0)], 1)
        first = {
            today: desk.recall("MSFT", {"news": ask(today)}, 1, k=1)[Layer.SHALLOW][0].record.text
            for today in ("cars today", "factory today")
        }
        assert first == {"cars today": "recall of cars", "factory today": "new factory"}

    check(lambda today: today)
    fails(check, lambda today: "a cautious trader")


def _composites(desk: LayeredMemory, now: float) -> dict[str, tuple[float, float]]:
    """Text to (relevancy, recency + importance) of the shallow layer, ranked whole."""
    hits = desk.recall("MSFT", {"news": "cars today"}, now, k=100)[Layer.SHALLOW]
    return {hit.record.text: (hit.relevancy, hit.recency + hit.importance) for hit in hits}


def test_the_strongest_of_all_are_candidates() -> None:
    """Fault: the second list of candidates, by recency and importance, was read from the wrong end."""
    vectors = {f"alike {n}": (0.90 - n / 100, 0.43, 0.0) for n in range(3)} | {"cars today": (1.0, 0.0, 0.0)}
    vectors |= {"unlike and weighty": (0.7, 0.7, 0.0), "unlike and slight": (0.69, 0.72, 0.0)}
    desk = memory("investorbench", vectors)
    desk.remember([news(text, importance=20.0) for text in vectors if text.startswith("alike")], 1)
    desk.remember([news("unlike and weighty", importance=95.0), news("unlike and slight", importance=6.0)], 1)
    scores = _composites(desk, 1)

    def check(recall: Callable[[int], Sequence[str]]) -> None:
        whole = sorted(scores, key=lambda text: -sum(scores[text]))
        assert list(recall(1)) == whole[:1] == ["unlike and weighty"]

    def ours(k: int) -> Sequence[str]:
        return [hit.record.text for hit in desk.recall("MSFT", {"": "cars today"}, 1, k=k)[Layer.SHALLOW]]

    def faulty(k: int) -> Sequence[str]:
        by_likeness = sorted(scores, key=lambda text: -scores[text][0])[:k]
        by_strength = sorted(scores, key=lambda text: scores[text][1])[:k]  # ascending: the weakest
        return sorted({*by_likeness, *by_strength}, key=lambda text: -sum(scores[text]))[:k]

    check(ours)
    fails(check, faulty)


def test_the_best_comes_first() -> None:
    """Fault: doubles were taken out by sorting ids, and the order of scores was lost with them."""
    vectors = {f"news {n}": (math.cos(n / 20), math.sin(n / 20), 0.0) for n in range(12)} | {"today": (1.0, 0.0, 0.0)}
    desk = memory("investorbench", vectors)
    desk.remember([news(f"news {n}", importance=40.0) for n in range(12)], 1)

    def check(unite: Callable[[Sequence[str]], Sequence[str]]) -> None:
        hits = desk.recall("MSFT", {"a": "today", "b": "today"}, 1, k=12)[Layer.SHALLOW]
        texts = {hit.record.id: hit.record.text for hit in hits}
        assert [texts[name] for name in unite(list(texts))] == [f"news {n}" for n in range(12)]
        assert [hit.rank for hit in hits] == list(range(1, 13))

    check(lambda ids: ids)
    fails(check, sorted)


def test_a_reward_moves_a_memory_up_the_ranking() -> None:
    """Fault: scores were changed inside a container sorted by them, so its order no longer was that of the scores."""
    names = [f"news {n}" for n in range(6)]

    class Sorted:
        """What theirs did: sorted once, by a key that changes afterwards."""

        def __init__(self) -> None:
            self.rows: list[list[object]] = []

        def order(self) -> list[str]:
            for n, name in enumerate(names):
                bisect.insort(self.rows, [40.0 + n, name], key=lambda row: row[0])
            for row in self.rows:
                if row[1] in ("news 0", "news 1"):
                    row[0] = float(str(row[0])) + 50
            return [str(row[1]) for row in reversed(self.rows)][:2]

    class Ours:
        def order(self) -> list[str]:
            desk = memory("investorbench", dict.fromkeys(names, (1.0, 0.0)))
            ids = desk.remember([news(name, importance=40.0 + n) for n, name in enumerate(names)], 1)
            for n in range(10):
                desk.reinforce(ids[:2], 1, 1, f"decision {n}")
            return [hit.record.text for hit in desk.recall("MSFT", {"": "news 0"}, 1, k=2)[Layer.SHALLOW]]

    def check(kind: type[Sorted] | type[Ours]) -> None:
        assert kind().order() == ["news 1", "news 0"]

    check(Ours)
    fails(check, Sorted)


def test_recency_is_that_of_the_new_layer_on_the_day_of_a_demotion() -> None:
    """Fault: after a demotion recency stayed that of the deeper layer for a day, and with it what had long faded."""
    preset = preset_named("finmem-code")
    born = State(
        step=0, layer=Layer.DEEP, importance=80.0, importance_step=0, recency_step=0
    )  # sinks to mid on day 1 and would to short on day 10

    def check(last_day: Callable[[], float]) -> None:
        # Ten days old and of a layer with Q = 3: exp(-10 / 3) = 0.036 is under 0.05, so it goes on that very day.
        assert last_day() == 10

    def ours() -> float:
        changes, _ = advance(preset, born, 100)
        return changes[-1][1].step

    def faulty() -> float:
        layer, importance, age, recency = "long", 80.0, 0, 1.0
        stability, alpha = {"short": 3, "mid": 90, "long": 365}, {"short": 0.92, "mid": 0.967, "long": 0.988}
        for day in range(1, 100):
            age, importance = age + 1, importance * alpha[layer]
            recency = math.exp(-age / stability[layer])
            if recency < 0.05 or importance < 5:
                return day
            if layer == "long" and importance < 80:
                layer = "mid"  # recency is not reckoned anew
            elif layer == "mid" and importance < 60:
                layer = "short"
        return math.inf

    check(ours)
    fails(check, faulty)


@pytest.mark.parametrize("preset", [name for name in PRESETS if name != "finagent"])
def test_every_kind_of_source_reaches_its_layer(preset: str) -> None:
    """Fault: only news ever reached the layers; filings, macro and reflections were read and dropped."""
    wanted = {
        "news": Layer.SHALLOW,
        "10-Q": Layer.INTERMEDIATE,
        "10-K": Layer.DEEP,
        "macro": Layer.DEEP,
        "reflection": Layer.REFLECTION,
    }

    def check(kept: Callable[[str], bool]) -> None:
        desk = memory(preset)
        desk.remember([Item(symbol="MSFT", kind=kind, text=f"about {kind}") for kind in wanted if kept(kind)], 1)
        found = desk.recall("MSFT", {"": "about"}, 1)
        assert {hit.record.kind: layer for layer, hits in found.items() for hit in hits} == wanted

    check(lambda kind: True)
    fails(check, lambda kind: kind == "news")


def test_two_memories_of_one_moment_are_two() -> None:
    """Fault: memories were keyed by the second of the wall clock, and items of one second overwrote each other."""
    items = [news(f"item {n} of this second") for n in range(20)]

    def check(key: Callable[[Item], str]) -> None:
        kept = {key(item): item for item in items}
        assert sorted(item.text for item in kept.values()) == sorted(item.text for item in items)

    check(lambda item: id_of(item, 7.0))
    fails(check, lambda item: "2024-06-03 16:00:00")

    desk = memory()
    assert len(set(desk.remember(items, 7))) == 20
    assert len(desk.scored_records(7)) == 20


@pytest.mark.parametrize("failed", ["", "  \n", "\u2003"])
def test_an_answer_that_failed_is_not_remembered(failed: str) -> None:
    """Fault: an error message was stored as a reflection. Ours has no text for a failure, and refuses to store none."""

    def check(reflect: Callable[[], str]) -> None:
        desk = memory()
        with pytest.raises(InvalidRecord):
            desk.remember([news("kept out with it"), news(reflect(), kind="reflection")], 1)
        assert desk.scored_records(1) == []

    check(lambda: failed)
    with pytest.raises(pytest.fail.Exception):
        check(lambda: "Error: the model did not answer")
