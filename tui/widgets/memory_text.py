"""Memories as rows, and one of them as text with all of its changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from textual.content import Content

from tui.plain_text import one_line, printable
from tui.widgets.agent_panes import MUTED
from tui.widgets.table import Cell, Column, Row

Document = Mapping[str, Any]
MEMORIES = (
    Column(title="WRITTEN", drop_order=2),
    Column(title="SYM", max_width=9),
    Column(title="LAYER", max_width=12),
    Column(title="PIN", drop_order=1),
    Column(title="KIND", max_width=14, drop_order=3),
    Column(title="IMP", right=True),
    Column(title="REC", right=True, drop_order=1),
    Column(title="REW", right=True, drop_order=4),
    Column(title="TEXT", stretch=True, min_width=12, drop_order=5),
)


OWNER = Column(title="OWNER", max_width=12)
FORGOTTEN = "forgotten"
"""The word that stands in place of a layer."""


def columns(memories: Sequence[Document]) -> Sequence[Column]:
    """The columns of some memories: the owner's only where there are several, who may remember the same."""
    return (*MEMORIES[:2], OWNER, *MEMORIES[2:]) if _several(memories) else MEMORIES


def _several(memories: Sequence[Document]) -> bool:
    return len({one["owner"] for one in memories}) > 1


def rows(memories: Sequence[Document]) -> list[Row]:
    """A row per memory, alive or forgotten."""
    several = _several(memories)
    return [
        Row(
            one["id"],
            (
                Cell(one["session"], "muted"),
                Cell(one["symbol"], "strong"),
                *([Cell(one_line(one["owner"]), "muted")] if several else []),
                *_state(one),
                Cell(one_line(one["text"]), "muted"),
            ),
            f"{one['owner']} {one['id']} {'pinned' if one.get('pinned') else ''}",
        )
        for one in memories
    ]


def _state(one: Document) -> tuple[Cell, ...]:
    kind = Cell(one_line(one["kind"]), "muted")
    if "layer" not in one:
        return Cell(FORGOTTEN, "warn"), Cell(""), kind, Cell(""), Cell(""), Cell("")
    return (
        Cell(one["layer"]),
        Cell("pin" if one["pinned"] else "", "mark"),
        kind,
        Cell(f"{one['importance']:.1f}", order=one["importance"]),
        Cell(f"{one['recency']:.2f}", "muted", one["recency"]),
        Cell(str(one["rewards"] or ""), "up", one["rewards"]),
    )


def memory(life: Document, changes: Sequence[Document]) -> Content:
    """A memory whole: its text, and its changes up to the moment that is shown."""
    parts: list[str | tuple[str, str]] = [
        (f"{life['symbol']}  {one_line(life['kind'])} of {life['session']}  {life['id'][:8]}\n", "bold"),
        (f"of {one_line(life['owner'])}, born into {life['born_into']} with {life['born_with']:.1f}\n", MUTED),
    ]
    if life["hindsight"]:
        text = f"written in training, with sight of what followed: it can be recalled from {life['available']} on\n"
        parts.append((text, "$warning"))
    parts.append(f"\n{printable(life['text']).strip()}\n\n")
    for change in changes:
        by = f"  {one_line(change['by'])}" if change["by"] else ""
        text = f"{change['session']}  {change['cause']}: {change['layer'] or 'gone'}, {change['importance']:.1f}{by}\n"
        parts.append((text, MUTED))
    return Content.assemble(*parts)
