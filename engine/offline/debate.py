"""Rules for the agents of a debate: comments by the evidence that a character prefers, and advice reconsidered by
comments that name such evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.agents.character import Traits
from engine.agents.debate import Case, CommentView, ReconsiderView
from engine.domain.decision import LAYERS, Advice, Comment, Recollection, Stance
from engine.offline.memories import LayerLeaning, is_reflection, lean_by_layer, memory_sentence, preference, tone
from engine.offline.reading import clean, ended

READS = 0.3
"""Tone from which on another's memories, read by one's own preferences, move what one would advise."""
MOVES = {"risk-seeking": (0.5, 1.0), "risk-averse": (1.0, 0.5)}
"""Pressure from which on advice moves up and down a level, by risk appetite: it takes less to where the character
leans."""
_NEUTRAL = (0.75, 0.75)
UNGROUNDED = 0.5
"""Weight of a comment that names no memory."""


def comment(view: CommentView) -> Mapping[str, Any]:
    """Answer as Comments, as plain JSON."""
    return {"comments": [_remark(view, case) for case in view.others]}


def _remark(view: CommentView, case: Case) -> Mapping[str, Any]:
    """A comment on one case: its memories are read by the own preferences, and what follows is held against its
    advice."""
    layers = lean_by_layer(case.memories)
    read = tone(layers, view.traits)
    wanted = max(-2, min(2, view.own.advice.level + (read > READS) - (read < -READS)))
    way = (wanted > case.advice.level) - (wanted < case.advice.level)
    side = way or (read > 0) - (read < 0)
    named = _strongest(layers, side, view.traits)
    return {
        "to": case.owner,
        "stance": _STANCES[way],
        "text": _text(view, case, way, read, named),
        "about": [] if named is None else [named.handle],
    }


_STANCES = {0: Stance.AGREES.value, 1: Stance.WANTS_MORE.value, -1: Stance.WANTS_LESS.value}


def _strongest(layers: Sequence[LayerLeaning], side: int, traits: Traits) -> Recollection | None:
    """The memory that speaks most for a side, each counted as the character prefers its kind; the other's own
    reflections are no evidence."""
    weighed = [
        (worth * preference(memory, traits) * side, memory)
        for layer in layers
        for memory, worth in layer.rows
        if not is_reflection(memory)
    ]
    fit = [(value, memory) for value, memory in weighed if value > 0]
    return max(fit, key=lambda pair: pair[0])[1] if fit else None


def _text(view: CommentView, case: Case, way: int, read: float, named: Recollection | None) -> str:
    advice, own = case.advice.value.capitalize(), view.own.advice.value
    judged = {
        0: f"{advice} is right by my reading too.",
        1: f"{advice} leaves too small a position; I came to {own}.",
        -1: f"{advice} leaves too large a position; I came to {own}.",
    }[way]
    leaning = "for a rise" if read > READS else "for a fall" if read < -READS else "neither way"
    evidence = f"As I weigh them, the memories that you show speak {leaning}."
    if named is None:
        return f"{judged} {evidence}"
    quoted = ended(memory_sentence(named, 160) or clean(named.kind, 40))
    return f"{judged} {evidence} What counts most is {clean(named.kind, 40)} of {named.session}: {quoted}"


def reconsider(view: ReconsiderView) -> Mapping[str, Any]:
    """Answer as ReconsideredAdvice, as plain JSON: one level further where the comments of this round press that way
    with evidence that the character prefers."""
    latest = [one for one in view.received if one.round == view.round]
    pressure = _pressure(view, latest)
    up, down = MOVES.get(view.traits.risk or "", _NEUTRAL)
    before = view.own.advice.level
    level = before + (pressure >= up) - (pressure <= -down)
    if level < 0 and view.shares <= 0:
        level = 0
    level = max(-2, min(2, level))
    layers = lean_by_layer(view.recollections)
    way = (level > 0) - (level < 0)
    found = {layer.layer: layer.strongest(way, 2 if way else 1) for layer in layers}
    return {
        "evidence": {layer: [memory.handle for memory in found.get(layer, ())] for layer in LAYERS},
        "reason": _reason(view, before, level),
        "action": Advice.of_level(level).value,
        "confidence": _confidence(view, latest, changed=level != before),
        "reply": _reply(latest, before, level),
    }


def _pressure(view: ReconsiderView, comments: Sequence[Comment]) -> float:
    """The mean of the comments by their stance, from -1 to 1, each as weighty as the memories that it names are for
    the character."""
    if not comments:
        return 0.0
    memories = {memory.id: memory for memory in view.own.memories}
    total = 0.0
    for one in comments:
        named = [abs(preference(memories[name], view.traits)) for name in one.about if name in memories]
        weight = min(1.0, sum(named) / len(named)) if named else UNGROUNDED
        total += _WAYS[one.stance] * weight
    return total / len(comments)


_WAYS = {Stance.AGREES: 0, Stance.WANTS_MORE: 1, Stance.WANTS_LESS: -1}


def _confidence(view: ReconsiderView, comments: Sequence[Comment], *, changed: bool) -> float:
    """The confidence of before: more by agreement, less by dissent, and less again where the mind was changed."""
    agree = sum(one.stance is Stance.AGREES for one in comments) / len(comments) if comments else 0.0
    value = float(view.own.confidence) * (1 - 0.5 * view.dissent) + 0.1 * agree - 0.1 * changed
    return round(max(0.05, min(0.95, value)), 2)


def _reason(view: ReconsiderView, before: int, level: int) -> str:
    kept = clean(view.immediate.reason, 1200)
    if level == before:
        return f"{kept} The others' comments change nothing about it."
    change = f"from {Advice.of_level(before).value} to {Advice.of_level(level).value}"
    return f"The others' comments moved the advice {change}. At first: {kept}"


def _reply(comments: Sequence[Comment], before: int, level: int) -> str:
    if not comments:
        return "Nobody commented on my advice."
    moved = (level > before) - (level < before)
    taken = [one.author for one in comments if moved and _WAYS[one.stance] == moved]
    left = [one.author for one in comments if one.stance is not Stance.AGREES and one.author not in taken]
    agreed = [one.author for one in comments if one.stance is Stance.AGREES]
    parts = (
        f"I take up what {', '.join(taken)} said." if taken else "",
        f"What {', '.join(left)} said does not outweigh my evidence." if left else "",
        f"{', '.join(agreed)} agreed." if agreed else "",
    )
    return " ".join(part for part in parts if part)
