"""The study of a memory's worth, as `paperdesk bench memory` prints it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from engine.domain.decision import Action
from engine.domain.run import ModelUse, RunSpec
from engine.lab.memory_arms import Poison
from engine.reports.documents import row_json
from engine.reports.documents.row_json import Row

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmRow:
    """One arm of a study.

    name, against: of the arm, and of the one that it is paired with.
    total_return, sharpe: of its book over the test.
    difference, low, high: of the total returns of the two, with its 95 % interval over the same sessions.
    opinions: the actions that were advised, before limits.
    changed: opinions that differ between the two.
    memories: the mean number of memories that an analysis was given.
    """

    name: str
    against: str
    total_return: float | None
    sharpe: float | None
    difference: float | None
    low: float | None
    high: float | None
    opinions: tuple[Action, ...]
    changed: int
    memories: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetStudy:
    """The study of one preset.

    model: the use of models by all arms.
    sessions: of the test.
    arms: in the order in which they were played.
    pivotal: memories that were paid for in the run with recall.
    poison: the course of false memories.
    cited, not_held: memories cited in the run with recall, and those of them that were not given.
    opinions, unresolved: opinions of that run, and those that quote a figure which their inputs do not hold.
    recalled, later: recollections of that run, and those of all arms that stem from after their decision.
    """

    preset: str
    model: ModelUse
    sessions: int
    arms: tuple[ArmRow, ...]
    pivotal: int
    poison: Poison
    cited: int
    not_held: int
    opinions: int
    unresolved: int
    recalled: int
    later: int


@dataclass(frozen=True, slots=True)
class MemoryStudy:
    """The studies of several presets over one window; `interrupted` says what was not done."""

    spec: RunSpec
    presets: tuple[PresetStudy, ...]
    interrupted: str = ""


def memory_document(study: MemoryStudy) -> Row:
    """The study as a document."""
    spec = study.spec
    return {
        "schema": SCHEMA,
        "bench": "memory",
        "symbols": list(spec.symbols),
        "first_session": spec.first.isoformat(),
        "last_session": spec.last.isoformat(),
        "warm_up_from": None if spec.warm_up_from is None else spec.warm_up_from.isoformat(),
        "seed": spec.seed,
        "presets": [_preset(one) for one in study.presets],
        "interrupted": study.interrupted,
    }


def _preset(study: PresetStudy) -> Row:
    return {
        **row_json.fields(study, "preset", "sessions", "pivotal"),
        "model": study.model.spec,
        **row_json.fields(study.model, "calls", "abstentions", "refusals"),
        **row_json.fields(study.model.usage, "input_tokens", "output_tokens"),
        "cost": None if study.model.cost is None else str(study.model.cost),
        "arms": [_arm(one) for one in study.arms],
        "poison": row_json.fields(study.poison),
        "confabulation": row_json.fields(study, "cited", "not_held", "opinions", "unresolved"),
        "point_in_time": row_json.fields(study, "recalled", "later"),
    }


def _arm(arm: ArmRow) -> Row:
    counted = Counter(arm.opinions)
    return {**row_json.fields(arm), "opinions": {action.value: counted[action] for action in Action}}
