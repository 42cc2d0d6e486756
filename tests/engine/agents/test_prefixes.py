"""The system part of every question begins with what is stable for the run, and its examples are no source."""

from __future__ import annotations

import json
import re
from dataclasses import fields, replace
from datetime import date
from decimal import Decimal
from itertools import takewhile
from typing import Any

import pytest

from connectors.llm.warm_prefixes import prefix_key
from engine.agents.agent import View
from engine.agents.figures import Facts, unresolved_figures
from engine.agents.immediate import MarketFacts
from engine.agents.intelligence import FilingView
from engine.agents.portfolio import PortfolioAnalysisView, PortfolioDecisionView, PortfolioReflectionView, StockFigures
from engine.agents.registry import registered
from engine.agents.rendering import Question, fields_of, render
from engine.domain.model_call import CACHED_FROM, beginning
from tests.engine.agents import evidence_samples as some
from tests.engine.agents import test_evidence_prompts, test_prompts
from tests.engine.agents.samples import DAY, decision_view

EXAMPLE = re.compile(r"^<<<example\n(.*?)\nAnswer:\n(.*?)\nexample>>>$", re.MULTILINE | re.DOTALL)
STOCK = StockFigures(
    symbol="MSFT",
    price=Decimal(180),
    change=Decimal("0.01"),
    high=Decimal(182),
    low=Decimal(178),
    mean=Decimal(180),
    volume=1000.0,
    closes=(Decimal(178), Decimal(180)),
    shares=Decimal(10),
    cost=Decimal(170),
    weight=Decimal("0.1"),
    chart=test_prompts.SIGNALS,
    candles=test_prompts.SIGNALS,
)
PORTFOLIO: dict[str, Any] = {
    "symbol": "MSFT",
    "session": DAY,
    "owner": "desk",
    "stocks": (STOCK,),
    "cash": Decimal(1000),
    "value": Decimal(18000),
    "cash_floor": Decimal("0.1"),
    "index_change": Decimal("0.01"),
    "input": "both",
    "strategy": "Follow trends.",
}
CASES: dict[str, tuple[str, View]] = {
    **test_prompts.VIEWS,
    **test_evidence_prompts.CASES,
    "sized decision": ("decision", decision_view()),
    "filing": ("filing-summary", FilingView("MSFT", DAY, "desk", "10-K", DAY, "Revenue grew.")),
    "analysis": ("portfolio-analysis", PortfolioAnalysisView(**PORTFOLIO)),
    "orders": ("portfolio-decision", PortfolioDecisionView(**PORTFOLIO)),
    "strategy": (
        "portfolio-reflection",
        PortfolioReflectionView(
            **PORTFOLIO, decisions=("Bought.",), day_return=0.01, market_return=0.0, best=(), worst=()
        ),
    ),
}
OTHER: dict[str, Any] = {
    "symbol": "ORVL",
    "session": date(2023, 7, 3),
    "owner": "other",
    "character": "You doubt.",
    "preference": "conservative",
    "profile": "",
    "guidance": "Keep cash.",
    "facts": MarketFacts(Decimal(20), -0.01, "You are a risk-averse investor."),
    "own": some.case("quill", character="You are bold."),
    "stocks": (STOCK, STOCK),
}
"""What differs between symbols, sessions and owners of a run."""


def asked(view: View, name: str, sees: bool = True) -> Question:
    agent = registered()[name]
    return render(agent.prompt, view, agent.expects(view), sees)


def test_every_agent_has_a_case() -> None:
    assert {agent for agent, _ in CASES.values()} == set(registered())


@pytest.mark.parametrize("sees", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_the_beginning_that_a_vendor_caches_is_the_same_for_all_symbols_sessions_and_owners(
    case: str, sees: bool
) -> None:
    name, view = CASES[case]
    known = {field.name for field in fields(view)}
    other = replace(view, **{key: value for key, value in OTHER.items() if key in known})
    one, two = asked(view, name, sees).system, asked(other, name, sees).system
    common = "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, two, strict=False)))
    assert len(common) >= CACHED_FROM and common.startswith(beginning(one))
    assert prefix_key(one) == prefix_key(two) is not None
    assert fields_of(registered()[name].expects(view)) in common


@pytest.mark.parametrize("case", CASES)
def test_the_answers_of_examples_are_right_and_their_figures_are_no_source(case: str) -> None:
    name, view = CASES[case]
    system = asked(view, name).system
    examples = EXAMPLE.findall(system)
    assert len(examples) == 2
    for given, answer in examples:
        right, _ = json.JSONDecoder().raw_decode(answer)
        made = registered()[name].expects(view).model_validate(right)
        assert list(right) == list(type(made).model_fields)
        own = Facts.of(system)
        said = "\n".join(line for line in made.quoted() if not line.startswith("- Confidence"))
        assert unresolved_figures(said, [Facts(given)]) == (), (
            f"{name} quotes in an example what its input does not hold"
        )
        assert not set(given.splitlines()) & {*own.observed.splitlines(), *own.cited.splitlines()}
    price = "The price was 48.71."
    assert unresolved_figures(price, [Facts.of(f"{system}\n<<<example\n{price}\nexample>>>")]) == ("48.71",)
