"""A debate of a decision's trail as lines: who stood where, who changed its mind, who said what, who was right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from engine.domain.text import counted
from engine.reports import amounts
from tui.text.plain_text import Line, one_line, paragraph, section

Row = Mapping[str, Any]

_ENDS = {
    "agreement": "all agreed",
    "no change": "a round changed nobody's advice",
    "rounds": "its rounds were over",
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
