"""The trail of a decision as lines, in the order in which a person asks: what, why, who said so, what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple

from engine.domain.text import counted, state_words
from engine.messages.answer_text import answer_text
from engine.reports import amounts
from engine.reports.card import opinion_words
from tui.text.plain_text import Line, cut, one_line, paragraph, section, wrapped
from tui.text.run_text import combined_opinions, order_words, trade_words
from tui.text.trail_summary import WIDEST, first_lines

Row = Mapping[str, Any]

PROMPTS = "Prompts"
"""The fold that is long."""
_ENDS = {
    "agreement": "all agreed",
    "no change": "a round changed no advice",
    "rounds": "all rounds were done",
    "budget": "its budget of questions was used up",
    "alone": "all others had abstained",
}


class Fold(NamedTuple):
    """A part of a trail that opens: its name, a few words about what is in it, and its lines at a width."""

    name: str
    about: str
    lines: Callable[[int], Iterator[Line]]


def why_lines(document: Row, width: int, *, full: bool = False, prompts: bool = False) -> Iterator[Line]:
    """Every trail of a document of `paperdesk why`: its first screen, with `full` or `prompts` all that opens behind
    it, else the command that prints that."""
    width = min(width, WIDEST)
    for shown in document["decisions"]:
        yield from first_lines(document, shown, width)
        for fold in folds(shown) if full or prompts else ():
            if prompts or fold.name != PROMPTS:
                yield from section(f"{fold.name}: {fold.about}")
                yield from fold.lines(width)
        yield "", ""
    if not (full or prompts):
        run = "" if document["kind"] == "desk" else f" --run {document['run']}"
        place = f"{document['symbol']} {document['session']}{run}"
        yield f"memories, answers and the rest: paperdesk why {place} --full", "quiet"


def folds(shown: Row) -> Iterator[Fold]:
    """The parts of a decision's trail behind its first screen: those that it has."""
    owners = _opinions(shown)
    name, answers, recalled = "Opinions" if len(owners) > 1 else "Reason", shown["answers"], shown["recollections"]
    yield Fold(name, "in full", lambda width: _in_full(owners, width))
    if recalled:
        about = f"{len(recalled)} recalled, {sum(one['cited'] for one in recalled)} cited"
        yield Fold("Memory", about, lambda width: _by_owner(MEMORY, shown, width))
    if answers or shown["unanswered"]:
        yield Fold("Answers", f"{len(answers)} of agents", lambda width: _answers(shown, width))
    if (debate := shown.get("debate")) is not None:
        about = f"{len(debate['owners'])} owners, {len(debate['comments'])} comments"
        yield Fold("Debate", about, lambda width: _debate(debate, shown["owner"], width))
    if moves := sum(len(order["moves"]) for order in shown["orders"]):
        yield Fold("Order", f"in {counted(moves, 'step')}", lambda width: _orders(shown, width))
    if answers:
        yield Fold(PROMPTS, f"{len(answers)} in full", lambda width: _by_owner(QUESTIONS, shown, width))


def _opinions(shown: Row) -> list[Row]:
    """The opinions that a decision rests on: those that were combined, else its own reason as its owner's."""
    return combined_opinions(shown) or [shown]


Part = tuple[
    str, Callable[[Row], str], Callable[[int, Row, int], Iterator[Line]], Callable[[Row, Row, int], Iterator[Line]]
]
"""A part of a trail by owners: the name of its rows, the key that one text has, its heading by number and width, and
its text."""


def _by_owner(part: Part, shown: Row, width: int) -> Iterator[Line]:
    """A part of each owner's opinion, under its name where there are several; a text that several have stands once."""
    name, same, heading, text = part
    opinions = _opinions(shown)
    seen: dict[str, str] = {}
    for one in opinions:
        owner = one["owner"]
        if len(opinions) > 1:
            yield from section(one_line(owner))
        for number, row in enumerate((row for row in shown[name] if row["owner"] == owner), 1):
            yield from heading(number, row, width)
            if (before := seen.setdefault(same(row), owner)) == owner:
                yield from text(row, {**shown, "reason": one["reason"]}, width)
            else:
                yield f"    as under {one_line(before)}", "quiet"


def _in_full(opinions: Sequence[Row], width: int) -> Iterator[Line]:
    for one in opinions:
        if len(opinions) > 1:
            yield f"  {one_line(one['owner'])}: {opinion_words(one)}", "strong"
        yield from paragraph(one["reason"] or "no reason was given", width)


def _call_facts(answer: Row) -> str:
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


def _recalled(number: int, memory: Row, width: int) -> Iterator[Line]:
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


def _called(number: int, answer: Row, width: int) -> Iterator[Line]:
    again = f", attempt {answer['attempt']}" if answer["attempt"] > 1 else ""
    view = one_line(answer["view"])
    yield f"  {number} {one_line(answer['agent'])}{again}" + (f"  ({view})" if view else ""), "strong"


def _answer(answer: Row, shown: Row, width: int) -> Iterator[Line]:
    yield from ((f"    {line}", "quiet") for line in wrapped(one_line(_call_facts(answer)), width - 4))
    if answer["answer"] is not None:
        yield from paragraph(answer_text(_unshown(answer["answer"], shown)), width, "    ")
    if answer["outcome"] != "answered":
        yield from paragraph(f"{answer['outcome']}: {answer['reason']}", width, "    ", "warn")
        if answer["text"]:
            yield from paragraph(f"it had said: {one_line(answer['text'])[:600]}", width, "    ")


def _answers(shown: Row, width: int) -> Iterator[Line]:
    for call in shown["unanswered"]:
        yield from paragraph(_unanswered(call), width, "  ", "quiet" if call["kind"] == "preflight" else "warn")
    yield from _by_owner(ANSWERS, shown, width)


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


def _prompts(answer: Row, shown: Row, width: int) -> Iterator[Line]:
    """The question to an agent, word for word."""
    for message in ({"role": "system", "text": answer["system"]}, *answer["messages"]):
        yield f"    --- {message['role']}", "quiet"
        yield from paragraph(message["text"], width, "    | ")
    yield "    ---", "quiet"


MEMORY: Part = (
    "recollections",
    lambda row: str(row["id"]),
    _recalled,
    lambda row, shown, width: paragraph(cut(one_line(row["text"]), 2 * width), width, "    "),
)
ANSWERS: Part = ("answers", lambda row: f"{row['agent']} {row['answer']}", _called, _answer)
QUESTIONS: Part = ("answers", lambda row: f"{row['agent']} {row['prompt_hash']}", _called, _prompts)


def _orders(shown: Row, width: int) -> Iterator[Line]:
    for order in shown["orders"]:
        yield f"  {order_words(order)}  ({order['id']})", ""
        for move in order["moves"]:
            time = f"{datetime.fromisoformat(move['time']):%Y-%m-%d %H:%M:%S}"
            yield from paragraph(f"{time} UTC  {state_words(move['state'], move['detail'])}", width, "    ")
        yield from ((f"    {trade_words(fill)}", "") for fill in order["fills"])


def _debate(debate: Row, owner: str, width: int) -> Iterator[Line]:
    """A debate: who stood where, who changed its mind, who was right, and who said what. Of the comments those by and
    to `owner`, where it has a part of its own; else all."""
    title = "Debate" if debate["decides"] else "Debate after the trade"
    rounds = counted(debate["rounds"], "round") if debate["rounds"] else "no round"
    yield from section(", ".join(filter(None, (f"{title}: {rounds}", _ENDS.get(debate["ended"])))))
    owners = [one["owner"] for one in debate["owners"]]
    for one in debate["owners"]:
        yield from paragraph(_stand(one), width, "  ", "strong" if one["changed"] else "")
    for said in debate["comments"]:
        if owner not in owners or owner in (said["author"], said["receiver"]):
            names = f"{one_line(said['author'])} to {one_line(said['receiver'])}, {said['stance']}"
            yield from paragraph(f"{said['round']}. {names}: {one_line(said['text'])}", width, "    ")


def _stand(one: Row) -> str:
    """`bull: hold (0.40), then slightly increase (0.55), changed its mind; right +1.20 % after 1 session`."""
    stated = [_advice_words(advice) for advice in one["advice"]]
    told = stated[:1] + [after for before, after in pairwise(stated) if after != before]
    changed = ", changed its mind" if one["changed"] else ""
    results = [
        f"{'right' if found['result'] > 0 else 'wrong'} {amounts.percent(found['result'])} after {found['sessions']}"
        for found in one["results"]
        if found["result"]
    ]
    outcome = f"; {', '.join(results)} session{'' if results[-1].endswith(' 1') else 's'}" if results else ""
    return f"{one_line(one['owner'])}: {', then '.join(told)}{changed}{outcome}"


def _advice_words(advice: Row) -> str:
    """`slightly increase (0.55)`, `abstained (the reason)`."""
    if advice["advice"] is None:
        return f"abstained ({one_line(advice['reason'])})"
    stated = "" if advice["confidence"] is None else f" ({advice['confidence']:.2f})"
    return f"{advice['advice']}{stated}"
