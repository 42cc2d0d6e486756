"""Characters are data files; the risk character follows momentum."""

from __future__ import annotations

from decimal import Decimal
from typing import get_args

import pytest

from engine.agents.character import Risk, character, risk_of
from engine.agents.immediate import MarketFacts
from tests.engine.agents.evidence_samples import history


def test_the_three_characters_of_the_paper_ship_each_with_its_own_field() -> None:
    made = [character(risk) for risk in get_args(Risk)]
    sectors = [sector for one in made for sector in one.sectors]
    assert len(sectors) == len(set(sectors)) >= 9
    for risk, one in zip(get_args(Risk), made, strict=True):
        assert f"You are a {risk} investor" in one.nature and one.nature not in one.text


@pytest.mark.parametrize(
    ("momentum", "risk"),
    [(0.01, "risk-seeking"), (-0.01, "risk-averse"), (0.0, "risk-neutral"), (None, "risk-neutral")],
)
def test_risk_follows_momentum(momentum: float | None, risk: Risk) -> None:
    assert risk_of(momentum) == risk


def test_market_facts_take_risk_from_momentum_unless_it_is_given() -> None:
    rising, falling = history([100.0, 101, 102, 103]), history([103.0, 102, 101, 100])
    assert "risk-seeking" in MarketFacts.of(rising).risk and "risk-averse" in MarketFacts.of(falling).risk
    facts = MarketFacts.of(falling, "You are a risk-seeking investor.")
    assert "risk-seeking" in facts.risk and facts.price == Decimal(100)
    assert facts.momentum is not None and facts.momentum < 0
    assert MarketFacts.of(history([5.0])).momentum is None
