"""Rules for past intelligence, and the leaning of memories layer by layer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from engine.agents.agent import by_layer, plain, shown_text
from engine.agents.character import NO_TRAITS, Traits
from engine.agents.past import PastView
from engine.domain.decision import INSIGHT, Recollection
from engine.domain.text import counted
from engine.offline.reading import TAKES_SIDE, Reading, clean, ended, main_sentence, read, read_figure

LIFETIME_DAYS: Mapping[str, int] = {"shallow": 30, "intermediate": 180, "deep": 550, "reflection": 365}
"""Days after which a memory of a layer is outdated: about twice what its layer keeps fresh, a filing until two more
of its kind were due."""
FILINGS = ("10-Q", "10-K")
QUOTED = 5
_QUOTATION = re.compile(r'"[^"]*"')


def summarize(view: PastView) -> Mapping[str, Any]:
    """Answer as a PastSummary, as plain JSON."""
    memories = list({memory.id: memory for memory in view.recollections}.values())
    newest = {kind: max((m.session for m in memories if m.kind == kind), default=view.session) for kind in FILINGS}
    valid = [memory for memory in memories if not _outdated(memory, view.session, newest)]
    old = [memory.handle for memory in memories if memory not in valid]
    return {
        "summary": "\n".join(_summary(view, memories, valid)),
        "still_valid": [memory.handle for memory in valid],
        "outdated": old,
    }


def read_memory(memory: Recollection) -> Reading:
    """The reading of a memory's text. Quotations in the owner's reflections are left out: the events of a case are not
    its lesson."""
    if memory.kind == "price":  # what the price did then speaks neither for nor against it now
        return read("")
    text = shown_text(memory)
    if _source(memory) == "macro":
        return read_figure(text)
    return read(_QUOTATION.sub("", text) if is_reflection(memory) else text)


def is_reflection(memory: Recollection) -> bool:
    """True for a reflection of the owner, which may be in any layer."""
    return memory.layer == "reflection" or memory.kind.endswith("reflection")


def memory_sentence(memory: Recollection, limit: int = 280) -> str:
    """A memory in a sentence: its strongest one; of a reflection the beginning, which is the lesson."""
    text = shown_text(memory)
    return clean(text, limit) if is_reflection(memory) else main_sentence(read(text), limit)


def _outdated(memory: Recollection, today: date, newest: Mapping[str, date]) -> bool:
    """True for a filing with a newer one of its kind, and for any memory past its lifetime."""
    if memory.kind in newest and memory.session < newest[memory.kind]:
        return True
    return (today - memory.session).days > LIFETIME_DAYS.get(memory.layer, LIFETIME_DAYS["shallow"])


def _summary(view: PastView, memories: Sequence[Recollection], valid: Sequence[Recollection]) -> Iterator[str]:
    if not memories:
        yield f"Memory holds nothing that resembles today's events for {view.symbol}."
        return
    sides = [read_memory(memory).side for memory in valid]
    good, bad = sum(side > 0 for side in sides), sum(side < 0 for side in sides)
    first, last = min(m.session for m in memories), max(m.session for m in memories)
    yield (
        f"{len(valid)} of {counted(len(memories), 'memory', 'memories')} still hold: {good} for {view.symbol}, "
        f"{bad} against it, from {first} to {last}."
    )
    for memory in _best_of_each_layer(valid):
        if sentence := memory_sentence(memory):
            yield f"{memory.session}, {plain(memory.kind, 40)}: {ended(sentence)}"


def _best_of_each_layer(valid: Sequence[Recollection]) -> list[Recollection]:
    """The best of each layer, then the second best of each, so that every layer is quoted."""
    layers = list(by_layer(valid).values())
    deepest = max(map(len, layers), default=0)
    return [rows[place] for place in range(deepest) for rows in layers if place < len(rows)][:QUOTED]


LAYER_WEIGHT: Mapping[str, float] = {"shallow": 1.0, "intermediate": 1.5, "deep": 1.5, "reflection": 1.0}
USUAL = 0.4
"""Mean worth of news and filings (0.36 to 0.49 over four real feeds): companies write favourably about themselves, so
only praise that exceeds it counts. The owner's reflections and macro releases have no such bias."""
LEANS = 0.5
"""Smallest sum over the layers at which the memories together take a side: two layers with the tilt of a usual feed
(0.13 to 0.27 over five real ones) stay below."""


@dataclass(frozen=True, slots=True)
class LayerLeaning:
    """A layer's memories in the order of recall with the worth of each, from -1 to 1; `lean` is the mean tilt of its
    texts, to which one that takes no side adds nothing. Past moves of the price are no texts about the asset."""

    layer: str
    rows: tuple[tuple[Recollection, float], ...]

    @property
    def lean(self) -> float:
        tilts = [_tilt(memory, worth) for memory, worth in self.rows if memory.kind != "price"]
        return sum(tilts) / len(tilts) if tilts else 0.0

    @property
    def weighed(self) -> float:
        """The lean by the layer's weight."""
        return LAYER_WEIGHT.get(self.layer, 1.0) * self.lean

    @property
    def events(self) -> Sequence[tuple[float, float]]:
        """The weight and the tilt of each event: the memory's score by the layer's weight, and the worth of its text.
        The owner's own reflections are no events: they repeat what they have read."""
        weight = LAYER_WEIGHT.get(self.layer, 1.0)
        return [(weight * max(0.0, m.score), _tilt(m, worth)) for m, worth in self.rows if _is_event(m)]

    def preferences(self, traits: Traits) -> Sequence[float]:
        """The weight that a character gives to the kind of each event, in their order."""
        return [preference(memory, traits) for memory, _ in self.rows if _is_event(memory)]

    def strongest(self, direction: int, count: int) -> list[Recollection]:
        """Up to so many memories of a direction, the strongest first; with direction 0 the strongest of either."""
        fit = [(m, worth) for m, worth in self.rows if worth and (worth * direction > 0 or not direction)]
        return [memory for memory, _ in sorted(fit, key=lambda pair: -abs(pair[1]))[:count]]


def _is_event(memory: Recollection) -> bool:
    return memory.kind != "price" and not is_reflection(memory)


def _tilt(memory: Recollection, worth: float) -> float:
    return worth if unbiased(memory) else _beyond_usual(worth)


def _beyond_usual(worth: float) -> float:
    """The tilt of a text that praise is usual in: criticism counts in full, praise as far as it exceeds what is usual,
    and a text that takes no side for nothing."""
    return worth if worth <= -TAKES_SIDE else max(0.0, worth - USUAL) / (1 - USUAL)


def tone(layers: Iterable[LayerLeaning], traits: Traits = NO_TRAITS) -> float:
    """The mean tilt of the recalled events by their weight, from -1 to 1; 0 without any. Evidence counts as a character
    prefers it."""
    events = [
        (weight * abs(preferred), tilt if preferred >= 0 else -tilt)
        for layer in layers
        for (weight, tilt), preferred in zip(layer.events, layer.preferences(traits), strict=True)
    ]
    weights = sum(weight for weight, _ in events)
    return sum(weight * tilt for weight, tilt in events) / weights if weights else 0.0


_FILINGS = ("8-K", "10-Q", "10-K")


def preference(memory: Recollection, traits: Traits) -> float:
    """The weight that a character gives to evidence of a memory's kind."""
    if is_reflection(memory):
        return traits.weight("lessons")
    if _source(memory) in _FILINGS:
        return traits.weight("filings")
    if _source(memory) == "macro":
        return traits.weight("macro")
    return traits.weight("commentary" if _source(memory) == "commentary" else "news")


def unbiased(memory: Recollection) -> bool:
    """True for a memory that no company wrote about itself."""
    return _source(memory) == "macro" or is_reflection(memory)


def _source(memory: Recollection) -> str:
    """The kind of the document that a memory is, or is an insight of."""
    return memory.kind.removesuffix(INSIGHT)


def lean_by_layer(memories: Iterable[Recollection]) -> Sequence[LayerLeaning]:
    """The leaning of each layer that holds something; a memory that comes twice counts once."""
    once = {memory.id: memory for memory in memories}.values()
    return [
        LayerLeaning(layer, tuple((memory, read_memory(memory).worth) for memory in rows))
        for layer, rows in by_layer(once).items()
    ]


def side_of_summary(summary: str) -> int:
    """The side of a summary of intelligence, beyond the usual praise of its texts."""
    tilt = _beyond_usual(read(summary).worth)
    return (tilt > TAKES_SIDE) - (tilt < -TAKES_SIDE)


def side_of(leanings: Iterable[LayerLeaning]) -> int:
    """The side of all memories: 1 positive, -1 negative, 0 neither."""
    total = sum(layer.weighed for layer in leanings)
    return (total > LEANS) - (total < -LEANS)
