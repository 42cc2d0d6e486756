"""A decision as a card: why, the strongest reason of each side, dissent and what the limits changed, in words that
every front end shows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from engine.domain.text import one_line
from engine.reports import amounts

Row = Mapping[str, Any]
SIDES = {"hold": "For holding", "rise": "For a rise", "fall": "For a fall"}
SHORT = 240
"""Characters of a text of the short form."""
_LONGEST_ACTION = 90
"""Characters before the colon of a reason that can be the action and its rule."""
_RULE = re.compile(r'"([^"]+)"$')
_END = re.compile(r"\.(?= \D)|;(?= [A-Z])")
"""The end of a sentence, also of those that stand in one: behind "Sept." stands a figure."""


def card(shown: Row) -> Iterator[str]:
    """The short form of a decision's trail, a line for each of what there is to say."""
    if reason := first_reason(shown):
        yield f"{'No decision' if shown['abstained'] else 'Why'}: {sentences(reason)}"
    yield from (f"{label}: {sentences(texts[0])}" for label, texts in reasons(shown).items() if texts)
    if shown["dissent"]["otherwise"]:
        yield f"Dissent: {dissent_words(shown)}"
    yield from (f"Limits: {cut_words(cut)}" for cut in shown["cuts"])


def is_listed(decided: Row) -> bool:
    """True for a decision that the page lists: more than HOLD, or changed by the limits."""
    return bool(decided["action"] != "HOLD" or decided["cut"])


def results(shown: Row) -> Iterator[str]:
    """The line of its results so far; none where no close has followed."""
    known = [f"+{one['sessions']} {moved(one)}" for one in shown["closes_since"]]
    if known:
        yield f"Came of it: {'  '.join(known)}"


def moved(later: Row) -> str:
    """The result of a trade at a close after it; without a trade the change of the price."""
    return amounts.percent(later["change"] if later["result"] is None else later["result"])


def first_reason(shown: Row, *, ruled: bool = True) -> str:
    """The first line of a reason; without the action, which stands before it, where a rule begins with it, and without
    that rule where it is not wanted."""
    rule, text = rule_and_reason(shown["asked"]["action"], one_line(shown["reason"].split("\n", 1)[0]))
    text = f"{text[:1].upper()}{text[1:]}"
    return f"{text.removesuffix('.')} ({rule})." if rule and ruled else text


def rule_and_reason(action: str, text: str) -> tuple[str, str]:
    """The rule that a reason on one line names after the action that it begins with, empty for none, and the rest."""
    head, _, rest = text.partition(":")
    if not rest.strip() or len(head) > _LONGEST_ACTION or head.split(" ", 1)[0] != action:
        return "", text
    rule = _RULE.search(head)
    return rule[1] if rule else "", rest.strip()


def reasons(shown: Row) -> dict[str, list[str]]:
    """The reasons of each side, the strongest first: of a trade for and against it, else for what each side would
    do. The first of several owners who agree names the others."""
    trades = shown["asked"]["action"] in ("BUY", "SELL")
    sides: dict[str, list[str]] = {"For": [], "Against": []} if trades else {name: [] for name in SIDES.values()}
    opinions = [one for one in shown["reasons"] if not one["source"]]
    for one in shown["reasons"]:
        label = ("For" if one["for"] else "Against") if trades else SIDES[one["side"]]
        others = [other["owner"] for other in opinions if other is not one and other["side"] == one["side"]]
        sides[label].append(_reason(one, shown["owner"], [] if one["source"] or sides[label] else others))
    return sides


def _reason(one: Row, decider: str, others: Sequence[str]) -> str:
    owner = "" if one["owner"] == decider else one_line(one["owner"])
    text, agent = one_line(one["text"]), one_line(one["source"]).partition(" ")[0]
    agree = f" ({', '.join(map(one_line, others))} agree{'s' if len(others) == 1 else ''})" if others else ""
    return f"{', '.join(filter(None, (owner, agent)))}{agree}: {text}{'' if text[-1:] in '.!?…' else '.'}"


def sentences(text: str, most: int = SHORT) -> str:
    """The sentences of a text that fit into so many characters, SHORT at most; all of it where not even the first one
    does."""
    most = min(most, SHORT)
    ends = [found.start() for found in _END.finditer(text) if found.start() < most]
    return f"{text[: ends[-1]]}." if ends and len(text) > most else text


def dissent_words(shown: Row) -> str:
    """`trend BUY 4 %, confidence 0.44; 1 BUY, 2 HOLD`, or of agents `1 of 2: news bearish`."""
    dissent = shown["dissent"]
    others = ", ".join(_voice(one, shown["owner"]) for one in dissent["otherwise"])
    voices = sum(dissent["votes"].values())
    if dissent["of"] == "agents":
        if not others:
            return f"none of {voices} that took a side" if voices else "no agent took a side"
        return f"{len(dissent['otherwise'])} of {voices}: {others}"
    votes = ", ".join(f"{count} {said}" for said, count in dissent["votes"].items()) or "no owner has an opinion"
    silent = f", {dissent['abstained']} abstained" if dissent["abstained"] else ""
    return f"{others or 'none'}; {votes}{silent}"


def _voice(one: Row, decider: str) -> str:
    if not one["agent"]:
        return f"{one_line(one['owner'])} {opinion_words({**one, 'action': one['stated']})}"
    whose = "" if one["owner"] == decider else f"{one_line(one['owner'])}'s "
    return f"{whose}{one_line(one['agent'])} {one['stated']}"


def action_words(decided: Row) -> str:
    """`BUY 7 %`, `HOLD`."""
    return f"{decided['action']} {amounts.size(decided['size'])} %" if decided["size"] else str(decided["action"])


def opinion_words(opinion: Row) -> str:
    """`BUY 7 %, confidence 0.8`, `HOLD`."""
    confidence = opinion["confidence"]
    return action_words(opinion) + ("" if confidence is None else f", confidence {confidence:g}")


def percent(size: str) -> str:
    """A size in percent of the portfolio, as exact as it was asked for."""
    return f"{amounts.number(size):.4f}".rstrip("0").rstrip(".") + " %"


def cut_words(cut: Row) -> str:
    """`10 % to 7 % by cash floor: ...`."""
    return f"{percent(cut['asked'])} to {percent(cut['allowed'])} by {cut['rule']}: {one_line(cut['reason'])}"
