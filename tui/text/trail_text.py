"""The trail of a decision as lines, in the order in which a person asks: what, why, who said so, what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from engine.domain.text import counted, state_words
from engine.messages.answer_text import answer_text
from engine.reports import amounts
from engine.reports.card import opinion_words
from tui.text.debate_text import debate_lines
from tui.text.plain_text import Line, beginning, one_line, paragraph, section, wrapped
from tui.text.run_text import combined_opinions, order_words, trade_words
from tui.text.trail_summary import WIDEST, first_lines

Row = Mapping[str, Any]

ALL_ROWS = 1_000
"""Rows for a first screen that is cut nowhere."""
CHART, PROMPTS = "Chart", "Prompts"
"""Folds: the chart is a picture, the prompts are long."""


class Fold(NamedTuple):
    """A part of a trail that opens: its name, a few words about what is in it, and its lines at a width."""

    name: str
    about: str
    lines: Callable[[int], Iterator[Line]]


def why_lines(document: Row, width: int, *, prompts: bool = False) -> Iterator[Line]:
    """Every trail of a document of `paperdesk why`: its first screen, and all that opens behind it."""
    width = min(width, WIDEST)
    for shown in document["decisions"]:
        yield from first_lines(document, shown, width, ALL_ROWS)
        for fold in folds(shown):
            if fold.name != CHART and (prompts or fold.name != PROMPTS):
                yield from section(f"{fold.name}: {fold.about}")
                yield from fold.lines(width)
        yield "", ""


def folds(shown: Row) -> list[Fold]:
    """The parts of a decision's trail behind its first screen: those that it has."""
    owners = _opinions(shown)
    answers, recalled = shown["answers"], shown["recollections"]
    cited = sum(one["cited"] for one in recalled)
    charts = [title for answer in answers for title in answer["charts"]]
    moves = sum(len(order["moves"]) for order in shown["orders"])
    several = len(owners) > 1
    found = [
        Fold("Opinions" if several else "Reason", "in full", lambda width: _in_full(owners, several, width)),
        Fold("Memory", f"{len(recalled)} recalled, {cited} cited", lambda width: _by_owner(_memories, shown, width)),
        Fold("Answers", f"{len(answers)} of agents", lambda width: _by_owner(_answers, shown, width)),
        Fold("Debate", _rounds_of(shown), lambda width: debate_lines(shown["debate"], shown["owner"], width)),
        Fold("Order", f"in {counted(moves, 'step')}", lambda width: _orders(shown, width)),
        Fold(CHART, "as the model saw it: v", lambda width: _charts(answers, width)),
        Fold(PROMPTS, f"{len(answers)} in full", lambda width: _by_owner(_asked, shown, width)),
    ]
    empty = {
        "Memory": not recalled,
        "Answers": not answers and not shown["unanswered"],
        "Debate": "debate" not in shown,
        "Order": not moves,
        CHART: not charts,
        PROMPTS: not answers,
    }
    return [one for one in found if not empty.get(one.name)]


def _opinions(shown: Row) -> list[Row]:
    """The opinions that a decision rests on: those that were combined, else its own reason as its owner's."""
    return combined_opinions(shown) or [shown]


Part = Callable[[Row, Row, int, "Seen"], Iterator[Line]]
Seen = dict[str, str]
"""The owner under whom a text has been shown, by what tells the text from others."""


def _by_owner(part: Part, shown: Row, width: int) -> Iterator[Line]:
    """A part of each owner's opinion, under its name where there are several; a text that several have stands once."""
    opinions = _opinions(shown)
    seen: Seen = {}
    for one in opinions:
        if len(opinions) > 1:
            yield from section(one_line(one["owner"]))
        yield from part(shown, one, width, seen)


def _in_full(opinions: Sequence[Row], several: bool, width: int) -> Iterator[Line]:
    for one in opinions:
        if several:
            yield f"  {one_line(one['owner'])}: {opinion_words(one)}", "strong"
        yield from paragraph(one["reason"] or "no reason was given", width)


def _rounds_of(shown: Row) -> str:
    debate = shown.get("debate")
    return "" if debate is None else f"{len(debate['owners'])} owners, {len(debate['comments'])} comments"


def _charts(answers: Sequence[Row], width: int) -> Iterator[Line]:
    for answer in answers:
        for title in answer["charts"]:
            how = "saw it as a picture" if answer["charts_seen"] else "read its figures as text"
            yield from paragraph(f"{one_line(title)}: {one_line(answer['agent'])} {how}", width)
    yield "  v shows the chart.", "quiet"


def _asked(shown: Row, opinion: Row, width: int, seen: Seen) -> Iterator[Line]:
    """The questions to the agents of an owner, word for word."""
    for number, answer in enumerate(_of_owner(shown, "answers", opinion), 1):
        yield from _called(f"{number} ", answer)
        before = seen.setdefault(f"{answer['agent']} {answer['prompt_hash']}", opinion["owner"])
        if before == opinion["owner"]:
            yield from _prompts(answer, width)
        else:
            yield f"    asked as {one_line(before)}'s was", "quiet"


def _of_owner(shown: Row, part: str, opinion: Row) -> list[Row]:
    return [row for row in shown[part] if row["owner"] == opinion["owner"]]


def call_facts(answer: Row) -> str:
    """The model of an answer, its tokens, cost and seconds, and what it saw."""
    tokens = answer["input_tokens"] or answer["output_tokens"]
    parts = [
        answer["model"] + (" (recorded answer)" if answer["cached"] else ""),
        f"{counted(answer['input_tokens'], 'token')} in, {answer['output_tokens']:,} out" if tokens else "",
        amounts.cost(amounts.number(answer["cost"])),
        f"{answer['latency']:.1f} s" if answer["latency"] >= 0.05 else "",
        f"prompt {answer['prompt_hash'][:12]}",
        f"of version {answer['prompt_version']}" if answer["prompt_version"] else "",
    ]
    if answer["charts"]:
        parts.append("saw the chart" if answer["charts_seen"] else "read the chart's figures as text")
    return ", ".join(filter(None, [*parts, *answer["notes"]]))


def memory_place(memory: Row) -> str:
    """The handle of a memory, its layer and rank, and what it is."""
    return f"{memory['handle']}  {memory['layer']} {memory['rank']}, {one_line(memory['kind'])} of {memory['session']}"


def _memories(shown: Row, opinion: Row, width: int, seen: Seen) -> Iterator[Line]:
    for memory in _of_owner(shown, "recollections", opinion):
        before = seen.setdefault(memory["id"], opinion["owner"])
        yield from _recalled(memory, width)
        if before == opinion["owner"]:
            yield from paragraph(beginning(memory["text"], 2 * width), width, "    ")
        else:
            yield f"    its text is under {one_line(before)}", "quiet"


def _answers(shown: Row, opinion: Row, width: int, seen: Seen) -> Iterator[Line]:
    answers, unanswered = (_of_owner(shown, part, opinion) for part in ("answers", "unanswered"))
    if not (answers or unanswered):
        yield "  no model calls", "quiet"
    for call in unanswered:
        yield from paragraph(_unanswered(call), width, "  ", "quiet" if call["kind"] == "preflight" else "warn")
    for number, answer in enumerate(answers, 1):
        before = seen.setdefault(f"{answer['agent']} {answer['answer']}", opinion["owner"])
        if before != opinion["owner"]:
            yield from _called(f"{number} ", answer)
            yield f"    its answer is under {one_line(before)}", "quiet"
            continue
        yield from _answer(number, answer, {**shown, "reason": opinion["reason"]}, width)


def _recalled(memory: Row, width: int) -> Iterator[Line]:
    cited = memory["cited"]
    yield f"  {memory_place(memory)}{', cited' if cited else ''}", "strong" if cited else ""
    yield from ((f"    {line}", "quiet") for line in wrapped(_rank(memory), width - 4))


def _rank(memory: Row) -> str:
    """The figures that a memory was ranked by: recency and relevancy as fractions of 1, importance of 100, and their
    score; and as much of its id as `paperdesk memory lifeline` takes."""
    asked = f", asked for as {', '.join(memory['types'])}" if memory["types"] else ""
    return (
        f"recency {memory['recency']:.3f}, relevancy {memory['relevancy']:.3f}, importance {memory['importance']:.1f}, "
        f"score {memory['score']:.3f}, id {memory['id'][:8]}{asked}"
    )


def _called(before: str, answer: Row) -> Iterator[Line]:
    again = f", attempt {answer['attempt']}" if answer["attempt"] > 1 else ""
    view = one_line(answer["view"])
    yield f"  {before}{one_line(answer['agent'])}{again}" + (f"  ({view})" if view else ""), "strong"


def _answer(number: int, answer: Row, shown: Row, width: int) -> Iterator[Line]:
    yield from _called(f"{number} ", answer)
    yield from ((f"    {line}", "quiet") for line in wrapped(one_line(call_facts(answer)), width - 4))
    if answer["answer"] is not None:
        yield from paragraph(answer_text(_unshown(answer["answer"], shown)), width, "    ")
    if answer["outcome"] != "answered":
        yield from paragraph(f"{answer['outcome']}: {answer['reason']}", width, "    ", "warn")
        if answer["text"]:
            yield from paragraph(f"it had said: {one_line(answer['text'])[:600]}", width, "    ")


def _unanswered(call: Row) -> str:
    """A call that no agent got an answer from."""
    named = f"{one_line(call['agent'])}: {one_line(call['model'])}"
    if call["kind"] == "preflight":
        return f"preflight for {named}, {amounts.cost(amounts.number(call['cost']))}"
    cost = f", estimated {amounts.cost(amounts.number(call['cost']))}" if call["estimated"] else ""
    return f"{named}, call {call['attempt']} failed{cost}: {call['kind']}: {one_line(call['detail'])}"


def _unshown(answer: Row, shown: Row) -> dict[str, Any]:
    """An answer without what is shown elsewhere: the reason of the opinion, which has that of the advice in it, and the
    comments of a debate. Short fields first (the journal keeps them by name)."""
    told = {"symbol": shown["symbol"], "comments": answer.get("comments") if "debate" in shown else None}
    fields = [(name, value) for name, value in answer.items() if told.get(name) != value and not _told(value, shown)]
    return dict(sorted(fields, key=lambda field: (isinstance(field[1], list), len(str(field[1])))))


def _told(value: object, shown: Row) -> bool:
    return isinstance(value, str) and " " in value and value in str(shown["reason"])


def _prompts(answer: Row, width: int) -> Iterator[Line]:
    for message in ({"role": "system", "text": answer["system"]}, *answer["messages"]):
        yield f"    --- {message['role']}", "quiet"
        yield from paragraph(message["text"], width, "    | ")
    yield "    ---", "quiet"


def _orders(shown: Row, width: int) -> Iterator[Line]:
    for order in shown["orders"]:
        yield f"  {order_words(order)}  ({order['id']})", ""
        for move in order["moves"]:
            time = f"{datetime.fromisoformat(move['time']):%Y-%m-%d %H:%M:%S}"
            yield from paragraph(f"{time} UTC  {state_words(move['state'], move['detail'])}", width, "    ")
        yield from ((f"    {trade_words(fill)}", "") for fill in order["fills"])
