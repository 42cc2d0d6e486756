"""A recorded decision beside the same one decided again: its differences, and those of what led to it.

Attribution: the change that each input made in a decision, by deciding again without it.

A signed size is the size that is traded in percent of the portfolio: positive for a purchase, negative for a sale, 0
for HOLD and for an abstention. A change is the signed size without the input less the recorded one. Inputs act
together, so the changes of single inputs do not add up to that of all of them: the rest is the remainder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np

from engine.conventions.metrics import mean_interval
from engine.domain.decision import DIRECTIONS, Decision
from engine.domain.market import Symbol
from engine.domain.model_call import AnswerRecord
from engine.domain.order import ZERO, Order, is_own
from engine.domain.run import ModelUse
from engine.journal.entries import Recalled, RunEntry, Trail
from engine.session.cost_meter import use_of

Field = str | tuple[str, ...]
"""A field as text, or as a line for each of its entries."""


@dataclass(frozen=True, slots=True)
class Change:
    """One field that differs; empty where a side has none."""

    what: str
    then: Field
    now: Field


@dataclass(frozen=True, slots=True)
class AnswerChange:
    """An agent that answered something else, or was asked on one side alone. `fields` differ between the two answers;
    `same_question` is True where it read the same text and charts."""

    agent: str
    then: AnswerRecord | None
    now: AnswerRecord | None
    fields: tuple[Change, ...] = ()
    same_question: bool = False


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """A memory that was recalled on one side alone, or at another place among those that were."""

    then: Recalled | None
    now: Recalled | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """One owner's decision on both sides, None where an owner had none there; `decision` is what differs in it and
    its order."""

    then: Trail | None
    now: Trail | None
    decision: tuple[Change, ...]
    answers: tuple[AnswerChange, ...]
    memories: tuple[MemoryChange, ...]

    @property
    def same(self) -> bool:
        """True where the decision is the same, whatever led to it."""
        return not self.decision

    @property
    def same_throughout(self) -> bool:
        """True where what led to it is the same too."""
        return not (self.decision or self.answers or self.memories)


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes to the run for another decision; None and nothing leave it as it was.

    model: the model that answers every agent; `replay` has recorded answers alone.
    without: steps to leave out, beside those that the run left out.
    altered: the input that is another one (engine.lab.altered_inputs), empty: none.
    """

    preset: str | None = None
    model: str | None = None
    without: tuple[str, ...] = ()
    altered: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Redecided:
    """Both sides of a symbol's decisions of a session.

    run: the run that decided then.
    symbol: the symbol that was decided on.
    session: the session that was decided on.
    preset, label: who decided now.
    changes: what was asked to be changed.
    comparisons: one for each owner.
    notes: remarks on the inputs that a reader has to know.
    """

    run: RunEntry
    symbol: Symbol
    session: date
    preset: str
    changes: Changes
    label: str
    comparisons: tuple[Comparison, ...]
    notes: tuple[str, ...] = ()


def compared(then: Sequence[Trail], now: Sequence[Trail]) -> tuple[Comparison, ...]:
    """Both sides' decisions of a symbol, paired by owner; where there is one on each side, whoever it is."""
    if len(then) == len(now) == 1:
        return (_comparison(then[0], now[0]),)
    before = {trail.decision.key.owner: trail for trail in then}
    after = {trail.decision.key.owner: trail for trail in now}
    return tuple(_comparison(before.get(owner), after.get(owner)) for owner in dict.fromkeys((*before, *after)))


def _comparison(then: Trail | None, now: Trail | None) -> Comparison:
    return Comparison(then, now, _changes(_decision(then), _decision(now)), _answers(then, now), _memories(then, now))


def order_changes(then: Sequence[Order], now: Sequence[Order]) -> tuple[Change, ...]:
    """Orders that are on one side alone, as text; `id` as the orders have it."""
    return _changes({order.id: _order(order) for order in then}, {order.id: _order(order) for order in now})


def _changes(then: Mapping[str, Field], now: Mapping[str, Field]) -> tuple[Change, ...]:
    """The fields that are on one side alone, or differ."""
    return tuple(
        Change(name, then.get(name, ""), now.get(name, ""))
        for name in dict.fromkeys((*then, *now))
        if then.get(name) != now.get(name)
    )


def decision_fields(made: Decision) -> dict[str, Field]:
    """All parts of a decision as text, in the order in which they are shown."""
    asked = made.proposal
    return {
        "action": f"{made.action.value} {_percent(made.size)}" if made.size else made.action.value,
        "rule": "" if asked.rule is None else asked.rule.value,
        "asked for": f"{asked.action.value} {_percent(made.requested_size)}"
        if made.requested_size
        else asked.action.value,
        "limits": tuple(f"{_percent(c.asked)} to {_percent(c.allowed)} by {c.rule}: {c.reason}" for c in made.cuts),
        "explanation": made.reason,
        "unresolved figures": made.unresolved_figures,
        "evidence": made.evidence,
    }


def _decision(trail: Trail | None) -> dict[str, Field]:
    if trail is None:
        return {}
    decided = [entry.order for entry in trail.orders if not is_own(entry.order.id)]
    return decision_fields(trail.decision) | {"order": tuple(map(_order, decided))}


def _order(order: Order) -> str:
    much = f"for {order.notional}" if order.notional is not None else f"of {(order.quantity or Decimal(0)):f} shares"
    return f"{order.side.value} {order.symbol} {much}" + (f" ({order.reason})" if order.reason else "")


def _answers(then: Trail | None, now: Trail | None) -> tuple[AnswerChange, ...]:
    before, after = _last_answers(then), _last_answers(now)
    changes = []
    for place in dict.fromkeys((*before, *after)):
        old, new = before.get(place), after.get(place)
        if old is None or new is None:
            changes.append(AnswerChange(place[0], old, new))
        elif (old.answer, old.reason) != (new.answer, new.reason):
            fields = _fields(old.answer or {"abstained": old.reason}, new.answer or {"abstained": new.reason})
            changes.append(AnswerChange(place[0], old, new, fields, old.prompt_hash == new.prompt_hash))
    return tuple(changes)


def _last_answers(trail: Trail | None) -> dict[tuple[str, str, int], AnswerRecord]:
    """Each agent's final answers, by agent, owner (empty for the one who decides) and number of its questions before:
    some agents are asked twice in a cycle."""
    found: dict[tuple[str, str, int], AnswerRecord] = {}
    count: Counter[tuple[str, str]] = Counter()
    answers, decider = ((), "") if trail is None else (trail.answers, trail.decision.key.owner)
    for entry in answers:
        if entry.outcome != "sent back":
            place = entry.agent, "" if entry.key.owner == decider else entry.key.owner
            found[*place, count[place]] = entry
            count[place] += 1
    return found


def _fields(then: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[Change, ...]:
    return tuple(
        Change(name.replace("_", " "), _text(then.get(name)), _text(now.get(name)))
        for name in dict.fromkeys((*then, *now))
        if then.get(name) != now.get(name)
    )


def _text(value: Any) -> Field:
    return tuple(_parts(value)) if isinstance(value, (Mapping, list, tuple)) else _line(value)


def _line(value: Any) -> str:
    if isinstance(value, (Mapping, list, tuple)):
        return ", ".join(_parts(value))
    return "" if value is None else str(value)


def _parts(value: Mapping[str, Any] | Sequence[Any]) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from (f"{name.replace('_', ' ')}: {line}" for name, part in value.items() if (line := _line(part)))
    else:
        yield from map(_line, value)


def _memories(then: Trail | None, now: Trail | None) -> tuple[MemoryChange, ...]:
    before = {one.memory.id: one for one in (() if then is None else then.recalled)}
    after = {one.memory.id: one for one in (() if now is None else now.recalled)}
    pairs = ((before.get(name), after.get(name)) for name in dict.fromkeys((*before, *after)))
    return tuple(MemoryChange(old, new) for old, new in pairs if _place(old) != _place(new))


def _place(one: Recalled | None) -> tuple[str, int] | None:
    return None if one is None else (one.memory.layer, one.memory.rank)


def _percent(size: Decimal) -> str:
    return f"{size.normalize():f} %"


NOTHING: tuple[str, ...] = ()


def signed_size(made: Decision | None) -> Decimal:
    """The size that a decision trades, in percent of the portfolio, negative for a sale."""
    return ZERO if made is None else Decimal(DIRECTIONS.get(made.action, 0)) * made.size


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One owner's decision with something left out; `now` is None where nobody decided."""

    without: tuple[str, ...]
    then: Decision
    now: Decision | None
    use: ModelUse

    @property
    def change(self) -> Decimal:
        """Signed size now less then, in percent of the portfolio."""
        return signed_size(self.now) - signed_size(self.then)

    @property
    def changed(self) -> bool:
        """True where another action or size came out."""
        return self.now is None or (self.now.action, self.now.size) != (self.then.action, self.then.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributed:
    """A recorded decision and what came out of it with less.

    then: as it was decided.
    unchanged: decided again with nothing left out; it differs where data or a model's answers are not those of then.
    inputs: without each step alone, in the order of the cycle.
    characters: without each of several owners.
    everything: without all of the inputs.
    move: change of the symbol's close over the next session, a fraction; None where it is not known.
    """

    then: Decision
    unchanged: Effect
    inputs: tuple[Effect, ...]
    characters: tuple[Effect, ...]
    everything: Effect
    move: float | None = None

    @property
    def summed(self) -> Decimal:
        """The changes of the single inputs, added up."""
        return sum((one.change for one in self.inputs), ZERO)

    @property
    def remainder(self) -> Decimal:
        """The change without all inputs, less that sum."""
        return self.everything.change - self.summed

    def effect_on_return(self, effect: Effect) -> float | None:
        """The part of the portfolio's return over the next session that leaving something out would have added."""
        return None if self.move is None else float(effect.change) / 100 * self.move


@dataclass(frozen=True, slots=True)
class Attribution:
    """The attribution of the decisions on one symbol and session, one per owner. `unchanged` is the redecision with
    nothing left out, which names the run and who decided."""

    unchanged: Redecided
    decisions: tuple[Attributed, ...]


def arms_of(inputs: Sequence[str], characters: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The names that are left out, arm by arm: nothing, each input, each character, all inputs."""
    return (NOTHING, *((name,) for name in (*inputs, *characters)), tuple(inputs))


def attributed(
    arms: Sequence[Redecided], inputs: Sequence[str], characters: Sequence[str], move: float | None
) -> Attribution:
    """The attribution of each owner's decision from its redecisions, one for every arm of `arms_of`."""
    unchanged, *singles, everything = arms
    steps, owners = singles[: len(inputs)], singles[len(inputs) :]
    assert len(owners) == len(characters)
    decisions = tuple(
        Attributed(
            then=then,
            unchanged=_effect(unchanged, then),
            inputs=tuple(_effect(arm, then) for arm in steps),
            characters=tuple(_effect(arm, then) for arm in owners),
            everything=_effect(everything, then),
            move=move,
        )
        for then in _recorded(unchanged)
    )
    return Attribution(unchanged, decisions)


def _recorded(arm: Redecided) -> Iterator[Decision]:
    return (one.then.decision for one in arm.comparisons if one.then is not None)


def _effect(arm: Redecided, then: Decision) -> Effect:
    now = next((one.now for one in arm.comparisons if one.then is not None and one.then.decision == then), None)
    return Effect(without=arm.changes.without, then=then, now=None if now is None else now.decision, use=_use(now))


def _use(now: Trail | None) -> ModelUse:
    return use_of(() if now is None else now.answers)


Worth = dict[str, Any]
"""The worth of an input over several decisions, a row. `without` names the input; the means, each with its 95 %
interval (None where there are too few sessions) and its `count`, are `changed`, the share of decisions that come out
otherwise without it, `mean_change`, the absolute change of the signed size in percent of the portfolio, and
`return_effect`, of leaving it out on the next session's return, a fraction of the portfolio."""


def input_worths(decisions: Sequence[Attributed]) -> list[Worth]:
    """A row per input and character, in the order in which they come."""
    pairs: dict[str, list[tuple[Effect, float | None]]] = {}
    for one in decisions:
        for effect in (*one.inputs, *one.characters):
            pairs.setdefault(effect.without[0], []).append((effect, one.effect_on_return(effect)))
    return [_worth(name, own) for name, own in pairs.items()]


def input_sensitivity(name: str, arms: Sequence[Redecided]) -> Worth:
    """The worth of an input by the redecisions with it altered, abstentions left out."""
    effects = [_effect(arm, then) for arm in arms for then in _recorded(arm)]
    told = [one for one in effects if not (one.then.abstained or (one.now is not None and one.now.abstained))]
    return _worth(name, [(one, None) for one in told])


def _worth(name: str, effects: Sequence[tuple[Effect, float | None]]) -> Worth:
    sessions = [one.then.key.session for one, _ in effects]
    return {
        "without": name,
        "changed": _mean([float(one.changed) for one, _ in effects], sessions),
        "mean_change": _mean([float(abs(one.change)) for one, _ in effects], sessions),
        "return_effect": _mean([returned for _, returned in effects], sessions),
    }


def _mean(values: Sequence[float | None], sessions: Sequence[date]) -> dict[str, float | None]:
    known = [(value, day) for value, day in zip(values, sessions, strict=True) if value is not None]
    if not known:
        return {"mean": None, "low": None, "high": None, "count": 0}
    days = sorted({day for _, day in known})
    groups = np.array([days.index(day) for _, day in known], dtype=np.intp)
    floats = np.array([value for value, _ in known])
    low, high = mean_interval(floats, groups)
    return {"mean": float(floats.mean()), "low": low, "high": high, "count": len(known)}
