"""A decision beside the same one decided again, as lines: the fields, answers and memories that differ."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from engine.domain.model_call import replays
from engine.messages.answer_text import answer_text
from engine.reports.card import action_words, opinion_words
from engine.reports.documents.row_json import use_words
from tui.text.plain_text import Line, beginning, facts, one_line, paragraph, printable, section, wrapped
from tui.text.run_text import combined_opinions, decided_by, first_line
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


def redecision_lines(document: Row, width: int) -> Iterator[Line]:
    """Every owner's decision on both sides."""
    width = min(width, WIDEST)
    for number, one in enumerate(document["decisions"]):
        if number:
            yield "", ""
        yield from _comparison(one, document, width)


def _comparison(one: Row, document: Row, width: int) -> Iterator[Line]:
    either = one["then"] or one["now"]
    yield f"{document['symbol']}  {document['session']}  {_headline(one)}", "strong"
    yield from ((line, "") for line in facts(list(_sides(one, document, either)), width))
    for title, lines in (
        ("The decision is the same", _same(one, either, width)),
        ("Changes in the decision", _changes(one, width)),
        ("What it rests on", _grounds(one, width)),
        ("Opinions of the owners", _opinions(one, width)),
        ("Changes in the agents' answers", _agents(one["agents"], either["owner"], width)),
        ("Changes in recalled memories", _memories(one, width)),
    ):
        found = list(lines)
        if found:
            yield from section(title)
            yield from found


def _same(one: Row, either: Row, width: int) -> Iterator[Line]:
    if one["same"]:
        yield from paragraph(first_line(either["reason"], 2 * width), width)
        yield from paragraph(_alike(one, either), width)


def _changes(one: Row, width: int) -> Iterator[Line]:
    for change in one["changes"]:
        if change["what"] != "evidence":
            yield from _change(change, width, "  ")


def _grounds(one: Row, width: int) -> Iterator[Line]:
    for change in one["changes"]:
        if change["what"] == "evidence":
            yield from _marked(_cited(change, one, "then"), _cited(change, one, "now"), width, "  ")


def _opinions(one: Row, width: int) -> Iterator[Line]:
    opinions = [(side, made) for side in ("then", "now") if one[side] for made in combined_opinions(one[side])]
    for owner in dict.fromkeys(made["owner"] for _, made in opinions):
        sides = (f"{side} {opinion_words(made)}" for side, made in opinions if made["owner"] == owner)
        yield from paragraph(f"{owner}: {'; '.join(sides)}", width)


def _alike(one: Row, either: Row) -> str:
    """The parts that led to the same decision and are the same too."""
    agents = f"all {len(either['answers'])} answers" if not one["agents"] else ""
    memories = f"all {len(either['recollections'])} memories" if either["recollections"] and not one["memories"] else ""
    same = " and ".join(part for part in (agents, memories) if part)
    return f"The same as well: {same}." if same else ""


def _headline(one: Row) -> str:
    before, after = (None if one[side] is None else action_words(one[side]) for side in ("then", "now"))
    if one["same"]:
        return f"{before}; re-run: the same"
    if before == after:
        return f"{before}; re-run: {after}, on other grounds"
    return f"{before or 'not decided'}; decided again: {after or 'not decided'}"


def _sides(one: Row, document: Row, either: Row) -> Iterator[tuple[str, str]]:
    asked, now = document["asked"], document["now"]
    owner = "" if either["owner"] == "desk" else f", as {either['owner']}"
    left_out = f", without {', '.join(asked['without'])}" if asked["without"] else ""
    recorded = ", recorded answers only" if replays(asked["model"]) else ""
    yield "Then", f"{decided_by(document['then'])}{owner}, {_use(one['then'])}"
    yield "Now", f"{now['label']} (preset {now['name']}{left_out}{recorded}), {_use(one['now'])}"
    yield "Run", f"{document['run']}; nothing is written to it"
    yield "Note", "\n".join(document["notes"])


def _use(side: Row | None) -> str:
    """Calls of models for a decision, and their cost."""
    return use_words(side["model"]) if side and side["answers"] else "no model calls"


def _change(change: Row, width: int, indent: str) -> Iterator[Line]:
    """A field's name with its value on both sides; of a list only the lines that differ."""
    name = one_line(change["what"])
    if len(name) >= _LABEL:
        yield f"{indent}{name}", ""
        name = ""
    for text, ink in _marked(_entries(change["then"]), _entries(change["now"]), width - _LABEL, indent):
        yield f"{indent}{name:<{_LABEL}}{text.removeprefix(indent)}", ink
        name = ""


def _entries(value: str | Sequence[str]) -> Sequence[str]:
    """The parts of a field that are compared: entries, lines, or the sentences of one line."""
    if not isinstance(value, str):
        return value
    lines = [line for line in value.split("\n") if line.strip()]
    return lines if len(lines) != 1 else _SENTENCE.split(lines[0])


def _marked(then: Sequence[str], now: Sequence[str], width: int, indent: str) -> Iterator[Line]:
    """The entries that are on one side alone, and how many are on both."""
    for mark, ink, some, others in (("-", "down", then, now), ("+", "up", now, then)):
        for text in [text for text in some if text not in others] or ([] if some else ["none"]):
            for number, line in enumerate(wrapped(printable(text).strip(), width - len(indent) - 2)):
                yield f"{indent}{' ' if number else mark} {line}", ink
    alike = sum(text in now for text in then)
    if alike:
        more = "one more stands" if alike == 1 else f"{alike} more stand"
        yield f"{indent}  ({more} on both sides)", "quiet"


def _agents(agents: Sequence[Row], decider: str, width: int) -> Iterator[Line]:
    for agent in agents:
        if agent["asked"] == ["then", "now"]:
            yield from _answers(agent, decider, width)
    for agent in agents:
        if agent["asked"] == ["now"]:
            yield f"  {_agent(agent, decider)}  (asked only now{', decides' if agent['decides'] else ''})", "strong"
            if not _is_decision(agent, decider):
                text = agent["reason"] if agent["now"] is None else answer_text(agent["now"])
                yield from paragraph(text, width, "    ")
    gone = dict.fromkeys(_agent(agent, decider) for agent in agents if agent["asked"] == ["then"])
    if gone:
        yield from paragraph(f"Not asked now: {', '.join(gone)}", width)


def _answers(agent: Row, decider: str, width: int) -> Iterator[Line]:
    read = "read the same" if agent["same_question"] else "read something else"
    yield f"  {_agent(agent, decider)}  ({read}{', and decides' if agent['decides'] else ''})", "strong"
    for change in agent["changes"]:
        if not (_is_decision(agent, decider) and change["what"] in _DECISION_FIELDS):
            yield from _change(change, width, "    ")


def _is_decision(agent: Row, decider: str) -> bool:
    """True for the answer that is the decision itself, which is shown above."""
    return bool(agent["decides"]) and agent["owner"] == decider


def _agent(agent: Row, decider: str) -> str:
    """The name of an agent, after its owner's where several owners' opinions were combined."""
    return agent["agent"] if agent["owner"] == decider else f"{agent['owner']}: {agent['agent']}"


def _memories(one: Row, width: int) -> Iterator[Line]:
    if not one["memories"]:
        return
    if one["now"] is not None and not one["now"]["recollections"]:
        yield f"  Nothing is recalled now, where {len(one['memories'])} memories were.", ""
        return
    for mark, ink, side, other in (("-", "down", "then", "now"), ("+", "up", "now", "then")):
        recalled = _recalled(one[side])
        for pair in one["memories"]:
            if pair[side] is not None and pair[other] is None:
                memory = recalled[pair[side]["id"]]
                yield f"  {mark} {memory_place(memory)}", ink
                yield from paragraph(beginning(memory["text"], 2 * width), width, "    ")
    recalled = _recalled(one["then"])
    for pair in one["memories"]:
        if pair["then"] is not None and pair["now"] is not None:
            place = memory_place(recalled[pair["then"]["id"]])
            yield f"  {place}: now {pair['now']['layer']} {pair['now']['rank']}", ""


def _recalled(side: Row | None) -> dict[str, Row]:
    return {} if side is None else {memory["id"]: memory for memory in side["recollections"]}


def _cited(change: Row, one: Row, side: str) -> list[str]:
    """Memories by their place, as they were given to the decision."""
    known = {name: memory_place(memory) for name, memory in _recalled(one[side]).items()}
    return [known.get(name, name) for name in _entries(change[side]) if name]
