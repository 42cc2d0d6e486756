"""The reasons for and against a decision, and who said otherwise, as the record of it states them.

A reason takes a side where its source says so: an argument that an agent lists as positive or negative, an item with an
effect, a field that holds or opens with bullish, bearish or the like, or with a signal to trade, a cited memory that
opens with its effect, and an owner's opinion by its action; an agent of the user's own says its side itself. Of a text
nothing else is interpreted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.domain.decision import DIRECTIONS, LEANING, Decision, Opinion
from engine.journal.entries import Recalled, Trail
from engine.reports.documents.row_json import Row

Answer = Mapping[str, Any]

SIDES = {"bullish": 1, "positive": 1, "uptrend": 1, "bearish": -1, "negative": -1, "downtrend": -1}
"""The words by which a source takes a side: 1 for a rise of the price, -1 for a fall."""
SIDE_NAMES = {1: "rise", 0: "hold", -1: "fall"}
USUAL_WEIGHT = 5.0
"""The weight of a reason whose source states none: the middle of the scale from 1 to 10."""
NEUTRAL = frozenset({"neutral", "mixed"})

_OPENING = re.compile(r"(?:strong |strongly )?([a-z]+)(?:, \w+ term)?(?:[:.;|]|$)", re.IGNORECASE)
_SIGNAL = re.compile(
    r"(?P<rise>buy|oversold(?: dip)?|together for a purchase)[:.]|(?:sell|overbought|together for a sale)[:.]",
    re.IGNORECASE,
)
"""The opening of a signal of the chart or of the indicators together."""
_UNSAID = frozenset({"query", "queries", "evidence", "rule"})
"""Fields that are for memory, or name what an answer rests on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """A statement that takes a side.

    side: 1 for a rise, -1 for a fall, 0 for holding.
    owner: whose opinion, agent or memory it is.
    source: the agent with the field, the handle of a memory, or empty for an opinion.
    text: as it was stated.
    weight: from 1 to 10: the weight that an item was given, a tenth of a memory's importance, ten times the confidence
        of an opinion, and the middle where none is stated.
    """

    side: int
    owner: str
    source: str
    text: str
    weight: float = USUAL_WEIGHT


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """An owner, or an agent, that took a side: `stated` is an action, or the agent's word.

    size: percent of the portfolio, as the owner asked for it; None for an agent.
    confidence: from 0 to 1; None where none was stated.
    """

    owner: str
    agent: str
    side: int
    stated: str
    size: float | None = None
    confidence: float | None = None


def reason_rows(shown: Trail) -> list[Row]:
    """The reasons behind a decision, strongest first: opinions of several owners, then by weight, a bare word last; one
    text stands once. `for` is true on the side of the trade that was asked for."""
    asked = _asked(shown.decision)
    found: dict[tuple[str, str], Reason] = {}
    for one in sorted(_reasons(shown), key=_place):
        found.setdefault((one.source if one.text.casefold() in SIDES else "", one.text.casefold()), one)
    return [
        {
            "for": one.side == asked,
            "side": SIDE_NAMES[one.side],
            "owner": one.owner,
            "source": one.source,
            "text": one.text,
            "weight": one.weight,
        }
        for one in found.values()
    ]


def _place(one: Reason) -> tuple[bool, float, bool]:
    return bool(one.source), -one.weight, one.text.casefold() in SIDES


def dissent_row(shown: Trail) -> Row:
    """Counts of those who took a side, the ones among them on another side than what was asked for, and the number of
    owners that abstained."""
    answers = [(one.key.owner, one.agent, one.answer or {}) for one in shown.answers if one.outcome == "answered"]
    voices = voices_of(shown.decision, shown.opinions, answers)
    votes: dict[str, int] = {}
    for one in voices:
        votes[one.stated] = votes.get(one.stated, 0) + 1
    return {
        "of": "owners" if len(shown.opinions) > 1 else "agents",
        "votes": votes,
        "abstained": sum(one.abstained for one in shown.opinions) if len(shown.opinions) > 1 else 0,
        "otherwise": [
            {
                "owner": one.owner,
                "agent": one.agent,
                "stated": one.stated,
                "size": one.size,
                "confidence": one.confidence,
            }
            for one in otherwise(shown.decision, voices)
        ],
    }


def voices_of(
    decision: Decision, opinions: Sequence[Opinion], answers: Iterable[tuple[str, str, Answer]]
) -> list[Voice]:
    """Those that took a side about a decision: the owners where there are several, else the agents, by the answers
    of each owner's agents."""
    if len(opinions) > 1:
        return [_vote(one) for one in opinions if not one.abstained]
    found = []
    for owner, agent, answer in answers:
        side = side_of(answer)
        if side and owner == decision.key.owner:
            found.append(Voice(owner=owner, agent=agent, side=side, stated="bullish" if side > 0 else "bearish"))
    return found


def otherwise(decision: Decision, voices: Iterable[Voice]) -> list[Voice]:
    """The voices on another side than the trade that was asked for; none where there was no decision."""
    return [] if decision.abstained else [one for one in voices if one.side != _asked(decision)]


def side_of(answer: Answer) -> int | None:
    """The side of an agent's report: that of its sentiment, else of its items by effect and weight; 0 for neither, None
    for a report that states none."""
    if own := _own_side(answer):
        return own
    stated = answer.get("sentiment")
    if isinstance(stated, str) and stated.casefold() in SIDES.keys() | NEUTRAL:
        return SIDES.get(stated.casefold(), 0)
    items = [one for value in answer.values() if isinstance(value, list) for one in value if _has_effect(one)]
    if not items:
        return None
    net = sum(side * weight for side, _, weight in map(_item, items))
    return (net > 0) - (net < 0)


def _asked(decision: Decision) -> int | None:
    """The side of what was asked for, before any limit; None for an abstention."""
    return None if decision.abstained else DIRECTIONS.get(decision.proposal.action, 0)


def _vote(opinion: Opinion) -> Voice:
    return Voice(
        owner=opinion.key.owner,
        agent="",
        side=DIRECTIONS.get(opinion.action, 0),
        stated=opinion.action.value,
        size=float(opinion.size),
        confidence=None if opinion.confidence is None else float(opinion.confidence),
    )


def _reasons(shown: Trail) -> Iterator[Reason]:
    decided = [one for one in shown.opinions if one.key.owner != shown.decision.key.owner and not one.abstained]
    # Of owners who each have a book, the others' opinions are reasons for their own decisions.
    combined = decided if all(one.key != shown.decision.key for one in shown.opinions) else []
    for opinion in combined:
        weight = USUAL_WEIGHT if opinion.confidence is None else float(opinion.confidence) * 10
        side, owner = DIRECTIONS.get(opinion.action, 0), opinion.key.owner
        yield Reason(side=side, owner=owner, source="", text=opinion.reason, weight=weight)
    given = {shown.decision.reason, *(one.reason for one in shown.opinions)}
    for entry in shown.answers:
        if entry.outcome == "answered" and entry.answer is not None:
            if own := _own_side(entry.answer):
                text = str(entry.answer.get("reason") or "; ".join(_fields(entry.answer)))
                yield Reason(side=own, owner=entry.key.owner, source=entry.agent, text=text)
            for side, field, text, weight in _stated(entry.answer):
                if text not in given:
                    source = f"{entry.agent} {field}".strip()
                    yield Reason(side=side, owner=entry.key.owner, source=source, text=text, weight=weight)
    yield from filter(None, map(_remembered, shown.recalled))


def _own_side(answer: Answer) -> int:
    """The side that an agent of the user's own has stated; 0 for none."""
    side = answer.get(LEANING)
    return side if isinstance(side, int) and side in SIDE_NAMES else 0


def _fields(answer: Answer) -> Iterator[str]:
    """The fields of an answer that are texts, by name."""
    yield from (f"{name.replace('_', ' ')}: {value}" for name, value in answer.items() if isinstance(value, str))


def _remembered(one: Recalled) -> Reason | None:
    """A memory that is cited, where it opens with its effect."""
    memory, side = one.memory, _opening_side(one.memory.text)
    if not side or not one.cited:
        return None
    source = f"{memory.handle}, {memory.kind} of {memory.session}"
    return Reason(side=side, owner=one.owner, source=source, text=memory.text, weight=memory.importance / 10)


def _stated(answer: Answer, within: str = "") -> Iterator[tuple[int, str, str, float]]:
    """Side, field, text and weight of every statement of an answer that takes a side."""
    for name, value in answer.items():
        field = f"{within} {name.replace('_', ' ')}".strip()
        if name in _UNSAID:
            continue
        if isinstance(value, Mapping):
            yield from _stated(value, field)
        elif isinstance(value, list):
            yield from _listed(field, value)
        elif isinstance(value, str) and value.casefold() in SIDES:
            yield SIDES[value.casefold()], field, str(answer.get("reason") or value), USUAL_WEIGHT
        elif isinstance(value, str) and (side := _opening_side(value) or _signal_side(value)):
            yield side, field, value, USUAL_WEIGHT


def _listed(field: str, entries: Sequence[Any]) -> Iterator[tuple[int, str, str, float]]:
    for entry in entries:
        if isinstance(entry, str) and field in SIDES:
            yield SIDES[field], "", entry, USUAL_WEIGHT
        elif _has_effect(entry):
            side, text, weight = _item(entry)
            if side:
                yield side, "", text, weight


def _has_effect(entry: Any) -> bool:
    return isinstance(entry, Mapping) and isinstance(entry.get("effect"), str)


def _item(entry: Mapping[str, Any]) -> tuple[int, str, float]:
    """Side, text and weight of an item; one that does not concern the company takes none."""
    side = SIDES.get(entry["effect"].casefold(), 0) if entry.get("concerns_company", True) else 0
    return side, str(entry.get("summary", "")), float(entry.get("weight", USUAL_WEIGHT))


def _opening_side(text: str) -> int:
    opening = _OPENING.match(text)
    return SIDES.get(opening[1].casefold(), 0) if opening else 0


def _signal_side(text: str) -> int:
    signal = _SIGNAL.match(text)
    return 0 if signal is None else 1 if signal["rise"] else -1
