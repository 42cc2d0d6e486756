"""The two vendors' models through their real packages, against a service on loopback that misbehaves on request."""

from __future__ import annotations

import asyncio
import base64
import json
from decimal import Decimal
from typing import Any

import pytest

from connectors.llm.endpoint import Endpoint, RateLimiter
from engine.domain.model_call import FailureKind, Message, Usage
from engine.errors import ConfigError, CredentialsRefused
from tests.servers.fake_llm_server import ErrorEvent, Fail, FakeLLMServer, Hang, Raw, Reset, Say, Turn
from tests.servers.llm_questions import OnePixelPainter, question, small_chart


@pytest.fixture(params=["whole", "streamed"])
def on_delta(request: pytest.FixtureRequest) -> Any:
    """None for a reply in one piece, a collector for a stream."""
    if request.param == "whole":
        return None
    pieces: list[str] = []

    def collect(piece: str) -> None:
        pieces.append(piece)

    collect.pieces = pieces  # type: ignore[attr-defined]
    return collect


async def test_an_answer_comes_with_its_usage_its_cost_and_its_stop_reason(
    make_model, server: FakeLLMServer, vendor, on_delta
) -> None:
    # Cached tokens stand inside OpenAI's prompt_tokens and outside Anthropic's input_tokens.
    tokens_in = 1000 if vendor == "openai" else 300
    server.play(Say(tokens_in=tokens_in, cached=600, written=100, tokens_out=50, reasoned=30))
    result = await make_model().answer(question(), on_delta)
    assert result.answer == {"action": "BUY", "size": 3}
    assert result.failure is None
    assert result.usage == Usage(1000, cached_input_tokens=600, output_tokens=50, reasoning_tokens=30)
    # Both price rows: 300 plain at $2, 600 cached at $0.10, 100 written at $2.50, 50 out at $10 a million.
    assert result.cost == Decimal("0.00141")
    assert result.stop_reason in {"stop", "end_turn"}
    assert result.latency > 0
    assert result.cached is False
    if on_delta is not None:
        assert len(on_delta.pieces) > 1
        assert "".join(on_delta.pieces) == result.text


async def test_a_model_without_a_price_has_no_cost(make_model, server: FakeLLMServer) -> None:
    result = await make_model("somebodys-own").answer(question())
    assert result.answer is not None
    assert result.cost is None


async def test_charts_arrive_as_base64_png_after_the_text_of_their_turn(
    make_model, server: FakeLLMServer, vendor
) -> None:
    charts = (small_chart(11.0), small_chart(10.0))
    turns = (Message("user", "Read them.", charts), Message("assistant", "{}"), Message("user", "Again."))
    await make_model(painter=OnePixelPainter()).answer(question(messages=turns))
    sent = [turn for turn in server.requests[0]["messages"] if turn["role"] != "system"]
    pictures = []
    for part in sent[0]["content"]:
        if part["type"] == "image_url":
            head, data = part["image_url"]["url"].split(",")
            assert head == "data:image/png;base64"
            pictures.append(base64.b64decode(data))
        elif part["type"] == "image":
            assert part["source"]["media_type"] == "image/png"
            pictures.append(base64.b64decode(part["source"]["data"]))
    assert pictures == [await OnePixelPainter().paint(chart) for chart in charts]
    assert sent[0]["content"][0] == {"type": "text", "text": "Read them."}
    assert [turn["content"] for turn in sent[1:]] == ["{}", "Again."]


async def test_a_model_without_vision_is_sent_no_chart_and_says_so(make_model, server: FakeLLMServer) -> None:
    model = make_model(painter=None)
    result = await model.answer(question(messages=(Message("user", "Read it.", (small_chart(),)),)))
    assert model.sees is False
    assert server.requests[0]["messages"][-1]["content"] == "Read it."
    assert any("1 chart(s) not shown" in note for note in result.notes)


async def test_the_schema_is_enforced_by_the_endpoint(make_model, server: FakeLLMServer, vendor) -> None:
    result = await make_model().answer(question())
    sent = server.requests[0]
    if vendor == "openai":
        form = sent["response_format"]["json_schema"]
        assert form["strict"] is True
        schema = form["schema"]
    else:
        schema = sent["output_config"]["format"]["schema"]
    assert set(schema["properties"]) == {"action", "size"}
    assert schema["additionalProperties"] is False
    assert schema["properties"]["action"]["enum"] == ["BUY", "HOLD", "SELL"]
    assert not any("schema" in note for note in result.notes)


async def test_an_endpoint_that_cannot_enforce_the_schema_is_asked_in_words_from_then_on(
    make_model, server: FakeLLMServer, vendor, on_delta
) -> None:
    refused = "'response_format' is not supported" if vendor == "openai" else "output_config: unknown field"
    server.play(Fail(400, refused), Say())
    model = make_model()
    result = await model.answer(question(), on_delta)
    assert result.answer == {"action": "BUY", "size": 3}
    assert any("schema asked for in words" in note for note in result.notes)
    assert '"enum":["BUY","HOLD","SELL"]' in json.dumps(server.requests[1]).replace('\\"', '"')
    await model.answer(question(), on_delta)
    assert len(server.requests) == 3


async def test_a_schema_with_an_open_object_is_not_narrowed(make_model, server: FakeLLMServer, vendor) -> None:
    weights = {"type": "object", "additionalProperties": {"type": "number"}}
    schema = {"type": "object", "properties": {"weights": weights}, "required": ["weights"]}
    await make_model().answer(question(schema=schema))
    if vendor == "openai":
        form = server.requests[0]["response_format"]["json_schema"]
        assert (form["strict"], form["schema"]) == (False, schema)
    else:
        assert "output_config" not in server.requests[0]
        assert "additionalProperties" in server.requests[0]["system"][0]["text"]


@pytest.mark.parametrize(
    ("turn", "kind", "says"),
    [
        (Say(text="I would rather not.", ending="refused"), FailureKind.REFUSED, "I would rather not."),
        (Say(text='{"action": "BU', ending="cut off"), FailureKind.CUT_OFF, "token limit"),
        (Say(text="I think you should buy."), FailureKind.MALFORMED, "prose"),
        (Say(text="[1, 2]"), FailureKind.MALFORMED, "array"),
        (Say(text='{"action": '), FailureKind.MALFORMED, "not valid JSON"),
        (Say(text='{"size": NaN}'), FailureKind.MALFORMED, "NaN"),
        (Say(text=""), FailureKind.MALFORMED, "empty"),
        (Say(text="{}", ending="missing"), FailureKind.UNAVAILABLE, "without a stop reason"),
        (Fail(429, "slow down", "rate_limit"), FailureKind.RATE_LIMITED, "slow down"),
    ],
)
async def test_trouble_is_a_failure_of_its_kind(
    make_model, server: FakeLLMServer, turn: Turn, kind, says, on_delta
) -> None:
    server.play(turn)
    result = await make_model().answer(question(), on_delta)
    assert result.answer is None
    assert result.failure is not None
    assert (result.failure.kind, says in result.failure.detail) == (kind, True), result.failure
    assert "\n" not in result.failure.detail
    assert result.request_hash


async def test_a_broken_connection_is_unavailable(make_model, server: FakeLLMServer, on_delta) -> None:
    server.play(Reset())
    result = await make_model().answer(question(), on_delta)
    assert result.failure is not None
    assert result.failure.kind is FailureKind.UNAVAILABLE, result.failure


async def test_an_error_event_inside_a_stream_is_told_by_its_type(make_model, server: FakeLLMServer) -> None:
    for kind, expected in (
        ("overloaded_error", FailureKind.UNAVAILABLE),
        ("rate_limit_error", FailureKind.RATE_LIMITED),
    ):
        server.play(ErrorEvent(kind))
        result = await make_model().answer(question(), lambda piece: None)
        assert result.failure is not None
        assert result.failure.kind is expected, result.failure


async def test_what_may_pass_is_asked_again(make_model, server: FakeLLMServer) -> None:
    server.play(Fail(500, "boom"), Fail(503, "busy"), Say())
    assert (await make_model().answer(question())).answer is not None
    assert len(server.requests) == 3


async def test_nobody_at_the_address_is_unavailable(make_model, server: FakeLLMServer) -> None:
    result = await make_model(base_url="http://127.0.0.1:9").answer(question())
    assert result.failure is not None
    assert result.failure.kind is FailureKind.UNAVAILABLE


async def test_a_hanging_service_meets_the_calls_own_deadline(make_model, server: FakeLLMServer, on_delta) -> None:
    server.play(Hang())
    result = await make_model().answer(question(settings={"timeout": 0.2}), on_delta)
    assert result.failure is not None
    assert (result.failure.kind, result.failure.detail) == (FailureKind.TIMED_OUT, "no answer within 0.2 s")


async def test_a_long_retry_after_is_not_slept_out(make_model, server: FakeLLMServer, vendor, on_delta) -> None:
    for seconds in ("30", "3600"):
        server.play(Fail(429, "slow down", "rate_limit_error", headers=(("retry-after", seconds),)))
        async with asyncio.timeout(25):
            result = await make_model().answer(question(settings={"timeout": 5}), on_delta)
        assert result.failure is not None
        assert result.failure.kind is FailureKind.RATE_LIMITED, result.failure


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_is_an_error_that_names_the_variable_and_not_the_key(
    make_model, server: FakeLLMServer, vendor, status, on_delta
) -> None:
    server.play(Fail(status, "Incorrect API key provided: sk-secret-1"))
    model = make_model()
    with pytest.raises(CredentialsRefused) as caught:
        await model.answer(question(), on_delta)
    assert f"{vendor.upper()}_API_KEY" in str(caught.value)
    assert "sk-secret" not in f"{caught.value!r} {model!r}"


@pytest.mark.parametrize("key", [None, "", "  "])
async def test_a_missing_key_is_an_error_before_anything_is_sent(make_model, server, vendor, key) -> None:
    with pytest.raises(CredentialsRefused, match=f"set {vendor.upper()}_API_KEY"):
        await make_model(api_key=key).answer(question())
    assert not server.requests


async def test_an_impossible_key_is_reported_without_showing_it(make_model) -> None:
    with pytest.raises(CredentialsRefused) as caught:
        await make_model(api_key="sk-sécret").answer(question())
    assert "cret" not in str(caught.value)


async def test_a_base_url_without_a_scheme_is_an_error(make_model) -> None:
    with pytest.raises(ConfigError, match="http://"):
        await make_model(base_url="localhost:11434").answer(question())


def test_an_endpoint_is_checked_before_it_is_asked_and_never_shows_its_key(vendor) -> None:
    parts = {"provider": vendor, "key_variable": f"{vendor.upper()}_API_KEY"}
    with pytest.raises(CredentialsRefused, match=f"vendor:m needs a key: set {vendor.upper()}_API_KEY"):
        Endpoint(**parts).check("vendor:m")
    with pytest.raises(ConfigError, match="http://"):
        Endpoint(**parts, api_key="sk-secret-1", base_url="localhost:1").check("vendor:m")
    assert "sk-secret" not in repr(Endpoint(**parts, api_key="sk-secret-1"))


async def test_a_key_that_is_echoed_is_taken_out_of_the_detail(make_model, server: FakeLLMServer) -> None:
    server.play(Fail(400, "bad header: Bearer sk-secret-1\nsecond line"))
    result = await make_model().answer(question())
    assert result.failure is not None
    assert result.failure.detail == "bad header: Bearer [key] second line (HTTP 400)"


async def test_a_key_is_not_told_in_part_either(make_model, server: FakeLLMServer) -> None:
    for ahead in range(205, 245, 5):
        server.play(Fail(400, "x" * ahead + "sk-secret-1" + "y" * 100))
        result = await make_model().answer(question())
        assert result.failure is not None
        assert "sk" not in result.failure.detail


async def test_a_wish_for_a_temperature_is_dropped_with_a_note(
    make_model, server: FakeLLMServer, vendor, on_delta
) -> None:
    if vendor == "openai":
        server.play(Fail(400, "Unsupported value", param="temperature"), Say())
    model = make_model()
    for calls in (2, 3):
        result = await model.answer(question(settings={"temperature": 0.7}), on_delta)
        assert result.answer is not None
        assert [note for note in result.notes if "temperature 0.7 not sent" in note]
        assert "temperature" not in server.requests[-1]
        assert len(server.requests) == (calls if vendor == "openai" else calls - 1)


async def test_a_temperature_that_the_user_insists_on_is_an_error(make_model, server: FakeLLMServer, vendor) -> None:
    server.play(Fail(400, "Unsupported value", param="temperature"))
    with pytest.raises(ConfigError, match="takes no temperature"):
        await make_model().answer(question(settings={"temperature": 0.7, "insist": True}))


async def test_the_gate_bounds_how_many_calls_run_at_once(make_model, server: FakeLLMServer) -> None:
    model = make_model(limiter=RateLimiter(concurrency=2))
    results = await asyncio.gather(*(model.answer(question(sample=n)) for n in range(8)))
    assert all(result.answer is not None for result in results)
    assert server.busiest <= 2
    assert len({result.request_hash for result in results}) == 8


async def test_a_call_can_be_cancelled(make_model, server: FakeLLMServer) -> None:
    server.play(Hang())
    task = asyncio.create_task(make_model().answer(question()))
    while not server.requests:
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_address_may_come_from_the_environment(
    make_model, server: FakeLLMServer, vendor, monkeypatch
) -> None:
    url = server.openai_url if vendor == "openai" else server.anthropic_url
    monkeypatch.setenv(f"{vendor.upper()}_BASE_URL", url)
    assert (await make_model(base_url=None).answer(question())).answer is not None
    assert len(server.requests) == 1


async def test_room_for_thinking_is_added_to_the_limit_of_the_answer(make_model, server: FakeLLMServer, vendor) -> None:
    await make_model(thinking_tokens=1000).answer(question(settings={"max_output_tokens": 500}))
    name = "max_completion_tokens" if vendor == "openai" else "max_tokens"
    assert server.requests[0][name] == 500 + 1000


async def test_options_are_sent_under_the_vendors_names(make_model, server: FakeLLMServer, vendor) -> None:
    own = {"verbosity": "low"} if vendor == "openai" else {"thinking": "adaptive"}
    await make_model().answer(question(options={"effort": "high", "tier": "default", **own}))
    sent = server.requests[-1]
    if vendor == "openai":
        assert (sent["reasoning_effort"], sent["verbosity"], sent["service_tier"]) == ("high", "low", "default")
    else:
        assert sent["output_config"]["effort"] == "high" and sent["output_config"]["format"]
        assert (sent["thinking"], sent["service_tier"]) == ({"type": "adaptive"}, "standard_only")

        await make_model().answer(question(options={"thinking": "enabled"}, settings={"max_output_tokens": 100}))
        thought = server.requests[-1]["thinking"]["budget_tokens"]
        assert server.requests[-1]["max_tokens"] == thought + 100, "an answer has room beside the thinking"

    await make_model().answer(question())
    assert not {"reasoning_effort", "verbosity", "service_tier", "thinking"} & set(server.requests[-1])


async def test_an_option_that_the_model_refuses_is_a_configuration_error(
    make_model, server: FakeLLMServer, vendor
) -> None:
    name = "reasoning_effort" if vendor == "openai" else "output_config.effort"
    server.play(Fail(400, f"Unsupported value: {name}", param=name))
    with pytest.raises(ConfigError, match="effort = max"):
        await make_model().answer(question(options={"effort": "max"}))
    foreign = {"thinking": "enabled"} if vendor == "openai" else {"verbosity": "low"}
    with pytest.raises(ConfigError, match=next(iter(foreign))):
        await make_model().answer(question(options=foreign))


@pytest.mark.parametrize(("tier", "cost"), [("", "0.003"), ("flex", "0.0015"), ("priority", None)])
async def test_the_tier_that_the_reply_names_sets_the_price(
    make_model, server: FakeLLMServer, tier: str, cost: str | None, on_delta
) -> None:
    server.play(Say(tokens_in=1000, tokens_out=100, tier=tier))
    result = await make_model().answer(question(), on_delta)
    assert (result.tier, result.cost) == (tier, None if cost is None else Decimal(cost))


async def test_a_flex_tier_without_capacity_is_left_for_the_standard_one(
    make_model, server: FakeLLMServer, vendor, on_delta
) -> None:
    if vendor == "anthropic":
        result = await make_model().answer(question(options={"tier": "flex"}), on_delta)
        assert "service_tier" not in server.requests[-1]
        assert [note for note in result.notes if "tier flex not sent" in note]
        return
    server.play(Fail(429, "Resource Unavailable", "resource_unavailable"), Say(tier="default"))
    result = await make_model().answer(question(options={"tier": "flex"}), on_delta)
    assert [one["service_tier"] for one in server.requests] == ["flex", "default"]
    assert result.tier == "default" and [note for note in result.notes if "standard tier" in note]


@pytest.mark.parametrize("vendor", ["openai"])
async def test_a_cut_answer_is_asked_again_at_the_tier_that_had_capacity(make_model, server: FakeLLMServer) -> None:
    full, cut = Fail(429, "Resource Unavailable", "resource_unavailable"), Say(text="{", ending="cut off")
    server.play(full, cut, Say(tier="default"))
    result = await make_model().answer(question(options={"tier": "flex"}))
    assert [one["service_tier"] for one in server.requests] == ["flex", "default", "default"]
    assert result.failure is None and not result.failed
    server.play(cut, full)
    result = await make_model().answer(question(options={"tier": "flex"}))
    assert result.failure is not None and result.failure.kind is FailureKind.CUT_OFF
    assert len(server.requests) == 2


@pytest.mark.parametrize("vendor", ["openai"])
async def test_an_allowance_that_is_used_up_for_a_day_is_not_waited_for(make_model, server: FakeLLMServer) -> None:
    headers = (("x-ratelimit-remaining-requests", "0"), ("x-ratelimit-reset-requests", "22h"))
    body = {"choices": [{"message": {"content": "{}"}, "finish_reason": "stop"}]}
    server.play(Raw(json.dumps(body).encode(), headers=headers))
    model = make_model()
    assert (await model.answer(question())).failure is None
    async with asyncio.timeout(20):
        result = await model.answer(question())
    assert result.failure is not None and result.failure.kind is FailureKind.RATE_LIMITED
    assert len(server.requests) == 1


async def test_a_long_beginning_is_marked_for_the_vendors_cache(make_model, server: FakeLLMServer, vendor) -> None:
    rules = "Hold what rises. " * 300
    for system in (rules, "You run a paper desk."):
        await make_model().answer(question(system=system))
        sent = server.requests[-1]
        marked = "prompt_cache_key" in sent if vendor == "openai" else "cache_control" in sent["system"][-1]
        assert marked is (system is rules)


async def test_the_first_question_with_a_new_beginning_goes_alone(make_model, server: FakeLLMServer) -> None:
    model, rules = make_model(limiter=RateLimiter(16)), "Hold what rises. " * 300
    answered = list[int]()
    seen_before_the_first_answer = list[int]()

    async def ask(number: int) -> None:
        await model.answer(question(system=rules, sample=number))
        if not answered:
            seen_before_the_first_answer.append(len(server.requests))
        answered.append(number)

    await asyncio.gather(*map(ask, range(6)))
    assert seen_before_the_first_answer == [1] and len(answered) == 6
