"""Memories, the life of one, and the lives that constants allow, as text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.reports.documents.memory import SHORT_ID
from tui import amounts
from tui.console import Console
from tui.plain_text import one_line
from tui.text_table import cut, table, wrapped

if TYPE_CHECKING:
    from memory.presets import MemoryPreset

_INDENT = " " * 10


def list_lines(title: str, document: Mapping[str, Any], console: Console) -> Iterator[str]:
    """Two lines for each memory: its state and its text."""
    width, shown = min(console.width, 120), document["memories"]
    heading = f"Memory of {title}, at the end of {document['session'] or 'no session'}"
    yield from map(console.bold, wrapped(heading, width))
    if not shown:
        yield from wrapped(_none_of(document), width)
        return
    rows = [
        (
            one["id"][:SHORT_ID],
            one["session"],
            one["symbol"],
            one["layer"],
            f"{one['importance']:.1f}",
            f"{one['recency']:.2f}",
            f"{one['rewards']}" if one["rewards"] else "",
        )
        for one in shown
    ]
    names = ("ID", "WRITTEN", "SYMBOL", "LAYER", "IMPORTANCE", "RECENCY", "REWARDS")
    head, *lines = table(names, rows, {"IMPORTANCE", "RECENCY", "REWARDS"}, width)
    yield head
    for line, one in zip(lines, shown, strict=True):
        owner = f"{one['owner']}, " if len(document["owners"]) > 1 else ""
        yield line
        yield _INDENT + cut(f"{owner}{one['kind']}: {one_line(one['text'])}", width - len(_INDENT))
    if len(shown) < document["count"]:
        yield f"the {len(shown)} most important of {document['count']}; --limit 0 shows all"


def _none_of(document: Mapping[str, Any]) -> str:
    if not document["alive"]:
        return "nothing is alive: it begins later, or has faded by then"
    kinds, symbols = ", ".join(document["kinds"]), ", ".join(document["symbols"])
    return f"none of {document['alive']:,} fits; there are {kinds} of {symbols}"


def lifeline_lines(document: Mapping[str, Any], console: Console) -> Iterator[str]:
    """A memory and every change of it."""
    width = min(console.width, 110)
    yield console.bold(f"{document['symbol']}  {document['kind']} of {document['session']}  {document['id']}")
    if document["hindsight"]:
        known = document["available"]
        yield f"written in training, with sight of what followed: it can be recalled from {known} on"
    yield from wrapped(one_line(document["text"]), width)
    rows = [
        (
            change["session"],
            change["cause"],
            change["layer"] or "gone",
            f"{change['importance']:.1f}",
            f"{change['rewards']}",
            _cause(change["by"]),
        )
        for change in document["changes"]
    ]
    yield from table(
        ("SESSION", "CHANGE", "LAYER", "IMPORTANCE", "REWARDS", "BY"), rows, {"IMPORTANCE", "REWARDS"}, width
    )


def _cause(key: str) -> str:
    """The cause of a change; of a decision its session."""
    parts = one_line(key).split()
    return f"decision of {parts[0]}" if len(parts) == 4 else " ".join(parts)


def preview_lines(constants: MemoryPreset, width: int) -> Iterator[str]:
    """The lives that constants allow; a line that goes on is indented."""
    from memory.preview import preview

    for line in preview(constants).split("\n"):
        indent = " " * (len(line) - len(line.lstrip()))
        yield from textwrap.wrap(line, width, subsequent_indent=f"{indent}  ", break_on_hyphens=False)


def embedder_lines(place: Path, document: Mapping[str, Any]) -> Iterator[str]:
    """A change of embedder with its cost."""
    count, after = document["count"], document["after"]
    if not document["changed"]:
        yield f"{place}: its {count:,} memories are by {after} already"
        return
    cost = amounts.number(document["cost"])
    paid = "cost unknown" if cost is None else f"${cost:.4f}"
    calls = document["calls"]
    cost_words = f"; {calls:,} call{'s' if calls > 1 else ''}, {document['input_tokens']:,} tokens, {paid}"
    yield f"{place}: {count:,} memories by {after}, before by {document['before']}{cost_words if calls else ''}"
