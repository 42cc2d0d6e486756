"""The prompts say what the views hold and what the answers must be."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from engine.agents.agent import View, one_line
from engine.agents.chart import ChartView
from engine.agents.decision import rules_for
from engine.agents.news import NewsDigest, NewsLine, NewsView
from engine.agents.reflections import PerformanceView, SignalView
from engine.agents.registry import registered
from engine.agents.rendering import render
from engine.domain.chart import ChartSpec, IndicatorTable, Line, Marker
from engine.domain.decision import Action, SizingRule
from engine.preset import load_preset
from tests.engine.agents.samples import DAY, decision_view, holding, outcome

SIGNALS = ChartSpec(
    kind="signals",
    title="MSFT",
    symbol="MSFT",
    sessions=("2023-05-31", "2023-06-01"),
    lines=(Line("close", (179.5, 181.25)),),
    markers=(Marker(0, "BUY", 179.5),),
)
NEWS = NewsDigest(
    summary=["Cloud sales grew 27%."],
    positive=["growth"],
    negative=[],
    sentiment="bullish",
    reason="Sales.",
    unrelated=1,
)
VIEWS: dict[str, tuple[str, View]] = {
    "news": ("news", NewsView("MSFT", DAY, "desk", (NewsLine(DAY, "", "It grew."),))),
    "chart": ("chart", ChartView("MSFT", DAY, "desk", SIGNALS, IndicatorTable((), (), ()))),
    "performance": (
        "performance-reflection",
        PerformanceView("MSFT", DAY, "desk", "short", (outcome(1),)),
    ),
    "signals": ("signal-reflection", SignalView("MSFT", DAY, "desk", SIGNALS)),
    "decision": ("decision", decision_view(news=NEWS, outcomes=(outcome(1),))),
}


def rendered(agent: str, view: Any, sees: bool = True) -> tuple[str, str]:
    asked = registered()[agent]
    question = render(asked.prompt, view, asked.expects(view), sees)
    return question.system, question.user


@pytest.mark.parametrize("sees", [True, False])
@pytest.mark.parametrize("case", VIEWS)
def test_every_field_of_the_answer_is_asked_for_in_its_own_words(case: str, sees: bool) -> None:
    agent, view = VIEWS[case]
    system, user = rendered(agent, view, sees)
    answer = registered()[agent].answer
    for name, field in answer.model_fields.items():
        assert f"- {name}" in system
        assert field.description and one_line(field.description) in system
    assert "MSFT" in user and "MSFT" not in system
    assert "{{" not in system + user and "None" not in system + user


def test_a_picture_is_spoken_of_only_to_who_sees_it() -> None:
    agent, view = VIEWS["signals"]
    blind = "\n".join(rendered(agent, view, False))
    assert "image" not in blind and "2023-05-31 179.50 BUY" in blind
    seen = "\n".join(rendered(agent, view))
    assert "image" in seen and "179.50" not in seen


def test_the_rules_are_told_with_the_presets_numbers() -> None:
    sizing = load_preset("finvision").sizing
    stricter = sizing.model_copy(update={"cash_floor": Decimal("0.25"), "gain_over_cost": Decimal("0.08")})
    system, _ = rendered("decision", decision_view(sizing=stricter))
    assert "At least 25.00% of the portfolio stays in cash" in system
    assert "more than 8.00% over average cost" in system
    assert 'BUY, "strong uptrend"' in system and "Size 5 to 10" in system
    for action in ("BUY", "SELL", "HOLD"):
        for rule in rules_for(action, stricter):
            assert f'{action}, "{rule.value}"' in system
    assert {r for a in ("BUY", "SELL", "HOLD") for r in rules_for(a, stricter)} == set(SizingRule)


def test_the_decision_reads_portfolio_reports_history_and_who_is_absent() -> None:
    view = decision_view(
        news=NEWS,
        holding=holding(shares="12.5", gains_in_a_row=4),
        outcomes=(outcome(2, Action.SELL, "-0.0042", "reversal: broke <b>down</b>"),),
        absent=("chart: abstained, timed out",),
    )
    _, user = rendered("decision", view)
    for told in (
        "shares held: 12.5",
        "price: 180.00",
        "5.59%",
        "cash: 18000.00 (50.00% of the portfolio)",
        "gains in a row: 4",
        "Cloud sales grew 27%.",
        "SELL 5, close 180.25, reward -0.420%, cumulative +2.00%. Named: reversal: broke down",
        "No report from:\n<<<absent\n- chart: abstained, timed out\nabsent>>>",
    ):
        assert told in user


def test_the_asset_is_named_beside_its_ticker_where_it_is_known() -> None:
    agent, view = VIEWS["news"]
    asked = registered()[agent]
    question = render(asked.prompt, view, asked.expects(view), True, "Norvane Foods, sector food")
    assert "Asset: MSFT (Norvane Foods, sector food)" in question.user and "Norvane Foods," not in question.system
