"""Backtests whose model answers over HTTP in ways that local and remote models do, read from the journal."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import pytest

from connectors.wiring.services import services
from engine import places
from engine.app.backtest import run_backtest
from engine.config import Config
from engine.domain.decision import Action
from engine.domain.run import DataSpec, RunSpec
from engine.journal.entries import AnswerEntry
from engine.journal.reader import JournalReader
from tests.servers.fake_llm_server import FakeLLMServer, Say, Turn, fake_llm_server

SPEC = RunSpec(
    symbols=("ORVL",),
    first=date(2024, 3, 4),
    last=date(2024, 3, 6),
    preset="finvision-no-reflection",
    data=DataSpec(demo_seed=7),
)
READING = {"trend": "MACD is above its signal line", "signal": "buy"}
ANSWERS: dict[str, dict[str, Any]] = {
    "ChartReading": {"macd": READING, "kdj_rsi": READING, "bollinger": None},
    "NewsDigest": {
        "summary": ["Nothing happened."],
        "positive": [],
        "negative": [],
        "reason": "Nothing happened.",
        "sentiment": "neutral",
        "unrelated": 0,
    },
    "TradeAnswer": {
        "symbol": "ORVL",
        "explanation": "The price is rising.",
        "rule": "strong uptrend",
        "recommendation": "BUY",
        "position_size": 5,
    },
}
Answering = Callable[[str, dict[str, Any]], Turn | None]
"""A turn for a schema and a request's body; None: the usual answer."""


class Noon:
    def now(self) -> datetime:
        return datetime(2025, 7, 1, 12, tzinfo=UTC)


@pytest.fixture
def server() -> Iterator[FakeLLMServer]:
    with fake_llm_server() as served:
        yield served


def answer_by(server: FakeLLMServer, answering: Answering) -> None:
    """Make the server answer every agent's schema, some as a function says."""

    def turn(body: dict[str, Any], headers: dict[str, str]) -> Turn:
        server.requests.append(body)
        schema = body["response_format"]["json_schema"]["name"]
        return answering(schema, body) or Say(text=json.dumps(ANSWERS[schema]))

    server.next_turn = turn  # type: ignore[method-assign]


def config(server: FakeLLMServer, *, replay: str = "read-through", **endpoint: Any) -> Config:
    near = {"base_url": server.openai_url, "requests_per_minute": 60_000} | endpoint
    return Config.model_validate({"models": {"default": "near:m", "replay": replay}, "endpoints": {"near": near}})


def backtest(config: Config, run: str, **changes: Any) -> tuple[list[AnswerEntry], list[Action]]:
    """The calls and the actions of a backtest, from its journal."""
    run_backtest(services(config, Noon()), replace(SPEC, run=run, **changes))
    with JournalReader(places.run_journal(run)) as reader:
        decisions = reader.decisions()
        return [entry for decision in decisions for entry in reader.answers(decision.key)], [
            decision.action for decision in decisions
        ]


def of(entries: list[AnswerEntry], agent: str) -> list[AnswerEntry]:
    return [entry for entry in entries if entry.agent == agent]


def test_a_reading_that_runs_over_its_words_is_kept(server: FakeLLMServer) -> None:
    trend = "MACD crossed above its signal line today and the gap between them widens further"
    wordy = ANSWERS["ChartReading"] | {"macd": {"trend": trend, "signal": "buy"}}
    answer_by(server, lambda schema, body: Say(text=json.dumps(wordy)) if schema == "ChartReading" else None)

    entries, actions = backtest(config(server), "wordy")

    chart = of(entries, "chart")
    assert [entry.outcome for entry in chart] == ["answered"] * 3
    assert {entry.answer["macd"]["trend"] for entry in chart if entry.answer} == {trend}
    assert trend in of(entries, "decision")[0].messages[0].text
    assert actions == [Action.BUY] * 3


def test_a_bad_answer_is_quoted_back_in_part_and_stored_up_to_a_limit(server: FakeLLMServer) -> None:
    def answering(schema: str, body: dict[str, Any]) -> Turn | None:
        if schema == "TradeAnswer" and len(body["messages"]) == 2:
            return Say(text=json.dumps(ANSWERS[schema] | {"explanation": "because " * 40_000}))
        return None

    answer_by(server, answering)
    entries, actions = backtest(config(server), "endless")

    first, second = of(entries, "decision")[:2]
    assert (first.outcome, second.outcome) == ("sent back", "answered")
    assert first.reason == "malformed: the answer is too long: 320108 characters, 100000 at most"
    assert len(first.result.text) == 100_000
    assert first.result.text.startswith(second.messages[1].text[:2_000])
    assert second.messages[1].text.endswith(" ... (98000 more characters)")
    assert actions == [Action.BUY] * 3
    # What was recorded answers the same questions again.
    asked = len(server.requests)
    assert backtest(config(server), "again", model="replay")[1] == actions
    assert len(server.requests) == asked
