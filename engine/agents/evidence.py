"""Evidence of an answer: the memories that it cites, and how agents see them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from engine.agents.text import plain
from engine.domain.recollection import LAYERS, Recollection
from engine.domain.text import cut_between_sentences

SHOWN = 8_000
"""Characters of a memory's text that an agent sees: those of a filing's summary."""


def shown_text(memory: Recollection) -> str:
    """A memory's text as an agent sees it: whole, or its first sentences and a note of how much is left out."""
    return cut_between_sentences(plain(memory.text), SHOWN)


def cut_note(memories: Iterable[Recollection]) -> str:
    """The end of a view's few words: how many memories are too long to be shown whole; empty where none is."""
    cut = len({memory.id for memory in memories if len(plain(memory.text)) > SHOWN})
    return f", {cut} cut to {SHOWN:,} characters" if cut else ""


def recollection_line(memory: Recollection) -> str:
    """A memory on one line: its handle in brackets, the session it was written in, its kind, its text."""
    return f"[{plain(memory.handle, 40)}] {earlier_line(memory)}"


def earlier_line(memory: Recollection) -> str:
    """A memory on one line as a reference that nobody cites: without its handle."""
    return f"{memory.session} {plain(memory.kind, 40)}: {shown_text(memory)}"


def by_layer(memories: Iterable[Recollection]) -> Mapping[str, Sequence[Recollection]]:
    """Memories by layer: the known layers first and in their order, empty ones left out."""
    found: dict[str, list[Recollection]] = {layer: [] for layer in LAYERS}
    for memory in memories:
        found.setdefault(memory.layer, []).append(memory)
    return {layer: rows for layer, rows in found.items() if rows}


def cited_ids(handles: Iterable[str], memories: Iterable[Recollection]) -> tuple[str, ...]:
    """The ids of the memories that an agent cited by their handles."""
    known = {memory.handle: memory.id for memory in memories}
    return tuple(known[handle] for handle in handles)


def check_cited(cited: Iterable[str], given: Iterable[str], what: str) -> None:
    """Raise ValueError, naming them, for ids that were not given or that are named twice."""
    counted = Counter(cited)
    strangers = [plain(name, 40) for name in counted.keys() - frozenset(given)]
    if strangers:
        raise ValueError(f"{what} names ids that were not given: {', '.join(sorted(strangers)[:5])}")
    repeated = [plain(name, 40) for name, times in counted.items() if times > 1]
    if repeated:
        raise ValueError(f"{what} names ids more than once: {', '.join(sorted(repeated)[:5])}")
