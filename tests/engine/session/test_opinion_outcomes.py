"""Outcomes of opinions that were combined: direction times size times the move of the close."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest

from engine.domain.decision import Action, DecisionKey, Opinion, Outcome, SizingRule
from engine.market.as_of import Market
from engine.market.trading_hours import decision_time
from engine.session.outcomes import opinion_outcomes
from tests.engine.desks import WEEKDAYS, bars, market_of, split

DAYS = WEEKDAYS.sessions(date(2024, 3, 4), date(2024, 3, 8))
THURSDAY, FRIDAY = DAYS[-2], DAYS[-1]


def opinion(action: Action, size: int, owner: str = "bull") -> Opinion:
    key = DecisionKey("run", THURSDAY, 1, "AAA", owner)
    return Opinion(key=key, action=action, size=Decimal(size), reason="because", rule=SizingRule.REVERSAL)


def rewarded(
    market: Market, opinions: list[Opinion], earlier: dict[tuple[str, str], list[Outcome]] | None = None
) -> list[Outcome]:
    before, after = (market.at(decision_time(WEEKDAYS, day)) for day in (THURSDAY, FRIDAY))
    return opinion_outcomes(opinions, before, after, FRIDAY, earlier or {})


@pytest.mark.parametrize(
    ("action", "size", "reward"),
    [
        (Action.BUY, 8, "0.004"),
        (Action.SELL, 8, "-0.004"),
        (Action.SELL, 100, "-0.05"),
        (Action.HOLD, 0, "0"),
        (Action.ABSTAIN, 0, "0"),
    ],
)
def test_an_opinion_earns_its_direction_times_its_size_times_the_move(action: Action, size: int, reward: str) -> None:
    market = market_of({"AAA": bars("AAA", DAYS, [98, 99, 99, 100, 105])})
    (row,) = rewarded(market, [opinion(action, size)])

    assert (row.reward, row.decision_session, row.session) == (Decimal(reward), THURSDAY, FRIDAY)
    assert (row.owner, row.action, row.size, row.close) == ("bull", action, size, 105)
    assert row.key_factors == "reversal: because"


def test_rewards_compound_by_owner() -> None:
    market = market_of({"AAA": bars("AAA", DAYS, [98, 99, 99, 100, 105])})
    (first,) = rewarded(market, [opinion(Action.BUY, 100)])
    again, other = rewarded(
        market, [opinion(Action.BUY, 100), opinion(Action.SELL, 100, "bear")], {("AAA", "bull"): [first]}
    )

    assert again.cumulative == Decimal("0.1025")
    assert other.cumulative == Decimal("-0.05")


def test_a_split_in_between_is_no_fall() -> None:
    market = market_of({"AAA": bars("AAA", DAYS, [98, 99, 99, 100, "52.5"])})
    market = replace(market, actions={"AAA": [split("AAA", FRIDAY, "2")]})
    (row,) = rewarded(market, [opinion(Action.BUY, 10)])

    assert row.reward == Decimal("0.005")


def test_a_symbol_that_stopped_trading_or_never_traded_earns_nothing() -> None:
    stopped = market_of({"AAA": bars("AAA", DAYS[:3], [98, 99, 99])})
    unknown = market_of({"AAA": bars("AAA", [], [])})

    assert rewarded(stopped, [opinion(Action.BUY, 10)])[0].reward == 0
    (row,) = rewarded(unknown, [opinion(Action.BUY, 10)])
    assert (row.reward, row.close) == (0, 0)
