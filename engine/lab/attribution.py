"""Attribution: the change that each input made in a decision, by deciding again without it.

A signed size is the size that is traded in percent of the portfolio: positive for a purchase, negative for a sale, 0
for HOLD and for an abstention. A change is the signed size without the input less the recorded one. Inputs act
together, so the changes of single inputs do not add up to that of all of them: the rest is the remainder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

import numpy as np

from engine.conventions.metrics.bootstrap import Interval, mean_interval
from engine.domain.decision import DIRECTIONS, Decision
from engine.domain.portfolio import ZERO
from engine.domain.run import ModelUse
from engine.journal.entries import Trail
from engine.lab.decision_changes import Redecided
from engine.session.cost_meter import use_of

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


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over `count` decisions with its 95 % interval, None where there are too few sessions."""

    value: float | None
    interval: Interval
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InputWorth:
    """The worth of an input over several decisions.

    changed: share of decisions that come out otherwise without it.
    moved: absolute change of the signed size, in percent of the portfolio.
    effect: of leaving it out on the next session's return, a fraction of the portfolio.
    """

    name: str
    changed: Mean
    moved: Mean
    effect: Mean


def input_worths(decisions: Sequence[Attributed], seed: int = 0) -> tuple[InputWorth, ...]:
    """A row per input and character, in the order in which they come."""
    names = dict.fromkeys(effect.without[0] for one in decisions for effect in (*one.inputs, *one.characters))
    return tuple(_worth(name, decisions, seed) for name in names)


def _worth(name: str, decisions: Sequence[Attributed], seed: int) -> InputWorth:
    pairs = [
        (one, effect) for one in decisions for effect in (*one.inputs, *one.characters) if effect.without == (name,)
    ]
    sessions = [one.then.key.session for one, _ in pairs]
    effects = [one.effect_on_return(effect) for one, effect in pairs]
    return InputWorth(
        name=name,
        changed=_mean([float(effect.changed) for _, effect in pairs], sessions, seed),
        moved=_mean([float(abs(effect.change)) for _, effect in pairs], sessions, seed),
        effect=_mean(effects, sessions, seed),
    )


def _mean(values: Sequence[float | None], sessions: Sequence[date], seed: int) -> Mean:
    known = [(value, day) for value, day in zip(values, sessions, strict=True) if value is not None]
    if not known:
        return Mean(None, (None, None), 0)
    days = sorted({day for _, day in known})
    groups = np.array([days.index(day) for _, day in known], dtype=np.intp)
    floats = np.array([value for value, _ in known])
    return Mean(float(floats.mean()), mean_interval(floats, groups, seed), len(known))
