"""Memories as text: the list, the life-line of one, and a change that the operator made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import fmean
from typing import Any

from engine.domain.text import counted
from engine.reports.table import Column
from engine.reports.tables import IMPORTANCE, LAYER, PINNED, RECENCY, REWARDS, SESSION, SHORT_ID, SYMBOL, WRITTEN
from tui.text.console import standard_output
from tui.text.plain_text import Line, cut, one_line, table, table_of, wrapped

Document = Mapping[str, Any]
DECIDED = ("cited", "paid", "cost")
"""Changes that name a decision."""
DONE = {
    "pin": ("pinned: stays in its layer", "unpin"),
    "unpin": ("unpinned: follows the preset's constants", "pin"),
    "forget": ("forgotten: no longer recalled", "restore"),
    "restore": ("restored: recallable again", "forget"),
}
"""Result of every change, and the change that undoes it."""
_INDENT = " " * 10


MEMORIES = (WRITTEN, SYMBOL, LAYER, IMPORTANCE, RECENCY, REWARDS, PINNED)
CHANGES = (
    SESSION,
    Column("CHANGE", "cause"),
    Column("LAYER", lambda change: change["layer"] or "gone"),
    IMPORTANCE,
    REWARDS,
    Column("BY", lambda change: _cause(change["cause"], change["by"]), stretch=True),
)


def list_lines(title: str, document: Document) -> Iterator[str]:
    """Two lines for each memory: its state and its text."""
    console = standard_output()
    width, shown = min(console.width, 120), document["memories"]
    heading = f"Memory of {title}, at the end of {document['session'] or 'no session'}"
    yield from map(console.bold, wrapped(heading, width))
    if not shown:
        yield from wrapped(_none_of(document), width)
        return
    ids = Column("ID", lambda one: one["id"][:SHORT_ID])
    head, *lines = table_of((ids, *MEMORIES), shown, console.room)
    yield head
    for line, one in zip(lines, shown, strict=True):
        owner = f"{one['owner']}, " if len(document["owners"]) > 1 else ""
        yield line
        yield _INDENT + cut(f"{owner}{one['kind']}: {one_line(one['text'])}", width - len(_INDENT))
    if len(shown) < document["count"]:
        yield f"the {len(shown)} most important of {document['count']}; --limit 0 shows all"
    if count := len(document["forgotten"]):
        yield f"{count} more {'is' if count == 1 else 'are'} forgotten: --forgotten"


def forgotten_lines(title: str, document: Document) -> Iterator[str]:
    """Two lines for each memory that is forgotten: when and why, and its text."""
    console = standard_output()
    width = min(console.width, 120)
    count = len(document["forgotten"])
    yield from map(console.bold, wrapped(f"Memory of {title}: {count or 'none'} forgotten", width))
    for one in document["forgotten"]:
        about = f"{one['id'][:SHORT_ID]}  {one['symbol']}  {one_line(one['kind'])} of {one['session']}"
        yield cut(f"{about}, forgotten by {one_line(one['by'])}", width)
        yield _INDENT + cut(one_line(one["text"]), width - len(_INDENT))
    if count:
        yield "restore one with: paperdesk memory restore ID"


def change_lines(document: Document) -> Iterator[str]:
    """A memory that was pinned or forgotten, or of which that was taken back."""
    width, short = min(standard_output().width, 110), document["id"][:SHORT_ID]
    done, undo = DONE[document["change"]]
    already = "" if document["changed"] else " already"
    yield from wrapped(f"{short} is {done.replace(':', f'{already}:', 1)}", width)
    yield cut(f"  {document['symbol']} {one_line(document['kind'])}: {one_line(document['text'])}", width)
    if not document["applied"]:
        yield "a run is using the memory: the change is made when it ends"
    if document["changed"]:
        yield f"undo it with: paperdesk memory {undo} {short}"


def map_lines(title: str, document: Document) -> Iterator[str]:
    """The memories of a map by retrieval type: how many, and the middle of their places."""
    yield standard_output().bold(f"Memory of {title} by retrieval type")
    by_type: dict[str, list[Document]] = {}
    for one in document["memories"]:
        for kind in one["types"]:
            by_type.setdefault(kind, []).append(one)
    rows = [
        (kind, f"{len(own)}", *(f"{fmean(one[axis] for one in own):+.3f}" for axis in "xy"))
        for kind, own in sorted(by_type.items())
    ]
    yield from table(("TYPE", "MEMORIES", "MEAN X", "MEAN Y"), rows, {"MEMORIES", "MEAN X", "MEAN Y"})
    yield map_note(document)


def map_note(document: Document) -> str:
    """The share of the vectors' variance that a map shows."""
    share = document["explained"]
    shown = "no difference" if share is None else f"{share:.1%} of their variance"
    return f"{counted(document['count'], 'memory', 'memories')}; the two principal components hold {shown}"


def _none_of(document: Document) -> str:
    if not document["alive"]:
        return "no live memories: none written yet, or all purged"
    kinds, symbols = ", ".join(document["kinds"]), ", ".join(document["symbols"])
    return f"none of {document['alive']:,} match; available: {kinds} of {symbols}"


def lifeline_lines(document: Document, width: int, room: int = 0) -> Iterator[Line]:
    """A memory and every change of it; the table takes `room` columns where that is given."""
    yield f"{document['symbol']}  {one_line(document['kind'])} of {document['session']}  {document['id']}", "strong"
    if document["hindsight"]:
        yield f"written in training with hindsight: recallable from {document['available']} on", "warn"
    yield from ((line, "") for line in wrapped(one_line(document["text"]), min(width, 110)))
    yield from ((line, "quiet") for line in table_of(CHANGES, document["changes"], room or width))
    if document["values"] and document["changes"] and document["changes"][-1]["layer"]:
        last = document["values"][-1]
        yield f"at the end of {last['session']}: {last['layer']}, importance {last['importance']:.1f}", ""


def _cause(change: str, key: str) -> str:
    """The cause of a change; of a decision its session."""
    text = one_line(key)
    return f"decision of {text.partition(' ')[0]}" if change in DECIDED else text
