"""The reasons for and against a decision, and who said otherwise, as their sources state it.

A source takes a side by a field of its answer: a sentiment, the effect of an item, a list of positive or negative
arguments, the side of an agent of the user's own, and the action of an owner's opinion. No text is interpreted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.domain.decision import DIRECTIONS, LEANING, Decision, Opinion
from engine.journal.entries import Trail
from engine.reports.documents import row_json
from engine.reports.documents.row_json import Row

Answer = Mapping[str, Any]

SIDES = {"bullish": 1, "positive": 1, "bearish": -1, "negative": -1}
"""The words by which a field takes a side: 1 for a rise of the price, -1 for a fall."""
_VIEWS = {1: "bullish", 0: "neutral", -1: "bearish"}
SIDE_NAMES = {1: "rise", 0: "hold", -1: "fall"}
USUAL_WEIGHT = 5.0
"""The weight of a reason whose source states none: the middle of the scale from 1 to 10."""


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
    """The reasons behind a decision, strongest first: opinions of several owners, then by weight (that of an item, ten
    times an opinion's confidence, else the middle); one text stands once. `for` is true on the side of the trade that
    was asked for."""
    found: dict[str, Row] = {}
    for row in sorted(_reasons(shown), key=lambda row: (bool(row["source"]), -row["weight"])):
        found.setdefault(row["text"].casefold(), row)
    asked = _asked(shown.decision)
    return [{"for": row["side"] == asked, **row, "side": SIDE_NAMES[row["side"]]} for row in found.values()]


def dissent_row(shown: Trail) -> Row:
    """Counts of those who took a side, the ones among them on another side than what was asked for, and the number of
    owners that abstained."""
    answers = [(one.key.owner, one.agent, one.answer or {}) for one in shown.answers if one.outcome == "answered"]
    voices = voices_of(shown.decision, shown.opinions, answers)
    votes: dict[str, int] = {}
    for one in voices:
        votes[one.stated] = votes.get(one.stated, 0) + 1
    several = len(shown.opinions) > 1
    return {
        "of": "owners" if several else "agents",
        "votes": votes,
        "abstained": sum(one.abstained for one in shown.opinions) if several else 0,
        "otherwise": [
            row_json.fields(one, "owner", "agent", "stated", "size", "confidence")
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
    sided = ((owner, agent, side_of(answer)) for owner, agent, answer in answers if owner == decision.key.owner)
    return [Voice(owner=owner, agent=agent, side=side, stated=_VIEWS[side]) for owner, agent, side in sided if side]


def otherwise(decision: Decision, voices: Iterable[Voice]) -> list[Voice]:
    """The voices on another side than the trade that was asked for; none where there was no decision."""
    return [] if decision.abstained else [one for one in voices if one.side != _asked(decision)]


FACT_FIELDS = ("summary", "explanation", "reason", "short_term", "lessons", "effectiveness", "self_evaluation")
"""Fields of an answer that tell its fact where no statement takes a side, the first that it has."""
_VERDICT = re.compile(r"^(?:Effective|Ineffective|Mixed): (?=\d+ of )")
"""The rules' word for a share of right trades, which reads as one for the loss behind it; the share follows."""


def agent_rows(shown: Answer) -> list[Row]:
    """The agents behind a decision's document that answered, in their order: the side of each in a word, how many of
    its statements that take one take this one, and the weightiest of those, else what it says first. Whoever gave the
    reason of the decision, or of an opinion, is left out."""
    reasons = [shown["reason"], *(one["reason"] for one in shown["opinions"])]
    given = [*reasons, *(reason.partition("\n")[0] for reason in reasons)]
    rows = []
    for one in shown["answers"]:
        if one["outcome"] != "answered" or not isinstance(answer := one["answer"], Mapping):
            continue
        side = side_of(answer)
        stated = list(_stated(answer))
        agreeing = [statement for statement in stated if statement[0] == side]
        fields = (answer.get(name) for name in FACT_FIELDS)
        first = next((text[0] if isinstance(text, list) else text for text in fields if text), "")
        fact = str(max(agreeing, key=lambda statement: statement[3])[2] if agreeing else first)
        if not fact or any(reason.startswith(fact) or reason.endswith(fact) for reason in given):
            continue
        rows.append(
            {
                "owner": one["owner"],
                "agent": one["agent"],
                "view": "" if side is None else _VIEWS[side],
                "strength": f"{len(agreeing)} of {len(stated)}" if agreeing else "",
                "fact": _VERDICT.sub("", fact),
            }
        )
    return rows


def side_of(answer: Answer) -> int | None:
    """The side of an agent's report: its own, that of its sentiment, else of its items by effect and weight; 0 for
    neither, None for a report that states none."""
    if own := _own_side(answer):
        return own
    stated = answer.get("sentiment")
    if isinstance(stated, str) and stated in (*SIDES, "neutral"):
        return SIDES.get(stated, 0)
    read = [SIDES.get(one["side"], 0) for one in answer.values() if isinstance(one, Mapping) and "side" in one]
    if read:
        return (sum(read) > 0) - (sum(read) < 0)
    items = [one for value in answer.values() if isinstance(value, list) for one in value if _has_effect(one)]
    net = sum(_side(one) * one["weight"] for one in items)
    return (net > 0) - (net < 0) if items else None


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


def _reasons(shown: Trail) -> Iterator[Row]:
    """Side, owner, source (the agent with the field, empty for an opinion), text and weight of every reason."""
    decided = [one for one in shown.opinions if one.key.owner != shown.decision.key.owner and not one.abstained]
    # Of owners who each have a book, the others' opinions are reasons for their own decisions.
    for one in decided if all(one.key != shown.decision.key for one in shown.opinions) else []:
        weight = USUAL_WEIGHT if one.confidence is None else float(one.confidence) * 10
        yield _row(DIRECTIONS.get(one.action, 0), one.key.owner, "", one.reason, weight)
    given = {shown.decision.reason, *(one.reason for one in shown.opinions)}
    for entry in shown.answers:
        if entry.outcome == "answered" and entry.answer is not None:
            for side, field, text, weight in _stated(entry.answer):
                if text not in given:
                    yield _row(side, entry.key.owner, f"{entry.agent} {field}".strip(), text, weight)


def _row(side: int, owner: str, source: str, text: str, weight: float) -> Row:
    return {"side": side, "owner": owner, "source": source, "text": text, "weight": weight}


def _stated(answer: Answer) -> Iterator[tuple[int, str, str, float]]:
    """Side, field, text and weight of every statement of an answer that takes a side."""
    if own := _own_side(answer):
        words = (f"{name.replace('_', ' ')}: {value}" for name, value in answer.items() if isinstance(value, str))
        yield own, "", str(answer.get("reason") or "; ".join(words)), USUAL_WEIGHT
    for name, value in answer.items():
        if isinstance(value, str) and value in SIDES:
            field = name.replace("_", " ")
            yield SIDES[value], field, str(answer.get("reason") or f"The {field} is {value}."), USUAL_WEIGHT
        if isinstance(value, Mapping) and (side := SIDES.get(value.get("side", ""))):
            yield side, name.replace("_", " "), str(value.get("signal", "")), USUAL_WEIGHT
        for one in value if isinstance(value, list) else ():
            if isinstance(one, str) and name in SIDES:
                yield SIDES[name], "", one, USUAL_WEIGHT
            elif _has_effect(one) and _side(one):
                yield _side(one), "", str(one.get("summary", "")), float(one["weight"])


def _own_side(answer: Answer) -> int:
    """The side that an agent of the user's own has stated; 0 for none."""
    side = answer.get(LEANING)
    return side if isinstance(side, int) and side in SIDE_NAMES else 0


def _has_effect(item: Any) -> bool:
    """True for an item that a report has judged."""
    return isinstance(item, Mapping) and isinstance(item.get("effect"), str) and isinstance(item.get("weight"), int)


def _side(item: Answer) -> int:
    """The side of an item; one that does not concern the company takes none."""
    return SIDES.get(item["effect"], 0) if item.get("concerns_company", True) else 0
