"""Memories as rows, and one of them as text with all of its changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from textual.content import Content

from engine.reports.tables import IMPORTANCE, LAYER, PINNED, RECENCY, REWARDS, SYMBOL, WRITTEN
from tui.text.plain_text import one_line, printable
from tui.widgets.agent_panes import MUTED
from tui.widgets.table import Column, Row, rows_of

Document = Mapping[str, Any]
MEMORIES = (
    WRITTEN,
    SYMBOL,
    Column("OWNER", "owner", ink="muted", max_width=12),
    LAYER,
    PINNED,
    Column("KIND", "kind", ink="muted", max_width=14, drop_order=3),
    IMPORTANCE,
    RECENCY,
    REWARDS,
    Column("TEXT", "text", ink="muted", stretch=True, min_width=12, drop_order=5),
)


def columns(memories: Sequence[Document]) -> Sequence[Column]:
    """The columns of some memories: the owner's only where there are several, who may remember the same."""
    return MEMORIES if _several(memories) else (*MEMORIES[:2], *MEMORIES[3:])


def _several(memories: Sequence[Document]) -> bool:
    return len({one["owner"] for one in memories}) > 1


def rows(memories: Sequence[Document]) -> list[Row]:
    """A row per memory, alive or forgotten."""
    made = rows_of(columns(memories), memories, lambda one: str(one["id"]))
    said = (f"{one['owner']} {one['id']} {'pinned' if one.get('pinned') else ''}" for one in memories)
    return [replace(row, more=more) for row, more in zip(made, said, strict=True)]


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
