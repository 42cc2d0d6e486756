"""What an opinion pays or charges the memories that it cites, reckoned by hand: closes swing by 1 % until it."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest

from engine.cycle.recall import Feedback
from engine.cycle.turn import TradingHistory
from engine.domain.decision import Action, DecisionKey, Opinion
from engine.market.trading_hours import decision_time
from memory.presets import FeedbackRule, MemoryPreset, preset_named
from tests.engine.desks import WEEKDAYS, bars, market_of, outcome

DAYS = WEEKDAYS.sessions(date(2024, 1, 2), date(2024, 2, 15))
DECIDED, HORIZON = 24, 5
DESK = replace(preset_named("desk"), feedback_horizon=HORIZON)


def opinion(action: Action = Action.BUY) -> Opinion:
    key = DecisionKey("run", DAYS[DECIDED], 1, "AAA", "desk")
    return Opinion(key=key, action=action, size=Decimal(5), reason="because", evidence=("memory",))


def feedback(
    action: Action = Action.BUY,
    after: float = 110,
    *,
    known: int = DECIDED + HORIZON,
    constants: MemoryPreset = DESK,
    costs: str = "0",
    rewards: tuple[str, ...] = (),
) -> Feedback:
    """The judgement once the session `known` has closed: a decision at a close of 100, and `after` from the end of its
    horizon on. `rewards` are those of the sessions from its own on."""
    closes = [100 + n % 2 for n in range(DECIDED)] + [100] * HORIZON
    closes += [after] * (len(DAYS) - len(closes))
    rows = [outcome(DAYS[DECIDED + n], DAYS[DECIDED + n + 1], reward) for n, reward in enumerate(rewards)]
    return Feedback(
        constants=constants,
        calendar=WEEKDAYS,
        calendars={"AAA": WEEKDAYS},
        history=TradingHistory().with_opinions([opinion(action)]).with_outcomes(rows),
        market=market_of({"AAA": bars("AAA", DAYS, closes)}).at(decision_time(WEEKDAYS, DAYS[known])),
        costs=Decimal(costs),
    )


def signs(judged: Feedback) -> list[int]:
    return [sign for _, sign in judged.signs()]


@pytest.mark.parametrize(
    ("action", "after", "costs", "expected"),
    [
        (Action.BUY, 110, "0", [1]),
        (Action.BUY, 90, "0", [-1]),
        (Action.SELL, 110, "0", [-1]),
        (Action.SELL, 90, "0", [1]),
        (Action.HOLD, 110, "0", []),
        (Action.ABSTAIN, 110, "0", []),
        (Action.BUY, 110, "0.11", [-1]),
        # Half a daily deviation times the root of the horizon is about 1.14 %.
        (Action.BUY, 101.1, "0", []),
        (Action.BUY, 101.2, "0", [1]),
    ],
)
def test_a_right_direction_pays_and_a_wrong_one_costs(
    action: Action, after: float, costs: str, expected: list[int]
) -> None:
    assert signs(feedback(action, after, costs=costs)) == expected


def test_nothing_is_paid_before_the_horizon_is_over_or_for_what_cites_nothing() -> None:
    assert signs(feedback(known=DECIDED + HORIZON - 1)) == []
    judged = feedback()
    uncited = TradingHistory().with_opinions([replace(opinion(), evidence=())])
    assert signs(replace(judged, history=uncited)) == []


@pytest.mark.parametrize(("after", "expected"), [(102, []), (103, [1])])
def test_large_moves_alone_count_where_the_rule_says_so(after: float, expected: list[int]) -> None:
    assert signs(feedback(after=after, constants=replace(DESK, feedback=FeedbackRule.LARGE))) == expected


@pytest.mark.parametrize(("first", "expected"), [("-0.01", [1]), ("-0.03", [-1]), ("-0.02", [])])
def test_profit_is_that_of_the_sessions_of_the_horizon(first: str, expected: list[int]) -> None:
    rule = replace(DESK, feedback=FeedbackRule.PROFIT, feedback_horizon=2)
    rewards = (first, "0.02", "-0.5")
    assert signs(feedback(Action.SELL, 100, known=DECIDED + 2, constants=rule, rewards=rewards)) == expected
    assert signs(feedback(Action.SELL, 100, known=DECIDED + 1, constants=rule, rewards=rewards)) == []


def test_a_memory_is_rewarded_once_per_horizon() -> None:
    judged = feedback()
    assert judged.counts(opinion(), [])
    assert not judged.counts(opinion(), [DAYS[DECIDED - HORIZON + 1]])
    assert judged.counts(opinion(), [DAYS[DECIDED - HORIZON]])
