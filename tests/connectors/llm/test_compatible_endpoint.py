"""A compatible endpoint behind a base URL: no key, older names, less enforced."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from connectors.llm.endpoint import Endpoint
from connectors.llm.openai_model import OpenAIModel
from connectors.llm.pricing import load_prices
from engine.domain.model_call import FailureKind
from tests.servers.fake_llm_server import Fail, FakeLLMServer, Say, Turn
from tests.servers.llm_questions import question


def local(server: FakeLLMServer) -> OpenAIModel:
    endpoint = Endpoint(provider="local", key_variable="", base_url=server.openai_url)
    return OpenAIModel("qwen3:8b", endpoint, load_prices())


async def test_it_needs_no_key_and_is_told_the_schema_in_words_too(server: FakeLLMServer) -> None:
    model = local(server)
    result = await model.answer(question(settings={"max_output_tokens": 500}))
    assert (model.spec, result.model) == ("local:qwen3:8b", "local:qwen3:8b")
    assert result.answer is not None
    sent = server.requests[0]
    assert sent["max_tokens"] == 500
    assert "max_completion_tokens" not in sent
    assert "It must satisfy this JSON schema" in sent["messages"][0]["content"]
    await model.aclose()


async def test_what_it_does_not_take_is_left_out_one_by_one_and_remembered(server: FakeLLMServer) -> None:
    server.play(
        Fail(400, "unknown field: stream_options"),
        Fail(422, "json_schema is not a known response_format"),
        Fail(400, "response_format is not supported"),
        Fail(400, "use max_completion_tokens, not max_tokens"),
        Say(),
    )
    model = local(server)
    pieces: list[str] = []
    result = await model.answer(question(), pieces.append)
    assert result.answer == {"action": "BUY", "size": 3}
    assert result.notes == ("schema asked for in words: local does not enforce it",)
    last = server.requests[-1]
    assert not {"stream_options", "response_format", "max_tokens"} & set(last)
    assert last["max_completion_tokens"] == 2048
    await model.answer(question(), pieces.append)
    assert len(server.requests) == 6
    await model.aclose()


async def test_an_endpoint_that_refuses_either_name_of_the_limit_is_asked_no_third_time(
    server: FakeLLMServer,
) -> None:
    server.play(Fail(400, "neither max_tokens nor max_completion_tokens"))
    model = local(server)
    result = await model.answer(question())
    assert result.failure is not None
    assert len(server.requests) == 2
    await model.aclose()


async def test_a_filter_that_declines_with_a_400_is_a_refusal(server: FakeLLMServer) -> None:
    server.play(Fail(400, "the prompt was filtered", "content_filter"))
    model = local(server)
    result = await model.answer(question())
    assert result.failure is not None
    assert result.failure.kind is FailureKind.REFUSED
    await model.aclose()


async def test_an_account_without_credit_is_not_told_to_wait(server: FakeLLMServer) -> None:
    server.play(Fail(429, "check your plan", "insufficient_quota"))
    model = local(server)
    result = await model.answer(question())
    assert result.failure is not None
    assert result.failure.kind is FailureKind.NO_CREDIT
    await model.aclose()


async def test_an_address_that_cannot_be_one_is_a_matter_of_configuration() -> None:
    endpoint = Endpoint(provider="openai", key_variable="KEY", api_key="k", base_url="http://127.0.0.1:port")
    model = OpenAIModel("m", endpoint, load_prices())
    result = await model.answer(question())
    assert result.failure is not None
    assert result.failure.kind is FailureKind.NOT_CONFIGURED
    await model.aclose()


async def test_thoughts_and_fences_around_the_answer_are_forgiven(server: FakeLLMServer) -> None:
    server.play(
        Say(text='<think>\n{"action": "SELL"}?\n</think>\n\nHere:\n```json\n{"action": "HOLD", "size": 0}\n```')
    )
    model = local(server)
    assert (await model.answer(question())).answer == {"action": "HOLD", "size": 0}
    await model.aclose()


async def test_calls_under_way_together_leave_out_what_each_was_refused_for(server: FakeLLMServer) -> None:
    """Several are refused for the same before the first of them has been asked again."""
    model, together = local(server), threading.Barrier(4)

    def turn(body: dict[str, Any], headers: dict[str, str]) -> Turn:
        server.requests.append(body)
        if len(server.requests) <= 4:
            together.wait(10)
        if "max_tokens" in body:
            return Fail(400, "use max_completion_tokens, not max_tokens")
        return Fail(400, "json_schema is not known") if body["response_format"]["type"] == "json_schema" else Say()

    server.next_turn = turn  # type: ignore[method-assign]
    results = await asyncio.gather(*(model.answer(question(sample=number)) for number in range(4)))
    assert [one.failure for one in results] == [None] * 4
    assert server.requests[-1]["response_format"] == {"type": "json_object"}
    await model.aclose()
