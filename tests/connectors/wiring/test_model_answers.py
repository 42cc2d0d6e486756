"""Backtests whose model answers over HTTP in ways that local and remote models do, read from the journal."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from connectors.wiring.services import services
from engine.agents.immediate import FiveLevelReflection, ThreeWayReflection
from engine.agents.registry import registered
from engine.app.research.backtest import run_backtest
from engine.domain.decision import Action
from engine.domain.model_call import AnswerRecord
from engine.domain.run import DataSpec, RunSpec
from engine.journal.reader import JournalReader
from engine.settings import places
from engine.settings.config import Config
from tests.connectors.wiring.clocks import NOON
from tests.servers.fake_llm_server import Fail, FakeLLMServer, Say, Turn, fake_llm_server

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


def backtest(config: Config, run: str, **changes: Any) -> tuple[list[AnswerRecord], list[Action]]:
    """The calls and the actions of a backtest, from its journal."""
    run_backtest(services(config, NOON), replace(SPEC, run=run, **changes))
    with JournalReader(places.run_journal(run)) as reader:
        decisions = reader.decisions()
        return [entry for decision in decisions for entry in reader.answers(decision.key)], [
            decision.action for decision in decisions
        ]


def of(entries: list[AnswerRecord], agent: str) -> list[AnswerRecord]:
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
    # Quoted with the complaint, fenced as what a model wrote; the turn before it is ours alone.
    assert second.messages[1].text == "(This answer cannot be used.)"
    assert first.result.text[:2_000] + " ... (98000 more characters)" in second.messages[2].text
    assert actions == [Action.BUY] * 3
    # What was recorded answers the same questions again.
    asked = len(server.requests)
    assert backtest(config(server), "again", model="replay")[1] == actions
    assert len(server.requests) == asked


def cut_below(limit: int) -> Answering:
    """Decisions cut at the token limit, up to a limit."""

    def answering(schema: str, body: dict[str, Any]) -> Turn | None:
        short = schema == "TradeAnswer" and body.get("max_tokens", 0) < limit
        return Say(text='{"symbol": "OR', ending="cut off", tokens_out=8192) if short else None

    return answering


def test_an_answer_cut_at_the_limit_is_asked_once_more_with_a_larger_one(server: FakeLLMServer) -> None:
    answer_by(server, cut_below(10_000))
    entries, actions = backtest(config(server), "cut")

    decisions = of(entries, "decision")
    assert actions == [Action.BUY] * 3
    assert [entry.outcome for entry in decisions] == ["answered"] * 3
    assert all("asked once more with 32768 tokens" in "".join(entry.result.notes) for entry in decisions)
    # Both calls are paid for.
    assert {entry.result.usage.output_tokens for entry in decisions} == {8192 + 20}
    asked = len(server.requests)
    assert backtest(config(server), "cut-again", model="replay")[1] == actions
    assert len(server.requests) == asked


@pytest.mark.parametrize("larger", [Say(text="{", ending="cut off"), Fail(400, "max_tokens is too large")])
def test_an_answer_that_is_cut_twice_is_an_abstention(server: FakeLLMServer, larger: Turn) -> None:
    cut = cut_below(10_000)
    answer_by(server, lambda schema, body: cut(schema, body) or (larger if schema == "TradeAnswer" else None))
    entries, actions = backtest(config(server), "cut-twice")

    assert actions == [Action.ABSTAIN] * 3
    assert [entry.reason.partition(":")[0] for entry in of(entries, "decision")] == ["cut off"] * 3
    sent = [body["max_tokens"] for body in server.requests if body["response_format"]["json_schema"]["name"][0] == "T"]
    assert sent == [8192, 32768] * 3


@pytest.mark.parametrize(
    "refusal",
    [
        Fail(400, "Invalid content type. image_url is only supported by certain models."),
        Fail(500, "image input is not supported - hint: you may need to provide the mmproj"),
    ],
)
def test_a_refused_picture_falls_back_to_the_table_once(server: FakeLLMServer, refusal: Fail) -> None:
    answer_by(server, lambda schema, body: refusal if "image_url" in json.dumps(body["messages"]) else None)
    entries, actions = backtest(config(server, vision=True), "blind")

    chart = of(entries, "chart")
    assert actions == [Action.BUY] * 3
    assert [(entry.outcome, entry.seen) for entry in chart] == [("answered", False)] * 3
    assert all("<<<table" in entry.messages[0].text for entry in chart)
    assert all("takes no images" in "".join(entry.result.notes) for entry in chart)
    assert sum("image_url" in json.dumps(body["messages"]) for body in server.requests) == 1
    asked = len(server.requests)
    assert backtest(config(server, vision=True), "blind-again", model="replay")[1] == actions
    assert len(server.requests) == asked


def test_a_refused_stream_falls_back_to_a_plain_call_once(server: FakeLLMServer) -> None:
    refusal = Fail(400, "Your organization must be verified to stream this model.", param="stream")
    answer_by(server, lambda schema, body: refusal if body.get("stream") else None)
    entries, actions = backtest(config(server), "plain")

    assert actions == [Action.BUY] * 3
    assert {entry.outcome for entry in entries} == {"answered"}
    streamed = [bool(body.get("stream")) for body in server.requests]
    assert streamed[0] and sum(streamed) <= 2, "two agents ask side by side before either is refused"


@pytest.fixture
def rates(monkeypatch: pytest.MonkeyPatch) -> dict[float, list[float]]:
    """The amounts that every rate limiter was asked for, by its rate."""
    asked: dict[float, list[float]] = {}

    class Limiter:
        def __init__(self, rate: float, period: float) -> None:
            assert period == 60
            self._amounts = asked.setdefault(rate, [])

        async def acquire(self, amount: float) -> None:
            self._amounts.append(amount)

    monkeypatch.setattr("aiolimiter.AsyncLimiter", Limiter)
    return asked


def test_an_endpoint_on_this_machine_has_no_rate_of_its_own(
    server: FakeLLMServer, rates: dict[float, list[float]]
) -> None:
    answer_by(server, lambda schema, body: None)
    entries, _ = backtest(config(server, requests_per_minute=None), "unlimited")

    assert entries and rates == {}


def test_a_vendor_has_the_limits_that_are_configured(
    server: FakeLLMServer, rates: dict[float, list[float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_by(server, cut_below(3_000))
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-a-test")
    vendor = {"base_url": server.openai_url, "requests_per_minute": 77, "tokens_per_minute": 9_000, "concurrency": 1}
    limits = {"max_output_tokens": 500, "thinking_tokens": 1_500}
    own = Config.model_validate({"models": {"default": "openai:m"}, "endpoints": {"openai": vendor | limits}})
    entries, _ = backtest(own, "vendor")

    assert server.busiest == 1
    calls = len(entries) + len(server.preflights)
    assert rates[77] == [1] * calls
    assert len(rates[9_000]) == 2 * calls
    assert min(rates[9_000]) == 2 and 300 < max(rates[9_000]) < 9_000
    # The agents' own limits are 2048 and 8192; thinking comes on top, and no larger limit is tried for a cut answer.
    assert {body["max_completion_tokens"] for body in server.requests} == {2_000}


def test_a_server_without_an_address_is_a_fault_of_the_configuration() -> None:
    with pytest.raises(ValueError, match="near needs a base_url"):
        Config.model_validate({"endpoints": {"near": {}}})


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    """The properties of every object in a schema, labels that are defined elsewhere in their place."""

    def within(node: Any) -> Iterator[dict[str, Any]]:
        if isinstance(node, dict):
            if "properties" in node:
                yield {name: value | defined.get(value.get("$ref"), {}) for name, value in node["properties"].items()}
            node = list(node.values())
        if isinstance(node, list):
            for child in node:
                yield from within(child)

    defined = {f"#/$defs/{name}": one for name, one in schema.get("$defs", {}).items()}
    return within(schema)


def reasons_first(properties: dict[str, Any]) -> bool:
    """True where a text of the model's own stands before every label; ids, tickers and dates are no text."""
    own = {name: value for name, value in properties.items() if name not in {"id", "symbol", "session"}}
    labels = [at for at, v in enumerate(own.values()) if "enum" in v or v.get("type") == "boolean"]
    texts = [at for at, v in enumerate(own.values()) if v.get("type") == "string" and "enum" not in v]
    return not labels or not texts or min(texts) < min(labels)


def test_a_model_writes_its_reasons_before_any_label(server: FakeLLMServer) -> None:
    answer_by(server, lambda schema, body: None)
    backtest(config(server), "reasons")
    sent = [body["response_format"]["json_schema"]["schema"] for body in server.requests]
    assert {"recommendation", "sentiment", "macd"} <= {name for schema in sent for name in schema["properties"]}
    of_agents = [agent.answer.model_json_schema() for agent in registered().values()]
    of_agents += [ThreeWayReflection.model_json_schema(), FiveLevelReflection.model_json_schema()]

    wrong = [list(one) for schema in [*sent, *of_agents] for one in objects(schema) if not reasons_first(one)]
    assert not wrong
    decision = next(schema for schema in sent if "recommendation" in schema["properties"])
    assert list(decision["properties"])[:3] == ["symbol", "explanation", "recommendation"]
