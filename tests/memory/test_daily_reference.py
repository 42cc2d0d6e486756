"""Scores and transitions in closed form equal a naive rule that rewrites every record every day."""

from __future__ import annotations

import random
from math import isclose

import pytest

from memory.record import Item
from tests.long_cases import first_of
from tests.memory.chosen_vectors import memory
from tests.memory.daily_reference import DailyReference

DAYS = 500
KINDS = ("news", "news", "news", "8-K", "10-Q", "10-K", "macro", "reflection")
TOLERANCE = 1e-12


@pytest.mark.parametrize("seed", [1])
@pytest.mark.parametrize(
    "preset", first_of(1, ["desk", "investorbench-code", "investorbench", "finmem-code", "tradinggpt"])
)
def test_500_days_of_random_events(preset: str, seed: int) -> None:
    """About 3,000 events: births at whole and fractional steps, rewards, costs and citations."""
    chance = random.Random(f"{preset} {seed}")
    ours, theirs = memory(preset), DailyReference(preset)
    changes: list[tuple[float, str, str]] = []
    stood: dict[str, str] = {}
    rewarded = 0

    for day in range(1, DAYS + 1):
        for touch in ours.sweep(day):
            layer = touch.state.layer
            said = "purged" if layer is None else f"{touch.cause} {stood[touch.record_id]} {layer}"
            changes.append((touch.state.step, touch.record_id, said))
            stood[touch.record_id] = str(layer)
        theirs.day(day)

        for number in range(chance.randrange(5)):
            step = day + chance.choice((0, 0, 0.25, 0.5))
            item = Item(
                symbol="MSFT", kind=chance.choice(KINDS), text=f"{day} {number}", rating=chance.choice((None, 0.1, 0.9))
            )
            (name,) = ours.remember([item], step)
            born = ours.record(name)
            theirs.born(name, item.kind, born.birth_layer, born.importance, step)
            stood[name] = born.birth_layer

        # Some are rewarded again and again, as what is cited often is.
        names = sorted(theirs.alive, key=lambda name: theirs.alive[name].at)
        for number in range(chance.randrange(1, 6) if names else 0):
            name = chance.choice(names[-40:] if chance.random() < 0.7 else names)
            step = day + 0.5
            if chance.random() < 0.3:
                ours.cite([name], step, f"{day} {number}")
                continue
            sign = chance.choice((1, 1, -1))
            ours.reinforce([name], sign, step, f"{day} {number}")
            theirs.reward(name, sign, step)
            rewarded += 1

        scored_records = ours.scored_records(day + 0.5)
        assert {s.record.id for s in scored_records} == set(theirs.alive)
        for scored in scored_records:
            naive = theirs.alive[scored.record.id]
            theirs._pass_time(naive, day + 0.5)
            assert scored.layer == naive.layer
            assert scored.access_count == naive.count
            # With pytest.approx these two would take longer than all the rest.
            assert isclose(scored.recency, naive.recency, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
            assert isclose(scored.importance, naive.importance, rel_tol=TOLERANCE, abs_tol=TOLERANCE)

    assert sorted(changes) == sorted(theirs.changes)
    kinds = {said.split()[0] for _, _, said in changes}
    assert kinds == {"promoted", "purged"} | (set() if preset == "investorbench" else {"demoted"})
    assert rewarded > 900
    assert len(changes) > 600


@pytest.mark.parametrize("preset", ["investorbench", "investorbench-code", "finmem-code", "tradinggpt", "desk"])
def test_days_left_out_are_made_up_for(preset: str) -> None:
    """It does not matter when a sweep is made: what happens is dated to the day on which it happens."""
    daily, rarely = memory(preset), memory(preset)
    for day in range(1, 120):
        daily.sweep(day)
        if day % 17 == 0:
            rarely.sweep(day)
        items = [Item(symbol="MSFT", kind=kind, text=f"{kind} {day}") for kind in ("news", "10-Q", "10-K")]
        names = daily.remember(items, day)
        assert rarely.remember(items, day) == names
        if day % 5 == 0:
            daily.reinforce(names, 1, day, "paid")
            rarely.reinforce(names, 1, day, "paid")

    assert daily.scored_records(120) == rarely.scored_records(120)
    for scored in daily.scored_records(120):
        name = scored.record.id
        assert daily.lifeline(name, 120) == rarely.lifeline(name, 120)
