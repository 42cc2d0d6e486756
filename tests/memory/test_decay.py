"""What a partition says of its rows' strength is what the closed forms say, at any step and after any change."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memory import formulas, lifecycle
from memory.live_index import Partition
from memory.presets import PRESETS
from memory.record import Layer, MemoryRecord, State

LAYERS = [(preset, layer) for preset in PRESETS.values() for layer in preset.layers]
STEPS = st.floats(0, 6_000)


def record(number: int) -> MemoryRecord:
    vector = np.ones(1, np.float32)
    return MemoryRecord(
        id=str(number),
        owner="desk",
        symbol="MSFT",
        kind="news",
        text="text",
        query_text="",
        source="",
        born_step=0,
        available_at=0,
        hindsight=False,
        birth_layer=Layer.SHALLOW,
        importance=1,
        rests_on=(),
        labels=(),
        vector=vector,
    )


@given(
    which=st.sampled_from(LAYERS),
    lives=st.lists(st.tuples(STEPS, STEPS, st.floats(-50, 400)), min_size=1, max_size=30),
    asked=st.lists(STEPS, min_size=1, max_size=5),
    change=st.tuples(STEPS, STEPS, st.floats(-50, 400)),
)
def test_strength_is_recency_and_importance_at_every_step(
    which: tuple[object, Layer],
    lives: list[tuple[float, float, float]],
    asked: list[float],
    change: tuple[float, float, float],
) -> None:
    preset, layer = which
    rule = preset.rule(layer)  # type: ignore[attr-defined]
    part = Partition(layer, rule, 1)
    states = [
        State(step=max(at, since), layer=layer, importance=value, importance_step=since, recency_step=at)
        for at, since, value in lives
    ]
    records = [record(n) for n in range(len(states))]
    part.append(
        records, np.ones((len(states), 1), np.float32), lifecycle.columns(states), np.full(len(states), -1, "i1")
    )

    for step in range(3):
        for now in asked:
            found = part.strength(now, part.size + 3)
            assert found.shape == (part.size + 3,) and (found[part.size :] == -np.inf).all()
            for strength, alive, state in zip(found, part.alive, states, strict=False):
                if not alive:
                    assert strength == -np.inf
                elif state.step <= now:
                    recency = formulas.recency(now, state.recency_step, rule.stability)
                    faded = formulas.importance(now, state.importance, state.importance_step, rule.alpha)
                    assert abs(strength - (recency + min(max(faded / 100, 0), 1))) < 5e-6
        if step == 0:
            at, since, value = change
            states[0] = State(
                step=max(at, since), layer=layer, importance=value, importance_step=since, recency_step=at
            )
            part.write(0, states[0])
        elif step == 1 and len(states) > 1:
            part.remove(np.array([1]))
            if change[2] > 0:
                part.compact()
                del states[1]
