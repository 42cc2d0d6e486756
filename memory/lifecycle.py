"""Promotion, demotion, purge, citation and reward of a memory. States in, states out, nothing stored.

The rule of one step applies at the whole steps of the clock: scores decay, decayed records are purged, records beyond a
threshold change the layer, and those decayed by the measure of the new layer are purged too. Between two touches scores
only fall, so the first step of a possible change is known when a touch is made: a day costs what is due, not the size
of the store. Source: InvestorBench A [I2-I4], TradingGPT §4.1.1 [G1]; the order of decay, purge and jump is that of
FinMem's program.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from memory import formulas
from memory.formulas import Floats
from memory.presets import LADDER, LayerRule, Measure, MemoryPreset, Reward
from memory.record import Cause, Layer, State, Touch

Change = Callable[[State], tuple[Cause, State]]
"""The effect of a touch on a record."""

# A due step may come out early by rounding, never late: early costs one look that finds nothing.
_EARLY = 1e-6


# Columns of states as arrays: shape (5, records), float64.
STEP, IMPORTANCE, IMPORTANCE_STEP, RECENCY_STEP, COUNT = range(5)

LAYERS = tuple(Layer)
"""Layers by their number in arrays."""
NO_LAYER = -1
"""Number of no layer: purged, or no floor."""
_CAUSES = (Cause.PROMOTED, Cause.DEMOTED, Cause.PURGED)


@dataclass(frozen=True, slots=True)
class Moves:
    """Result of the rule of one step. `moved` masks the records that change; the others stay as they are.

    `layers` has the number of a layer or NO_LAYER, `causes` the number of a cause, `states` the columns named above.
    """

    moved: npt.NDArray[np.bool_]
    layers: npt.NDArray[np.int8]
    causes: npt.NDArray[np.int8]
    states: Floats

    def touches(self, record_ids: Sequence[str]) -> list[Touch]:
        """Touches of the records that moved; `record_ids` are theirs, in their order."""
        layers = (None if number == NO_LAYER else LAYERS[number] for number in self.layers[self.moved].tolist())
        causes = (_CAUSES[number] for number in self.causes[self.moved].tolist())
        columns = self.states[:, self.moved].tolist()
        return [
            Touch(record_id, cause, state_of(layer, numbers))
            for record_id, cause, layer, *numbers in zip(record_ids, causes, layers, *columns, strict=True)
        ]


def apply_step(
    preset: MemoryPreset, layer: Layer, states: Floats, steps: Floats, floors: npt.NDArray[np.int8]
) -> Moves:
    """Apply the rule of one step to records of one layer, each at its own step.

    `floors` are the layers below which they never sink. Several moves of one step are one change.
    """
    rules = _Rules(preset)
    here = np.full(len(steps), LAYERS.index(layer), np.int8)
    now = states.copy()
    alpha = preset.rule(layer).alpha
    now[IMPORTANCE] = formulas.importances(steps, states[IMPORTANCE], states[IMPORTANCE_STEP], alpha)
    now[STEP] = now[IMPORTANCE_STEP] = steps
    purged = rules.faded(now, here)
    rising = ~purged
    risen = np.zeros(len(steps), bool)
    while (rising := rising & rules.promotes(now, here)).any():
        risen |= rising
        here[rising] += 1
        rules.enter_layer(now, here, rising)
        now[RECENCY_STEP, rising] = steps[rising]  # its recency is at 1 again [I4]
        now[IMPORTANCE, rising] = np.maximum(now[IMPORTANCE, rising], rules.entry[here[rising]])
        if not preset.multi_layer_moves:
            break
    sinking = ~purged & ~risen
    sunk = np.zeros(len(steps), bool)
    while (sinking := sinking & (here != floors) & rules.demotes(now, here)).any():
        sunk |= sinking
        here[sinking] -= 1
        rules.enter_layer(now, here, sinking)
        if preset.renewed_on_demotion:
            now[RECENCY_STEP, sinking] = steps[sinking]
        if not preset.multi_layer_moves:
            break
    purged |= (risen | sunk) & rules.faded(now, here)
    here[purged] = NO_LAYER
    causes = np.where(purged, 2, np.where(risen, 0, 1)).astype(np.int8)
    return Moves(purged | risen | sunk, here, causes, now)


class _Rules:
    """Constants of a preset's layers as arrays by the number of a layer."""

    def __init__(self, preset: MemoryPreset) -> None:
        self._preset = preset
        rules = [preset.layers.get(layer) for layer in LAYERS]
        on_ladder = [layer in LADDER for layer in LAYERS]
        top, bottom = LAYERS.index(LADDER[-1]), LAYERS.index(LADDER[0])

        def column(of: Callable[[LayerRule], float | None], nothing: float) -> Floats:
            values = [None if rule is None else of(rule) for rule in rules]
            return np.array([nothing if value is None else value for value in values], np.float64)

        self.entry = column(lambda rule: rule.least_on_entry, 0.0)
        self._stability = column(lambda rule: rule.stability, 1.0)
        self._promote_at = np.where(on_ladder, column(lambda rule: rule.promote_at, math.inf), math.inf)
        self._promote_at[top] = math.inf
        self._demote_below = np.where(on_ladder, column(lambda rule: rule.demote_below, -math.inf), -math.inf)
        self._demote_below[bottom] = -math.inf
        self._constant = column(lambda rule: rule.draws[0][0], 0.0)
        self._of_recency = column(lambda rule: rule.weights[0], 1.0)
        self._of_importance = column(lambda rule: rule.weights[2], 1.0)

    def faded(self, now: Floats, here: npt.NDArray[np.int8]) -> npt.NDArray[np.bool_]:
        """Mask of the records to purge."""
        preset = self._preset
        if preset.measure is Measure.RETENTION:
            return self._measured(now, here) < preset.purge_retention
        forgotten = self._recency(now, here) < preset.purge_recency
        return np.asarray(forgotten | (now[IMPORTANCE] < preset.purge_importance))

    def promotes(self, now: Floats, here: npt.NDArray[np.int8]) -> npt.NDArray[np.bool_]:
        """Mask of the records that go a layer deeper."""
        value = now[COUNT] if self._preset.measure is Measure.EVIDENCE else self._measured(now, here)
        return np.asarray(value >= self._promote_at[here])

    def demotes(self, now: Floats, here: npt.NDArray[np.int8]) -> npt.NDArray[np.bool_]:
        """Mask of the records that sink a layer, where they have no floor."""
        return self._measured(now, here) < self._demote_below[here]

    def enter_layer(self, now: Floats, here: npt.NDArray[np.int8], which: npt.NDArray[np.bool_]) -> None:
        """Reset what another layer resets: importance where it is a layer's constant, evidence where it is counted.

        The new layer's stability applies at once; the age of recency stays.
        """
        if self._preset.importance_by_layer:
            now[IMPORTANCE, which] = self._constant[here[which]]
        if self._preset.measure is Measure.EVIDENCE:
            now[COUNT, which] = 0

    def _measured(self, now: Floats, here: npt.NDArray[np.int8]) -> Floats:
        """The values compared with a layer's lower threshold."""
        if self._preset.measure is not Measure.RETENTION:
            return np.asarray(now[IMPORTANCE])
        a, c = self._of_recency[here], self._of_importance[here]
        unit = formulas.unit_importance(now[IMPORTANCE])
        return np.asarray(100 * (a * self._recency(now, here) + c * unit) / (a + c))

    def _recency(self, now: Floats, here: npt.NDArray[np.int8]) -> Floats:
        return np.asarray(np.exp((now[RECENCY_STEP] - now[STEP]) / self._stability[here]))


def advance(
    preset: MemoryPreset, state: State, now: float, floor: Layer | None = None
) -> tuple[list[tuple[Cause, State]], float]:
    """All changes of a record up to and including `now`, in order, and the next due step after them.

    Each change is dated to the whole step at which the rule makes it, so the result does not depend on how often this
    is called.
    """
    changes: list[tuple[Cause, State]] = []
    due = next_due(preset, state, state.step, floor)
    floors = np.array([NO_LAYER if floor is None else LAYERS.index(floor)], np.int8)
    while due <= now and state.layer is not None:
        moves = apply_step(preset, state.layer, columns([state]), np.array([due]), floors)
        if moves.moved[0]:
            (touch,) = moves.touches([""])
            changes.append((touch.cause, touch.state))
            state = touch.state
        due = next_due(preset, state, due, floor)
    return changes, due


def columns(states: Sequence[State]) -> Floats:
    """States as arrays, in the columns named above."""
    rows = [(s.step, s.importance, s.importance_step, s.recency_step, s.access_count) for s in states]
    return np.array(rows, np.float64).reshape(-1, 5).T.copy()


def state_of(layer: Layer | None, column: Sequence[float]) -> State:
    """A state from one column of the arrays named above."""
    step, importance, importance_step, recency_step, count = column
    return State(
        step=step,
        layer=layer,
        importance=importance,
        importance_step=importance_step,
        recency_step=recency_step,
        access_count=int(count),
    )


def importance_at(preset: MemoryPreset, state: State, now: float) -> float:
    """The importance at a step, faded since the state by its layer's rule; outside of every layer nothing fades."""
    if state.layer is None:
        return state.importance
    return formulas.importance(now, state.importance, state.importance_step, preset.rule(state.layer).alpha)


def reward(preset: MemoryPreset, state: State, sign: int, now: float) -> tuple[Cause, State]:
    """Change of a record cited by a decision that paid (sign 1) or cost (-1); an abstention is never passed here.

    Source: InvestorBench A [I4]; the penalty and the cumulative count are the authors' programs'; a lift for large
    profits and losses alike is TradingGPT's [G1].
    """
    importance = importance_at(preset, state, now)
    if preset.reward is Reward.CUMULATIVE:
        count = state.access_count + sign
        points = preset.reward_points * count
    elif preset.reward is Reward.EITHER:
        count = state.access_count + 1
        points = preset.reward_points
    else:
        count = state.access_count + (sign if preset.measure is Measure.EVIDENCE else 1)
        points = preset.reward_points if sign > 0 else -preset.penalty_points
    lifted = replace(state, step=now, importance=importance + points, importance_step=now, access_count=count)
    return (Cause.PAID if sign > 0 else Cause.COST), lifted


def cite(state: State, now: float) -> tuple[Cause, State]:
    """Change of a record that a decision cites. Scores change when the decision's reward is known."""
    return Cause.CITED, replace(state, step=now)


def restate(state: State, now: float) -> tuple[Cause, State]:
    """Change of a record that says what its owner says again: it is as recent as that."""
    return Cause.RESTATED, replace(state, step=now, recency_step=now)


def next_due(preset: MemoryPreset, state: State, after: float, floor: Layer | None = None) -> float:
    """First whole step after `after` at which the rule can change this record; inf if never."""
    if state.layer is None:
        return math.inf
    due = due_steps(preset, state.layer, columns([state]), np.array([after]), np.array([state.layer == floor]))
    return float(due[0])


def due_steps(
    preset: MemoryPreset,
    layer: Layer,
    states: Floats,
    after: Floats,
    on_floor: npt.NDArray[np.bool_],
) -> Floats:
    """`next_due` of many records of one layer; all arrays of one length. A record on its floor cannot sink."""
    rule = preset.rule(layer)
    _, importance, importance_step, recency_step, access_count = states
    first = np.floor(after) + 1
    sinks = -math.inf if rule.demote_below is None or layer not in LADDER[1:] else rule.demote_below
    if preset.measure is Measure.RETENTION:
        recency = np.exp((recency_step - first) / rule.stability)
        value = formulas.retention_scores(recency, importance, rule.weights)
        lowest = np.where(on_floor, preset.purge_retention, max(preset.purge_retention, sinks))
        falls = _retention_falls(rule, importance, recency_step, lowest)
        rises = value >= (math.inf if rule.promote_at is None else rule.promote_at - _EARLY)
    else:
        lowest = np.where(on_floor, preset.purge_importance, max(preset.purge_importance, sinks))
        falls = _importance_falls(rule, importance, importance_step, lowest)
        if preset.purge_recency > 0:
            falls = np.minimum(falls, recency_step - rule.stability * math.log(preset.purge_recency))
        if rule.promote_at is None:
            rises = np.zeros(len(first), bool)
        elif preset.measure is Measure.EVIDENCE:
            rises = access_count >= rule.promote_at
        else:
            rises = formulas.importances(1.0, importance, importance_step - first + 1, rule.alpha) >= (
                rule.promote_at - _EARLY
            )
    steps = np.where(np.isfinite(falls), np.ceil(falls - _EARLY), falls)
    return np.where(rises, first, np.maximum(steps, first))


def _importance_falls(rule: LayerRule, importance: Floats, importance_step: Floats, threshold: Floats) -> Floats:
    """Step at which importance reaches the threshold: -inf where it has, inf where it never will."""
    if rule.alpha == 1:
        return np.where(importance < threshold, -np.inf, np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        later = importance_step + np.log(threshold / importance) / math.log(rule.alpha)
    return np.where(importance <= threshold, -np.inf, later)


def _retention_falls(rule: LayerRule, importance: Floats, recency_step: Floats, threshold: Floats) -> Floats:
    """Step at which the retention score, of which only recency moves, reaches the threshold."""
    a, _, c = rule.weights
    left = (threshold * (a + c) / 100 - c * formulas.unit_importance(importance)) / a
    with np.errstate(divide="ignore", invalid="ignore"):
        later = recency_step - rule.stability * np.log(left)
    return np.where(left <= 0, np.inf, np.where(left >= 1, -np.inf, later))
