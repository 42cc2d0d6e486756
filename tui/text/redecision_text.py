"""A decision beside the same one decided again, as lines: the fields, answers and memories that differ."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from engine.domain.model_call import replays
from engine.messages.answer_text import answer_text
from engine.reports.card import action_words, opinion_words
from engine.reports.documents.row_json import use_words
from tui.text.plain_text import Line, cut, facts, one_line, paragraph, printable, section, wrapped
from tui.text.run_text import combined_opinions, decided_by
from tui.text.trail_summary import WIDEST
from tui.text.trail_text import memory_place

_LABEL = 15
"""Columns for the name of a field that differs."""
_DECISION_FIELDS = frozenset(
    {"symbol", "action", "recommendation", "position size", "rule", "explanation", "reason", "evidence"}
)
"""Fields of the answer that decides; they are shown with the decision."""

_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(])")

Row = Mapping[str, Any]
Change = tuple[str, Sequence[str], Sequence[str]]
"""A name, and the entries on both sides."""
SIDES = ("then", "now")


def redecision_lines(document: Row, width: int) -> Iterator[Line]:
    """Every owner's decision on both sides."""
    width = min(width, WIDEST)
    for number, one in enumerate(document["decisions"]):
        if number:
            yield "", ""
        yield f"{document['symbol']}  {document['session']}  {_headline(one)}", "strong"
        yield from ((line, "") for line in facts(list(_facts(one, document)), width))
        if one["same"]:
            yield from section("The decision is the same")
            yield from paragraph(cut(_either(one)["reason"].strip().split("\n", 1)[0], 2 * width), width)
        for title, changes in _parts(one):
            if found := [line for change in changes for line in _differing(*change, width)]:
                yield from section(title)
                yield from found


def _either(one: Row) -> Row:
    side: Row = one["then"] or one["now"]
    return side


def _headline(one: Row) -> str:
    before, after = (None if one[side] is None else action_words(one[side]) for side in SIDES)
    if one["same"]:
        return f"{before}; re-run: the same{', with every answer and memory' if one['same_throughout'] else ''}"
    if before == after:
        return f"{before}; re-run: {after}, on other grounds"
    return f"{before or 'not decided'}; decided again: {after or 'not decided'}"


def _facts(one: Row, document: Row) -> Iterator[tuple[str, str]]:
    asked, now, owner = document["asked"], document["now"], _either(one)["owner"]
    as_owner = "" if owner == "desk" else f", as {owner}"
    left_out = f", without {', '.join(asked['without'])}" if asked["without"] else ""
    recorded = ", recorded answers only" if replays(asked["model"]) else ""
    yield "Then", f"{decided_by(document['then'])}{as_owner}, {_use(one['then'])}"
    yield "Now", f"{now['label']} (preset {now['name']}{left_out}{recorded}), {_use(one['now'])}"
    for side in SIDES:
        yield f"Only {side}", ", ".join(dict.fromkeys(_agent(a, owner) for a in one["agents"] if a["asked"] == [side]))
    yield "Run", f"{document['run']}; nothing is written to it"
    yield "Note", "\n".join(document["notes"])


def _use(side: Row | None) -> str:
    """Calls of models for a decision, and their cost."""
    return use_words(side["model"]) if side and side["answers"] else "no model calls"


def _parts(one: Row) -> Iterator[tuple[str, Sequence[Change]]]:
    """The parts of a decision, with all that may differ in each."""
    owner, sides = (
        _either(one)["owner"],
        [one[side] or {"recollections": (), "opinions": (), "owner": ""} for side in SIDES],
    )
    places = [{memory["id"]: memory_place(memory) for memory in side["recollections"]} for side in sides]
    then, now = ([f"{each['owner']} {opinion_words(each)}" for each in combined_opinions(side)] for side in sides)
    yield "Changes in the decision", [_change(change, places) for change in one["changes"]]
    yield "Opinions of the owners", [("", then, now)] if then != now else []
    for agent in one["agents"]:
        if "now" in agent["asked"]:
            read = "read the same" if agent["same_question"] else "read something else"
            read = "asked only now" if agent["asked"] == ["now"] else read
            yield f"{_agent(agent, owner)} ({read})", list(_answers(agent, owner))
    yield (
        "Changes in recalled memories",
        [("", [*places[0].values()], [*places[1].values()])] if one["memories"] else [],
    )


def _answers(agent: Row, owner: str) -> Iterator[Change]:
    """The fields that differ in an agent's answers, but for those of the decision itself; all of an answer that is
    there now alone."""
    shown = _DECISION_FIELDS if agent["decides"] and agent["owner"] == owner else ()
    if agent["asked"] == ["now"] and not shown:
        yield "", (), (agent["reason"] if agent["now"] is None else answer_text(agent["now"])).splitlines()
    yield from (_change(change, ({}, {})) for change in agent["changes"] if change["what"] not in shown)


def _change(change: Row, places: Sequence[Mapping[str, str]]) -> Change:
    """A field with its entries on both sides, memories by their `places`, as they were given to the decision."""
    then, now = (
        [known.get(entry, entry) for entry in _entries(change[side]) if entry]
        for side, known in zip(SIDES, places, strict=True)
    )
    return one_line(change["what"]), then, now


def _entries(value: str | Sequence[str]) -> Sequence[str]:
    """The parts of a field that are compared: entries, lines, or the sentences of one line."""
    if not isinstance(value, str):
        return value
    lines = [line for line in value.split("\n") if line.strip()]
    return lines if len(lines) != 1 else _SENTENCE.split(lines[0])


def _differing(name: str, then: Sequence[str], now: Sequence[str], width: int) -> Iterator[Line]:
    """A field's name with the entries that are on one side alone, and how many are on both."""
    label = _LABEL if name else 0
    if len(name) >= label > 0:
        yield f"  {name}", ""
        name = ""
    for mark, ink, some, others in (("-", "down", then, now), ("+", "up", now, then)):
        for text in [text for text in some if text not in others] or ([] if some or not label else ["none"]):
            for number, line in enumerate(wrapped(printable(text).strip(), width - label - 4)):
                yield f"  {name:<{label}}{' ' if number else mark} {line}", ink
                name = ""
    if alike := sum(text in now for text in then):
        yield f"  {'':<{label}}  ({alike} more on both sides)", "quiet"


def _agent(agent: Row, owner: str) -> str:
    """The name of an agent, after its owner's where several owners' opinions were combined."""
    return agent["agent"] if agent["owner"] == owner else f"{agent['owner']}: {agent['agent']}"
