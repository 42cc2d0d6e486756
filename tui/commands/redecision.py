"""`paperdesk why --redecide`: a decision as it stood beside the same one decided again, as text and as JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from engine.domain.decision import Decision
from engine.journal.entries import AnswerEntry, Recalled, Trail
from engine.lab.decision_changes import Change, Comparison, Field, decision_fields
from engine.session.cost_meter import in_words, use_of
from tui import amounts
from tui.commands.run_text import decided_by, first_line
from tui.console import Console
from tui.plain_text import beginning, one_line, printable
from tui.text_table import facts, wrapped

if TYPE_CHECKING:
    from connectors.wiring.redeciding import Changes, Redecided

_WIDEST = 100
_LABEL = 15
"""Columns for the name of a field that differs."""
_DECIDES = frozenset(
    {"symbol", "action", "recommendation", "position size", "rule", "explanation", "reason", "evidence"}
)
"""Fields of the answer that decides; they stand with the decision."""

_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(])")


def redecided_lines(done: Redecided, changes: Changes, console: Console) -> Iterator[str]:
    """Every owner's decision on both sides."""
    width = min(console.width, _WIDEST)
    for number, one in enumerate(done.comparisons):
        if number:
            yield ""
        yield from _comparison(one, done, changes, console, width)


def _comparison(one: Comparison, done: Redecided, changes: Changes, console: Console, width: int) -> Iterator[str]:
    either = one.stood or one.now
    assert either is not None  # a comparison has a side
    yield console.bold(f"{done.symbol}  {done.session}  {_headline(one)}")
    yield from facts(_sides(one, done, changes), width)
    if one.same:
        yield from _section("The decision is the same", console)
        yield from _paragraph(first_line(either.decision.reason, 2 * width), width)
        yield from _paragraph(_alike(one, either), width)
    told = [change for change in one.decision if change.what != "evidence"]
    if told:
        yield from _section("What was decided otherwise", console)
        for change in told:
            yield from _change(change, console, width, "  ")
    cited = next((change for change in one.decision if change.what == "evidence"), None)
    if cited is not None:
        yield from _section("What it rests on", console)
        yield from _marked(_cited(cited.stood, one.stood), _cited(cited.now, one.now), console, width, "  ")
    if one.answers:
        yield from _section("What the agents said otherwise", console)
        yield from _answers(one, console, width)
    if one.memories:
        yield from _section("What memory brought otherwise", console)
        yield from _memories(one, console, width)


def _alike(one: Comparison, either: Trail) -> str:
    """What led to the same decision, where it is the same too."""
    agents = f"all {len(either.answers)} answers" if not one.answers else ""
    memories = f"all {len(either.recalled)} memories" if either.recalled and not one.memories else ""
    same = " and ".join(part for part in (agents, memories) if part)
    return f"The same as well: {same}." if same else ""


def _headline(one: Comparison) -> str:
    before, after = (None if side is None else action(side.decision) for side in (one.stood, one.now))
    if one.same:
        return f"{before}; decided again: the same"
    if before == after:
        return f"{before}; decided again: {after}, on other grounds"
    return f"{before or 'not decided'}; decided again: {after or 'not decided'}"


def action(made: Decision) -> str:
    """What was decided, in a few words."""
    return f"{made.action.value} {amounts.size(made.size)} %" if made.size else made.action.value


def _sides(one: Comparison, done: Redecided, changes: Changes) -> list[tuple[str, str]]:
    either = one.stood or one.now
    assert either is not None
    owner = either.decision.key.owner
    named = "" if owner == "desk" else f", as {owner}"
    left_out = f", without {', '.join(done.without)}" if done.without else ""
    recorded = ", recorded answers alone" if changes.model == "replay" else ""
    return [
        ("Then", f"{decided_by(done.run)}{named}, {_use(one.stood)}"),
        ("Now", f"{done.label} (preset {done.preset}{left_out}{recorded}), {_use(one.now)}"),
        ("Run", f"{done.run.id}; nothing of this is written to it"),
        ("Note", "\n".join(done.notes)),
    ]


def _use(trail: Trail | None) -> str:
    """What was asked of models for a decision, and what it cost."""
    if trail is None or not trail.answers:
        return "nobody was asked"
    use = use_of(trail.answers)
    cached = f" ({use.cached_calls} recorded)" if use.cached_calls else ""
    return f"{use.calls} call{'s' if use.calls > 1 else ''}{cached}, {amounts.cost(use.cost)}"


def _section(title: str, console: Console) -> Iterator[str]:
    yield ""
    yield console.bold(title)


def _paragraph(text: str, width: int, indent: str = "  ") -> Iterator[str]:
    for line in wrapped(printable(text).strip(), width - len(indent)):
        yield (indent + line).rstrip()


def _change(change: Change, console: Console, width: int, indent: str) -> Iterator[str]:
    """A field's name with what it was and what it is; of a list only the lines that differ."""
    lines = list(_marked(_lines(change.stood), _lines(change.now), console, width - _LABEL, indent))
    name = one_line(change.what)
    if len(name) >= _LABEL:
        yield f"{indent}{name}"
        name = ""
    for line in lines:
        yield f"{indent}{name:<{_LABEL}}{line.removeprefix(indent)}"
        name = ""


def _lines(value: Field) -> tuple[str, ...]:
    """The parts of a field that are held against each other: entries, lines, or the sentences of one line."""
    if not isinstance(value, str):
        return value
    lines = tuple(line for line in value.split("\n") if line.strip())
    return lines if len(lines) != 1 else tuple(_SENTENCE.split(lines[0]))


def _marked(stood: Sequence[str], now: Sequence[str], console: Console, width: int, indent: str) -> Iterator[str]:
    """What is on one side alone, and how much is on both."""
    for mark, some, others in (("-", stood, now), ("+", now, stood)):
        for text in [text for text in some if text not in others] or ([] if some else ["none"]):
            for number, line in enumerate(wrapped(printable(text).strip(), width - len(indent) - 2)):
                yield indent + (console.rising(mark, mark == "+") if not number else " ") + " " + line
    alike = sum(text in now for text in stood)
    if alike:
        more = "one more stands" if alike == 1 else f"{alike} more stand"
        yield f"{indent}  {console.dim(f'({more} on both sides)')}"


def _answers(one: Comparison, console: Console, width: int) -> Iterator[str]:
    decided = [side.answers[-1] for side in (one.stood, one.now) if side is not None and side.answers]
    for change in one.answers:
        if change.stood is None or change.now is None:
            continue
        fields = [field for field in change.fields if change.now not in decided or field.what not in _DECIDES]
        read = "read the same" if change.same_question else "read something else"
        decides = ", and decides" if change.now in decided else ""
        yield f"  {console.bold(change.agent)}  ({read}{decides})"
        for field in fields:
            yield from _change(field, console, width, "    ")
    for change in one.answers:
        if change.stood is None and change.now is not None:
            yield f"  {console.bold(change.agent)}  (asked only now{', decides' if change.now in decided else ''})"
            if change.now not in decided:
                yield from _paragraph(_said(change.now), width, "    ")
    gone = dict.fromkeys(change.agent for change in one.answers if change.now is None)
    if gone:
        yield from _paragraph(f"Not asked now: {', '.join(gone)}", width)


def _said(answer: AnswerEntry) -> str:
    return f"{answer.outcome}: {answer.reason}" if answer.answer is None else in_words(answer.answer)


def _memories(one: Comparison, console: Console, width: int) -> Iterator[str]:
    if one.now is not None and not one.now.recalled:
        yield f"  Nothing is recalled now, where {len(one.memories)} memories were."
        return
    gone = [pair.stood for pair in one.memories if pair.now is None and pair.stood is not None]
    new = [pair.now for pair in one.memories if pair.stood is None and pair.now is not None]
    for mark, some in (("-", gone), ("+", new)):
        for recalled in some:
            yield f"  {console.rising(mark, mark == '+')} {_place(recalled)}"
            yield from _paragraph(beginning(recalled.memory.text, 2 * width), width, "    ")
    for pair in one.memories:
        if pair.stood is not None and pair.now is not None:
            yield f"  {_place(pair.stood)}: now {pair.now.memory.layer} {pair.now.memory.rank}"


def _place(one: Recalled) -> str:
    memory = one.memory
    return f"{memory.handle}  {memory.layer} {memory.rank}, {one_line(memory.kind)} of {memory.session}"


def _cited(ids: Field, trail: Trail | None) -> tuple[str, ...]:
    """Memories by their place, as they were given to the decision."""
    known = {} if trail is None else {one.memory.id: _place(one) for one in trail.recalled}
    return tuple(known.get(name, name) for name in _lines(ids) if name)


def redecided_json(done: Redecided, changes: Changes, trail_json: Callable[[Trail], dict[str, Any]]) -> dict[str, Any]:
    """Both sides, whole, with what differs; `trail_json` is how a trail is printed."""
    return {
        "run": done.run.id,
        "symbol": done.symbol,
        "session": str(done.session),
        "asked": {"preset": changes.preset, "model": changes.model, "without": list(changes.without)},
        "then": {"label": done.run.label, "name": done.run.name},
        "now": {"label": done.label, "name": done.preset},
        "same": all(one.same for one in done.comparisons),
        "same_throughout": all(one.same_throughout for one in done.comparisons),
        "notes": list(done.notes),
        "decisions": [
            {
                "same": one.same,
                "same_throughout": one.same_throughout,
                "differs": [change.what for change in one.decision],
                "agents": [
                    {
                        "agent": change.agent,
                        "then": None if change.stood is None else change.stood.answer,
                        "now": None if change.now is None else change.now.answer,
                        "same_question": change.same_question,
                        "fields": [field.what for field in change.fields],
                    }
                    for change in one.answers
                ],
                "memories": [
                    {"then": _recalled(change.stood), "now": _recalled(change.now)} for change in one.memories
                ],
                "then": _side(one.stood, trail_json),
                "now": _side(one.now, trail_json),
            }
            for one in done.comparisons
        ],
    }


def _recalled(one: Recalled | None) -> dict[str, Any] | None:
    return None if one is None else {"id": one.memory.id, "layer": one.memory.layer, "rank": one.memory.rank}


def _side(trail: Trail | None, trail_json: Callable[[Trail], dict[str, Any]]) -> dict[str, Any] | None:
    if trail is None:
        return None
    from engine.reports.documents.row_json import model_use

    use = use_of(trail.answers)
    return trail_json(trail) | {"model": model_use(use), "words": _plain(decision_fields(trail.decision))}


def _plain(fields: dict[str, Field]) -> dict[str, Any]:
    return {name: value if isinstance(value, str) else list(value) for name, value in fields.items()}
