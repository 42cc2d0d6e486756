"""Lifetimes of a preset's memories without citations: the constants simulated, for `paperdesk memory preview`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from memory import lifecycle
from memory.presets import LADDER, Measure, MemoryPreset
from memory.record import Cause, Layer, State

FOREVER = 10_000
"""Steps (some forty years) after which a memory counts as permanent."""

FROM_FULL, TO_PURGE = 100.0, 5.0
"""The paper's remark: importance from 100 comes down to 5 after 30 / 90 / 365 days [I2]."""

_PAPER_SAYS = {0.9: 30, 0.967: 90, 0.988: 365}


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """Simulated life of a memory of one layer and initial importance, without citations.

    importance: initial, 0 to 100.
    probability: that of the draw; None where the preset sets the importance by kind of source.
    kind: the kind of source, where it sets the importance.
    ends: steps from birth to purge; inf if it stays.
    moves: steps and layers in between.
    """

    layer: Layer
    importance: float
    probability: float | None
    kind: str
    ends: float
    moves: tuple[tuple[float, Layer], ...]

    @property
    def first_day_rungs(self) -> int:
        """Rungs of the ladder that it goes deeper in its first step, by its initial importance alone; negative where it
        goes up."""
        reached = next((layer for step, layer in self.moves if step == 1), self.layer)
        return LADDER.index(reached) - LADDER.index(self.layer) if reached is not self.layer else 0


def lives(preset: MemoryPreset) -> tuple[Life, ...]:
    """All lives that a preset can begin: per layer and draw, or per kind of source where it sets the importance."""
    return tuple(_life(preset, *beginning) for beginning in _beginnings(preset))


def lifetimes(preset: MemoryPreset) -> dict[Layer, tuple[float, float]]:
    """Shortest and longest life per layer of birth, in steps."""
    ends: dict[Layer, list[float]] = {}
    for life in lives(preset):
        ends.setdefault(life.layer, []).append(life.ends)
    return {layer: (min(result), max(result)) for layer, result in ends.items()}


def steps_to_purge(preset: MemoryPreset, layer: Layer) -> float:
    """Steps from importance 100 to 5 by decay alone; inf where nothing decays."""
    alpha = preset.rule(layer).alpha
    return math.inf if alpha == 1 else math.log(TO_PURGE / FROM_FULL) / math.log(alpha)


def preview(preset: MemoryPreset) -> str:
    """Lives and their consequences as lines of plain text."""
    result, spans = lives(preset), lifetimes(preset)
    lines = [f"{preset.name}: {preset.title} ({preset.source})", "Lives without a citation, in steps (trading days):"]
    for layer, rule in preset.layers.items():
        if layer not in spans:
            continue
        low, high = spans[layer]
        span = _steps(low) if low == high else f"{_steps(low)} to {_steps(high)}"
        lines.append(f"  {rule.title}: gone after {span}" if math.isfinite(high) else f"  {rule.title}: {span}")
        lines.extend(f"    {_line(preset, life)}" for life in result if life.layer is layer)
    lines.extend(_remarks(preset, result))
    if preset.measure is Measure.IMPORTANCE and any(rule.demote_below for rule in preset.layers.values()):
        undemoted = (
            f"{preset.rule(layer).title} {_steps(low)} to {_steps(high)}"
            for layer, (low, high) in lifetimes(without_demotion(preset)).items()
        )
        lines.append(f"Without demotion, which is the programs' and not the paper's: {', '.join(undemoted)}.")
    return "\n".join(lines)


def without_demotion(preset: MemoryPreset) -> MemoryPreset:
    """A preset's constants without demotion, as the paper itself has them [I4]."""
    layers = {layer: replace(rule, demote_below=None) for layer, rule in preset.layers.items()}
    return replace(preset, layers=layers)


def _beginnings(preset: MemoryPreset) -> Iterator[tuple[Layer, float, float | None, str]]:
    drawn: set[Layer] = set()
    for kind, birth in preset.births.items():
        if birth.importance is not None:
            yield birth.layer, birth.importance, None, kind
        elif birth.layer not in drawn:
            drawn.add(birth.layer)
            for value, probability in preset.rule(birth.layer).draws:
                yield birth.layer, value, probability, ""


def _life(preset: MemoryPreset, layer: Layer, importance: float, probability: float | None, kind: str) -> Life:
    floor = layer if kind in preset.floor_kinds else None
    born = State(step=0, layer=layer, importance=importance, importance_step=0, recency_step=0)
    changes, _ = lifecycle.advance(preset, born, FOREVER, floor)
    moves = tuple((state.step, state.layer) for _, state in changes if state.layer is not None)
    ends = next((state.step for cause, state in changes if cause is Cause.PURGED), math.inf)
    return Life(layer=layer, importance=importance, probability=probability, kind=kind, ends=ends, moves=moves)


def _line(preset: MemoryPreset, life: Life) -> str:
    begun = f"{life.kind} at {life.importance:g}" if life.kind else f"at {life.importance:g}"
    chance = "" if life.probability is None else f" ({life.probability:.0%})"
    moves = "".join(f", {preset.rule(layer).title} after {step:g}" for step, layer in life.moves)
    return f"{begun}{chance}{moves}, {'stays' if math.isinf(life.ends) else f'gone after {life.ends:g}'}"


def _remarks(preset: MemoryPreset, result: tuple[Life, ...]) -> Iterator[str]:
    drawn = [life for life in result if life.layer is Layer.SHALLOW and life.probability is not None]
    if drawn and preset.measure is Measure.IMPORTANCE and preset.rule(Layer.SHALLOW).promote_at is not None:
        share = sum(life.probability or 0 for life in drawn if life.first_day_rungs > 0)
        yield f"Promoted on the first day by the draw alone: {share:.0%} of all news."
    deep = [life for life in result if life.layer is Layer.DEEP and life.first_day_rungs < 0]
    top = max((life.importance for life in deep), default=None)
    if top is not None and preset.measure is Measure.IMPORTANCE:
        rule = preset.rule(Layer.DEEP)
        yield (
            f"An annual report drawn at {top:g} falls below {rule.demote_below:g} on its first day "
            f"({top:g} x {rule.alpha:g} = {top * rule.alpha:g})."
        )
    fading = [layer for layer in preset.layers if math.isfinite(steps_to_purge(preset, layer))]
    if fading:
        steps = " / ".join(f"{steps_to_purge(preset, layer):.0f}" for layer in fading)
        titles = " / ".join(preset.rule(layer).title for layer in fading)
        paper = [_PAPER_SAYS.get(preset.rule(layer).alpha) for layer in LADDER if layer in fading]
        said = "" if None in paper else f"; the paper says {' / '.join(map(str, paper))} of its three layers"
        yield f"Importance comes from {FROM_FULL:g} to {TO_PURGE:g} in {steps} steps ({titles}){said}."


def _steps(value: float) -> str:
    return "stays" if math.isinf(value) else f"{value:g}"
