"""A debate of a decision's trail as lines: who stood where, who changed its mind, who said what, who was right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, zip_longest
from typing import Any

from rich.cells import set_cell_size

from engine.domain.text import counted
from engine.reports import amounts
from engine.reports.card import action_words, opinion_words
from tui.text.plain_text import Line, beginning, one_line, paragraph, section, wrapped

Row = Mapping[str, Any]

_ENDS = {
    "agreement": "all agreed",
    "no change": "a round changed no advice",
    "rounds": "all rounds were done",
    "budget": "its budget of questions was used up",
    "alone": "all others had abstained",
}


def debate_lines(debate: Row, owner: str, width: int) -> Iterator[Line]:
    """A debate. Of the comments those by and to `owner`, where it has a part of its own; else all."""
    yield from section(debate_words(debate))
    owners = [one["owner"] for one in debate["owners"]]
    for one in debate["owners"]:
        yield from paragraph(_stand(one), width, "  ", "strong" if one["changed"] else "")
    for said in debate["comments"]:
        if owner not in owners or owner in (said["author"], said["receiver"]):
            names = f"{one_line(said['author'])} to {one_line(said['receiver'])}, {said['stance']}"
            yield from paragraph(f"{said['round']}. {names}: {one_line(said['text'])}", width, "    ")


def debate_words(debate: Row) -> str:
    """`Debate: 2 rounds, all agreed`."""
    title = "Debate" if debate["decides"] else "Debate after the trade"
    ended = _ENDS.get(debate["ended"])
    return f"{title}: {_rounds(debate['rounds'])}{f', {ended}' if ended else ''}"


def _rounds(count: int) -> str:
    return counted(count, "round") if count else "no round"


def _stand(one: Row) -> str:
    """`bull: hold (0.40), then slightly increase (0.55), changed its mind; right +1.20 % after 1 session`."""
    stated = [advice_words(advice) for advice in one["advice"]]
    told = stated[:1] + [after for before, after in pairwise(stated) if after != before]
    changed = ", changed its mind" if one["changed"] else ""
    results = [
        f"{'right' if found['result'] > 0 else 'wrong'} {amounts.percent(found['result'])} after {found['sessions']}"
        for found in one["results"]
        if found["result"]
    ]
    outcome = f"; {', '.join(results)} session{'' if results[-1].endswith(' 1') else 's'}" if results else ""
    return f"{one_line(one['owner'])}: {', then '.join(told)}{changed}{outcome}"


def advice_words(advice: Row) -> str:
    """`slightly increase (0.55)`, `abstained (the reason)`."""
    if advice["advice"] is None:
        return f"abstained ({one_line(advice['reason'])})"
    stated = "" if advice["confidence"] is None else f" ({advice['confidence']:.2f})"
    return f"{advice['advice']}{stated}"


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
