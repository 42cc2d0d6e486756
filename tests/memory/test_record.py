"""Ids, validation, scores in numbers worked out by hand, and the reward's sign."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from memory import formulas
from memory.errors import InvalidRecord, UnknownPreset
from memory.presets import PRESETS, preset_named
from memory.record import Cause, Item, Layer, MemoryRecord, State, Touch, id_of

ITEM = Item(symbol="MSFT", kind="news", text="a text", source="wire")


def test_an_id_tells_apart_what_differs_and_nothing_else() -> None:
    differing = [
        ITEM,
        replace(ITEM, symbol="HON"),
        replace(ITEM, kind="8-K"),
        replace(ITEM, text="another"),
        replace(ITEM, source="other"),
        replace(ITEM, owner="cautious"),
        replace(ITEM, owner="deskM", symbol="SFT"),
    ]
    ids = [id_of(item, 3) for item in differing] + [id_of(ITEM, 4)]

    assert len(set(ids)) == len(ids)
    assert id_of(replace(ITEM, rating=0.9, labels=("x",)), 3.0) == ids[0]
    touches = [
        Touch(ids[0], cause, State(step=5, layer=None, importance=1, importance_step=5, recency_step=5), key, 9)
        for cause in Cause
        for key in ("", "decision")
    ]
    assert len({touch.id for touch in touches}) == len(touches)
    assert (
        replace(
            touches[0],
            sequence=1,
            state=State(step=5.0, layer=Layer.DEEP, importance=2, importance_step=5, recency_step=5),
        ).id
        == touches[0].id
    )


def record(**other: object) -> MemoryRecord:
    fields = {
        "id": "a",
        "owner": "desk",
        "symbol": "MSFT",
        "kind": "news",
        "text": "x",
        "query_text": "",
        "source": "",
        "born_step": 1.0,
        "available_at": 1.0,
        "hindsight": False,
        "birth_layer": Layer.SHALLOW,
        "importance": 40.0,
        "rests_on": (),
        "labels": (),
        "vector": np.ones(2, np.float32),
    }
    return MemoryRecord(**(fields | other))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "other",
    [
        {"text": " \t"},
        {"symbol": ""},
        {"born_step": math.inf},
        {"available_at": math.nan},
        {"available_at": 0.5},
        {"importance": -1.0},
        {"vector": np.array([1, np.nan], np.float32)},
        {"vector": np.ones((1, 2), np.float32)},
    ],
)
def test_a_record_that_no_step_could_mend_is_refused(other: dict[str, object]) -> None:
    with pytest.raises(InvalidRecord):
        record(**other)
    assert record().birth == State(step=1, layer=Layer.SHALLOW, importance=40, importance_step=1, recency_step=1)


def test_scores_by_hand() -> None:
    assert formulas.recency(14, 0, 14) == pytest.approx(0.36787944117144233, rel=1e-15)
    assert formulas.importance(3, 50, 1, 0.9) == pytest.approx(40.5, rel=1e-15)
    assert formulas.unit_importance(np.array([-5.0, 40.0, 130.0])).tolist() == [0, 0.4, 1]
    assert formulas.min_max(np.array([2.0, 3.0, 6.0])).tolist() == [0, 0.25, 1]
    assert formulas.min_max(np.array([3.0, 3.0])).tolist() == [1, 1]
    steps = np.array([0.0, 2.5, 7.0])
    assert formulas.recencies(9, steps, 90) == pytest.approx([formulas.recency(9, s, 90) for s in steps], rel=1e-15)
    assert formulas.importances(9, steps + 40, steps, 0.967) == pytest.approx(
        [formulas.importance(9, s + 40, s, 0.967) for s in steps], rel=1e-14
    )
    assert formulas.retention_scores(np.array([0.5]), np.array([60.0]), (40, 20, 40)).tolist() == pytest.approx([55])


@pytest.mark.parametrize("name", PRESETS)
def test_the_chances_of_a_draw_are_those_that_are_stated(name: str) -> None:
    for rule in preset_named(name).layers.values():
        assert sum(probability for _, probability in rule.draws) == pytest.approx(1)
        assert sum(rule.weights) in (3, 100)


def test_draws_fall_as_often_as_stated() -> None:
    preset = preset_named("investorbench")
    found = [
        preset.initial_state("news", None, None, int(id_of(replace(ITEM, text=str(n)), 1)[:13], 16) / 16**13)[1]
        for n in range(4000)
    ]

    assert {value: found.count(value) / 4000 for value in (40, 60, 80)} == pytest.approx(
        {40: 0.8, 60: 0.15, 80: 0.05}, abs=0.02
    )
    assert preset.initial_state("news", None, None, 1 - 1e-16) == (Layer.SHALLOW, 80)


def test_unknown_layers_are_named() -> None:
    with pytest.raises(UnknownPreset, match=r"finagent.*deep"):
        preset_named("finagent").rule(Layer.DEEP)
