"""Rules for past intelligence: valid memories, outdated ones, and a summary."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from engine.agents.citing import by_layer, shown_text
from engine.agents.past_intelligence import PastView
from engine.agents.text import plain
from engine.domain.recollection import Recollection
from engine.offline.economy import read_figure
from engine.offline.reading import Reading, read
from engine.offline.salience import clean, ended, main_sentence

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
    text = shown_text(memory)
    if memory.kind == "macro":
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
        f"Of {len(memories)} memories from {first} to {last} {len(valid)} still hold: {good} speak for {view.symbol}, "
        f"{bad} against it."
    )
    for memory in _best_of_each_layer(valid):
        if sentence := memory_sentence(memory):
            yield f"{memory.session}, {plain(memory.kind, 40)}: {ended(sentence)}"


def _best_of_each_layer(valid: Sequence[Recollection]) -> list[Recollection]:
    """The best of each layer, then the second best of each, so that every layer is quoted."""
    layers = list(by_layer(valid).values())
    deepest = max(map(len, layers), default=0)
    return [rows[place] for place in range(deepest) for rows in layers if place < len(rows)][:QUOTED]
