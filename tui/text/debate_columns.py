"""Several owners about one symbol, a column each: vote, advice before, comments received, advice after; above them what
was decided. Columns too narrow to read stand below each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from rich.cells import set_cell_size

from tui.text.debate_text import advice_words, debate_words
from tui.text.plain_text import Line, beginning, one_line, wrapped
from tui.text.run_text import action_words, opinion_words

Row = Mapping[str, Any]
Section = tuple[str, Sequence[str]]
"""A heading, and a text for each owner."""
NARROWEST = 20
"""Columns of a text below which owners are stacked."""
GAP = "  "
LONGEST = 220
"""Characters of a reason; the whole of it is the owner's answer."""


def owner_columns(opinions: Sequence[Row], debate: Row | None, decisions: Sequence[Row], width: int) -> Iterator[Line]:
    """The owners side by side at a width, or stacked, and the decision below them."""
    owners = [one["owner"] for one in opinions]
    for one in decisions:
        if one["owner"] not in owners:
            reason = one_line(one["reason"].split("\n", 1)[0])
            words = f"Decided: {action_words(one)}. {reason}"
            yield from ((line, "strong") for line in wrapped(words, width))
    if debate is not None:
        yield debate_words(debate), "quiet"
        yield "", ""
    sections = list(_sections(owners, opinions, debate, decisions))
    each = (width - len(GAP) * (len(owners) - 1)) // max(1, len(owners))
    if each >= NARROWEST:
        yield from _beside(owners, sections, each)
    else:
        yield from _stacked(owners, sections, width)


def _sections(
    owners: Sequence[str], opinions: Sequence[Row], debate: Row | None, decisions: Sequence[Row]
) -> Iterator[Section]:
    said = {one["owner"]: one for one in debate["owners"]} if debate else {}
    yield "Vote" if debate is None or debate["decides"] else "Traded", [opinion_words(one) for one in opinions]
    own = {one["owner"]: one for one in decisions}
    if any(owner in own for owner in owners):
        yield "Decided", [action_words(own[owner]) if owner in own else "nothing" for owner in owners]
    if debate is None:
        yield "Opinion", [beginning(one["reason"] or "no reason was given", LONGEST) for one in opinions]
    else:
        yield "Before", [_advice(said.get(owner), 0) for owner in owners]
        for number in range(1, debate["rounds"] + 1):
            heard = [_comments(debate, owner, number) for owner in owners]
            yield f"Comments received, round {number}", heard
            if debate["decides"]:
                yield f"After round {number}", [_advice(said.get(owner), number) for owner in owners]


def _advice(owner: Row | None, number: int) -> str:
    """The advice at the end of a round with its reason; of one that was kept its confidence alone."""
    rounds = {one["round"]: one for one in owner["advice"]} if owner else {}
    one, before = rounds.get(number), rounds.get(number - 1)
    if one is None:
        return "said nothing"
    words = advice_words(one)
    if one["advice"] is None:
        return words
    if before is not None and before["advice"] == one["advice"]:
        return f"keeps to {words}"
    changed = "changes its mind: " if before is not None else ""
    return f"{changed}{words}. {beginning(one['reason'], LONGEST)}"


def _comments(debate: Row, owner: str, number: int) -> str:
    heard = [one for one in debate["comments"] if one["receiver"] == owner and one["round"] == number]
    texts = (f"{one_line(one['author'])}, {one['stance']}: {beginning(one['text'], LONGEST)}" for one in heard)
    return "\n".join(texts) or "none"


def _beside(owners: Sequence[str], sections: Sequence[Section], each: int) -> Iterator[Line]:
    yield _joined(map(one_line, owners), each), "strong"
    for title, texts in sections:
        yield "", ""
        yield title, "heading"
        for cells in zip_longest(*(wrapped(text, each) for text in texts), fillvalue=""):
            yield _joined(cells, each), ""


def _joined(cells: Iterator[str] | Sequence[str], each: int) -> str:
    return GAP.join(set_cell_size(cell, each) for cell in cells).rstrip()


def _stacked(owners: Sequence[str], sections: Sequence[Section], width: int) -> Iterator[Line]:
    for number, owner in enumerate(owners):
        if number:
            yield "", ""
        yield one_line(owner), "strong"
        for title, texts in sections:
            yield f"{title}:", "heading"
            yield from ((f"  {line}", "") for line in wrapped(texts[number], width - 2))
