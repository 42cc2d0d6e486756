"""An answer is checked, a bad one goes back once, and then the agent abstains."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from engine.agents.ask import MAY_PASS, STAYS, Asker
from engine.agents.chart import CHART, ChartReading, ChartView
from engine.agents.decision import DECISION, TradeAnswer
from engine.agents.rendering import prompt_version
from engine.domain.chart import Candles, ChartSpec, IndicatorTable, Line
from engine.domain.model_call import AnswerOptions, FailureKind, ModelSettings
from engine.errors import ConfigError, TryAgainLater
from engine.settings.values import AgentSettings
from tests.engine.agents.samples import TRADE, Desk, ListedModel, answered, decision_view, failed

PICTURE = ChartSpec(
    kind="kline",
    title="MSFT",
    symbol="MSFT",
    sessions=("2023-06-01",),
    candles=Candles((1.0,), (2.0,), (0.5,), (1.5,)),
    lines=(Line("a", (1.0,)),),
)
CHART_VIEW = ChartView(
    "MSFT", date(2023, 6, 1), "desk", PICTURE, IndicatorTable(("close",), ("2023-06-01",), ((1.5,),))
)
READING = {
    "macd": {"trend": "up", "signal": "buy"},
    "kdj_rsi": {"trend": "flat", "signal": "none"},
    "bollinger": None,
}


async def test_a_good_answer_is_taken_at_once() -> None:
    desk = Desk(ListedModel([answered(TRADE)]))
    reply = await desk.asker.ask(DECISION, decision_view())
    assert isinstance(reply.answer, TradeAnswer)
    assert (reply.answer.recommendation, reply.answer.position_size, reply.attempts) == ("BUY", 7, 1)
    assert reply.abstained_because == ""
    (record,) = desk.records
    assert (record.outcome, record.reason, record.attempt, record.agent) == ("answered", "", 1, "decision")
    assert record.answer == TRADE
    ((asked, said),) = desk.deltas
    assert (asked.step, asked.symbol, said) == (record.step, record.key.symbol, json.dumps(TRADE))


BAD = {
    "too large": TRADE | {"position_size": 1000},
    "negative": TRADE | {"position_size": -3},
    "size of a HOLD": TRADE | {"recommendation": "HOLD", "rule": "uncertainty"},
    "no size for a BUY": TRADE | {"position_size": 0},
    "half a percent": TRADE | {"position_size": 2.5},
    "size in words": TRADE | {"position_size": "seven"},
    "a size that is a truth value": TRADE | {"position_size": True},
    "another ticker": TRADE | {"symbol": "TSLA"},
    "an unknown action": TRADE | {"recommendation": "SHORT"},
    "an unknown rule": TRADE | {"rule": "gut feeling"},
    "a rule of the other side": TRADE | {"rule": "reversal"},
    "no grounds": TRADE | {"explanation": "  \u200b "},
    "half of it": {"symbol": "MSFT", "recommendation": "BUY"},
    "an extra field": TRADE | {"leverage": 10},
    "nothing in it": {},
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
async def test_a_rule_breaking_answer_goes_back_once_and_then_the_agent_abstains(bad: dict[str, Any]) -> None:
    desk = Desk(ListedModel([answered(bad)]))
    reply = await desk.asker.ask(DECISION, decision_view())
    assert reply.answer is None
    assert reply.attempts == 2 and len(desk.model.requests) == 2
    assert reply.abstained_because.startswith("malformed: ")
    assert [r.outcome for r in desk.records] == ["sent back", "abstained"]


@pytest.mark.parametrize(
    "text", ["I would buy some.", '{"symbol": "MSFT", "recomm', ""], ids=["prose", "half JSON", "nothing"]
)
async def test_what_is_no_answer_at_all_goes_back_once(text: str) -> None:
    desk = Desk(ListedModel([failed(FailureKind.MALFORMED, "no JSON", text), answered(TRADE)]))
    reply = await desk.asker.ask(DECISION, decision_view())
    assert reply.answer is not None and reply.attempts == 2
    assert [r.outcome for r in desk.records] == ["sent back", "answered"]


async def test_the_complaint_names_the_fault_and_follows_the_answer() -> None:
    desk = Desk(ListedModel([answered(TRADE | {"position_size": 1000}), answered(TRADE)]))
    await desk.asker.ask(DECISION, decision_view())
    first, second = desk.model.requests
    assert len(first.messages) == 1
    assert [m.role for m in second.messages] == ["user", "assistant", "user"]
    assert second.messages[0] == first.messages[0]
    assert "1000" not in second.messages[1].text
    quoted, fault = second.messages[2].text.split("answer>>>")
    assert "<<<answer" in quoted and "1000" in quoted
    assert "<<<fault" in fault and "position_size" in fault and "1000" in fault


@pytest.mark.parametrize("kind", [FailureKind.REFUSED, FailureKind.CUT_OFF])
async def test_other_failures_of_an_answer_abstain_without_a_second_call(kind: FailureKind) -> None:
    desk = Desk(ListedModel([failed(kind, "try in 60 s")]))
    reply = await desk.asker.ask(DECISION, decision_view())
    assert (reply.answer, reply.attempts) == (None, 1)
    assert reply.abstained_because == f"{kind.value}: try in 60 s"
    assert [r.outcome for r in desk.records] == ["abstained"]


@pytest.mark.parametrize("kind", sorted(MAY_PASS | STAYS))
async def test_an_outage_is_no_abstention(kind: FailureKind) -> None:
    desk = Desk(ListedModel([failed(kind, "try in 60 s")]))
    with pytest.raises(TryAgainLater if kind in MAY_PASS else ConfigError, match=f"{kind.value}: try in 60 s"):
        await desk.asker.ask(DECISION, decision_view())
    # A question that is too long is shortened once.
    assert (desk.records, len(desk.model.requests)) == ([], 1 + (kind is FailureKind.TOO_LONG))


async def test_a_model_that_sees_gets_the_chart_and_no_table() -> None:
    desk = Desk(ListedModel([answered(READING)]))
    reply = await desk.asker.ask(CHART, CHART_VIEW)
    assert reply.answer == ChartReading.model_validate(READING)
    (message,) = desk.model.requests[0].messages
    assert message.charts == (PICTURE,)
    assert "<<<table" not in message.text
    assert desk.records[0].seen


async def test_a_model_that_does_not_see_gets_the_table_and_the_record_says_so() -> None:
    desk = Desk(ListedModel([answered(READING)], sees=False))
    await desk.asker.ask(CHART, CHART_VIEW)
    (message,) = desk.model.requests[0].messages
    assert message.charts == ()
    assert "2023-06-01 | 1.50" in message.text
    (record,) = desk.records
    assert not record.seen and record.charts == (PICTURE,)
    assert "picture" not in record.system


@pytest.mark.parametrize(("words", "shown"), [(11, 11), (20, 20), (21, 20)])
async def test_readings_that_run_over_ten_words_are_kept_and_shown_up_to_twenty(words: int, shown: int) -> None:
    trend = " ".join(["up"] * words)
    desk = Desk(ListedModel([answered(READING | {"macd": {"trend": trend, "signal": "buy"}})]))
    reply = await desk.asker.ask(CHART, CHART_VIEW)
    assert reply.answer is not None and reply.answer.macd.trend == trend
    assert reply.answer.lines()[0].count("up") == shown


async def test_equal_questions_have_equal_hashes_and_any_difference_shows() -> None:
    async def hashed(view: Any, sees: bool = True) -> str:
        desk = Desk(ListedModel([answered(READING)], sees))
        await desk.asker.ask(CHART, view)
        return desk.records[0].prompt_hash

    other = replace(PICTURE, lines=(Line("a", (2.0,)),))
    changed = ChartView("MSFT", date(2023, 6, 1), "desk", other, CHART_VIEW.table)
    assert await hashed(CHART_VIEW) == await hashed(CHART_VIEW)
    assert len({await hashed(CHART_VIEW), await hashed(changed), await hashed(CHART_VIEW, False)}) == 3


def test_a_prompt_s_version_follows_its_wording_and_what_that_imports(tmp_path: Path) -> None:
    prompt, other = tmp_path / "chart.md", tmp_path / "answer.md"
    prompt.write_text('{% block system %}{% from "answer.md" import foreign %}a{% endblock %}')
    other.write_text("{% macro foreign() %}b{% endmacro %}")
    versions = [prompt_version(prompt, CHART.answer), prompt_version(prompt, DECISION.answer)]
    for file in (other, prompt):
        file.write_text(file.read_text().replace("b{%", "c{%").replace("a{%", "d{%"))
        prompt_version.cache_clear()
        versions.append(prompt_version(prompt, CHART.answer))
    assert len(set(versions)) == 4


async def test_each_agent_asks_its_own_model_with_its_own_settings() -> None:
    cheap, dear = ListedModel([answered(READING)]), ListedModel([answered(TRADE)])
    settings = {"default": AgentSettings(temperature=0.3), "decision": AgentSettings(temperature=1.0, timeout=9.0)}
    asker = Asker({"default": cheap, "decision": dear}, settings, lambda r: None, lambda a, t: None)
    await asker.ask(CHART, CHART_VIEW)
    await asker.ask(DECISION, decision_view())
    assert cheap.requests[0].settings == ModelSettings(0.3, 2048, 120.0)
    assert dear.requests[0].settings == ModelSettings(1.0, 2048, 9.0)
    assert dear.requests[0].options == AnswerOptions()
    with pytest.raises(ConfigError, match="chart"):
        Asker({"decision": dear}, {}, lambda r: None, lambda a, t: None).model_of("chart")


async def test_an_answer_cannot_bring_markup_or_escapes_in() -> None:
    desk = Desk(ListedModel([answered(TRADE | {"explanation": "fine \x1b[31m<b>red</b>\nnext\u202e line"})]))
    reply = await desk.asker.ask(DECISION, decision_view())
    assert reply.answer is not None
    assert reply.answer.explanation == "fine red\nnext line"
