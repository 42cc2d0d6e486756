"""Replies of services in the shapes that the field has, through both vendors' packages: each is its own kind, with the
vendor's words in the line."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from engine.domain.model_call import FailureKind, Message
from engine.errors import CredentialsRefused
from tests.servers.fake_llm_server import Fail, FakeLLMServer, Raw, Say
from tests.servers.llm_questions import OnePixelPainter, question, small_chart

NO_CREDIT, RATE, UNAVAILABLE = FailureKind.NO_CREDIT, FailureKind.RATE_LIMITED, FailureKind.UNAVAILABLE
WRONG, TOO_LONG, LATE = FailureKind.NOT_CONFIGURED, FailureKind.TOO_LONG, FailureKind.TIMED_OUT
KEY = None
"""A refused key."""
HTML = "<!DOCTYPE html><html><head><title>Sign in to the network</title></head><body>credentials, please</body></html>"


def gemini(code: int, message: str, status: str, *details: Any) -> list[Any]:
    return [{"error": {"code": code, "message": message, "status": status, "details": list(details)}}]


def openai(message: str, kind: str = "", code: Any = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


SHAPES: list[tuple[int, Any, FailureKind | None, str]] = [
    # Keys.
    (400, gemini(400, "API key not valid. Pass a valid one.", "INVALID_ARGUMENT", {"reason": "API_KEY_INVALID"}), KEY,
     "API key not valid"),
    (400, {"error": {"code": 400, "message": "API Key expired. Renew the key.", "status": "INVALID_ARGUMENT"}}, KEY,
     "API Key expired"),
    (200, openai("No auth credentials found", code=401), KEY, "No auth credentials found"),
    (200, openai("Incorrect API key provided", "invalid_request_error", "invalid_api_key"), KEY, "Incorrect API key"),
    (401, {"detail": "Invalid token"}, KEY, "Invalid token"),
    (401, "Unauthorized", KEY, "Unauthorized"),
    (200, "Unauthorized", KEY, "Unauthorized"),
    (422, {"detail": [{"loc": ["header", "x-api-key"], "msg": "field required", "type": "missing"}]}, KEY, "field req"),
    (200, {"object": "error", "message": "Unauthorized", "type": "BadRequestError", "code": 401}, KEY, "Unauthorized"),
    (401, {"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}}, KEY, "x-api"),
    (200, {"type": "error", "error": {"type": "authentication_error", "message": "bad key"}}, KEY, "bad key"),
    (403, openai("Country, region, or territory not supported", "request_forbidden"), KEY, "territory not supported"),
    (500, openai("Incorrect API key provided: abc"), KEY, "Incorrect API key"),
    # A region's or an organisation's refusal.
    (400, gemini(400, "User location is not supported for the API use.", "FAILED_PRECONDITION"), WRONG, "location"),
    (400, openai("Your organization must be verified to use the model", "invalid"), WRONG, "organization"),
    # Credit, quota, rates.
    (402, openai("This request requires more credits", code=402), NO_CREDIT, "requires more credits"),
    (402, {"error": {"message": "Insufficient Balance", "type": "unknown_error"}}, NO_CREDIT, "Insufficient Balance"),
    (429, gemini(429, "You exceeded your current quota, check billing details.", "RESOURCE_EXHAUSTED"), NO_CREDIT,
     "You exceeded your current quota"),
    (200, openai("You exceeded your current quota", "insufficient_quota", "insufficient_quota"), NO_CREDIT, "quota"),
    (429, gemini(429, "You exceeded your current quota.", "RESOURCE_EXHAUSTED", {"retryDelay": "900s"}), RATE,
     "asked to wait 900 s"),
    (200, openai("Rate limit exceeded: free-models-per-day", code=429), RATE, "Rate limit exceeded: free-models"),
    (200, openai("Provider returned error", code=429) | {"user_id": "u"}, RATE, "Provider returned error"),
    (200, {"error": {"message": "Provider returned error", "code": 429, "metadata": {"raw": "upstream is busy"}}}, RATE,
     "Provider returned error: upstream is busy"),
    (200, {"error": "rate limit reached, slow down"}, RATE, "rate limit reached"),
    (429, "<html><title>Too many requests</title></html>", RATE, "Too many requests"),
    (200, "Too Many Requests", RATE, "Too Many Requests"),
    # Outages.
    (200, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, UNAVAILABLE, "Overloaded"),
    (503, gemini(503, "The model is overloaded.", "UNAVAILABLE"), UNAVAILABLE, "The model is overloaded."),
    (502, "<html><head><title>502 Bad Gateway</title></head></html>", UNAVAILABLE, "502 Bad Gateway"),
    (502, "", UNAVAILABLE, "an empty reply (HTTP 502)"),
    (200, "", UNAVAILABLE, "an empty reply"),
    (500, {"error": "llama runner process has terminated"}, UNAVAILABLE, "llama runner process"),
    (200, openai("Internal error", code=503), UNAVAILABLE, "Internal error"),
    (200, {"id": "c", "choices": None}, UNAVAILABLE, "no model's answer"),
    (200, {"id": "c", "choices": []}, UNAVAILABLE, "no model's answer"),
    (200, {"type": "message", "content": None}, UNAVAILABLE, "no model's answer"),
    (200, [], UNAVAILABLE, "a list that is no model's answer"),
    (200, [1, 2], UNAVAILABLE, "no model's answer"),
    (200, {}, UNAVAILABLE, "an object that is no model's answer"),
    (200, None, UNAVAILABLE, "null that is no model's answer"),
    (200, '{"id": "c1", "choices": [{"index": 0, "mess', UNAVAILABLE, "ended within its JSON"),
    (504, "<html>upstream timed out</html>", LATE, "no answer within 5 s"),
    # Addresses, models, settings.
    (200, HTML, WRONG, "Sign in to the network at http://127.0.0.1:"),
    (404, HTML, WRONG, "Sign in to the network (HTTP 404) at http://127.0.0.1:"),
    (404, "404 page not found", WRONG, "404 page not found (HTTP 404) at http://127.0.0.1:"),
    (404, {"detail": "Not Found"}, WRONG, "Not Found (HTTP 404) at http://127.0.0.1:"),
    (404, "", WRONG, "at http://127.0.0.1:"),
    (405, {"detail": "Method Not Allowed"}, WRONG, "Method Not Allowed (HTTP 405) at http://127.0.0.1:"),
    (200, "Ollama is running", WRONG, "Ollama is running at http://127.0.0.1:"),
    (404, {"error": "model 'x' not found"}, WRONG, "model 'x' not found"),
    (200, {"error": "model 'x' not found"}, WRONG, "model 'x' not found"),
    (200, {"object": "error", "message": "The model `x` does not exist.", "code": 404}, WRONG, "`x` does not"),
    (400, {"object": "error", "message": "top_k must be positive", "code": 400}, WRONG, "top_k must be positive"),
    # Length.
    (400, {"object": "error", "message": "This model's maximum context length is 4096 tokens.", "code": 400}, TOO_LONG,
     "maximum context length"),
    (400, {"error": {"message": "the request exceeds the available context size"}}, TOO_LONG, "context size"),
    (400, gemini(400, "The input token count (9) exceeds the maximum of 8.", "INVALID"), TOO_LONG, "token count"),
]  # fmt: skip


def raw(status: int, body: Any, headers: tuple[tuple[str, str], ...] = ()) -> Raw:
    text = body if isinstance(body, str) else json.dumps(body)
    kind = "text/html" if text.startswith("<") else "application/json"
    return Raw(text.encode(), kind, status, headers)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_an_error_of_any_shape_is_of_its_kind_with_the_vendor_s_words(
    make_model, server: FakeLLMServer, streamed: bool
) -> None:
    on_delta = (lambda text: None) if streamed else None
    for status, body, kind, says in SHAPES:
        server.play(raw(status, body))
        model = make_model()
        if kind is KEY:
            with pytest.raises(CredentialsRefused) as caught:
                await model.answer(question(), on_delta)
            told = str(caught.value)
        else:
            result = await model.answer(question(), on_delta)
            assert result.failure is not None and result.failure.kind is kind, (body, result.failure)
            told = result.failure.detail
            assert result.cost == 0, body
        assert says in told and "\n" not in told, body


EVENTS = (
    ({"error": {"message": "Rate limit exceeded", "code": 429}}, RATE, "Rate limit exceeded"),
    ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, UNAVAILABLE, "Overloaded"),
    ({"error": "model 'x' not found"}, WRONG, "model 'x' not found"),
    ({"detail": "Not Found"}, WRONG, "Not Found"),
    ({"code": 429, "msg": "slow down, please"}, RATE, "slow down, please"),
    ({"object": "error", "message": "maximum context length is 9", "code": 400}, TOO_LONG, "maximum context length"),
    (gemini(503, "The model is overloaded.", "UNAVAILABLE"), UNAVAILABLE, "The model is overloaded."),
    ({"choices": [{"index": 0, "delta": {}, "finish_reason": "error", "error": {"code": 502, "message": "gone"}}]},
     UNAVAILABLE, "gone"),
)  # fmt: skip


async def test_an_error_as_the_first_event_of_a_stream_is_of_its_kind(
    make_model, server: FakeLLMServer, vendor: str
) -> None:
    for event, kind, says in EVENTS:
        if vendor == "anthropic" and "choices" in event:
            continue  # no event of this vendor's
        server.play(Raw(f": keep alive\n\ndata: {json.dumps(event)}\n\n".encode(), "text/event-stream"))
        result = await make_model().answer(question(), lambda text: None)
        assert result.failure is not None
        assert (result.failure.kind, says in result.failure.detail) == (kind, True), (event, result.failure)


def whole(vendor: str, usage: Any = None, text: Any = '{"action": "BUY", "size": 3}') -> dict[str, Any]:
    if vendor == "openai":
        usage = {"prompt_tokens": 300, "completion_tokens": 30} if usage is None else usage
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return {"id": "c", "object": "chat.completion", "choices": [choice], "usage": usage}
    usage = {"input_tokens": 300, "output_tokens": 30} if usage is None else usage
    content = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": text}]
    return {"id": "m", "type": "message", "content": content, "stop_reason": "end_turn", "usage": usage}


@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream", "text/plain"])
@pytest.mark.parametrize("indent", [None, 1])
async def test_a_whole_reply_where_a_stream_was_asked_for_is_the_answer(
    make_model, server: FakeLLMServer, vendor: str, content_type: str, indent: int | None
) -> None:
    server.play(Raw(json.dumps(whole(vendor), indent=indent).encode(), content_type))
    pieces: list[str] = []
    result = await make_model().answer(question(), pieces.append)
    assert (result.answer, "".join(pieces)) == ({"action": "BUY", "size": 3}, result.text)
    assert (result.usage.input_tokens, result.usage.output_tokens, len(server.requests)) == (300, 30, 1)


async def test_a_whole_reply_in_a_list_of_one_or_as_one_event_is_the_answer(
    make_model, server: FakeLLMServer, vendor: str
) -> None:
    bodies = [Raw(json.dumps([whole(vendor)]).encode())]
    if vendor == "openai":
        event = json.dumps(whole(vendor, text={"action": "BUY", "size": 3}))
        bodies.append(Raw(f"data: {event}\r\n\r\ndata: [DONE]\r\n\r\n".encode(), "text/event-stream"))
    for body in bodies:
        server.play(body)
        assert (await make_model().answer(question(), lambda text: None)).answer == {"action": "BUY", "size": 3}


@pytest.mark.parametrize(
    ("counts", "known"),
    [
        ((812, 37.0), (812, 37)),
        ((812, 37.25), (0, 0)),
        ((812.5, 37), (0, 0)),
        (("812", "37"), (812, 37)),
        ((-5, 37), (0, 0)),
        ((812, -1), (0, 0)),
        ((0, 37), (0, 0)),
        ((None, 37), (0, 0)),
        ((812, "many"), (0, 0)),
        ((812, True), (0, 0)),
        ((812, [37]), (0, 0)),
        ((10**15, 37), (0, 0)),
        ((10**5000, 37), (0, 0)),
        ((float("inf"), 37), (0, 0)),
    ],
)
async def test_token_counts_that_are_none_are_unknown(
    make_model, server: FakeLLMServer, vendor: str, counts: tuple[Any, Any], known: tuple[int, int], monkeypatch
) -> None:
    monkeypatch.setattr("sys.set_int_max_str_digits", lambda digits: None)
    names = ("prompt_tokens", "completion_tokens") if vendor == "openai" else ("input_tokens", "output_tokens")
    usage = dict(zip(names, ("BIG" if count == 10**5000 else count for count in counts), strict=True))
    body = json.dumps(whole(vendor, usage)).replace('"BIG"', "1" + "0" * 5000)
    server.play(Raw(body.encode()))
    result = await make_model().answer(question())
    assert result.answer == {"action": "BUY", "size": 3}
    assert (result.usage.input_tokens, result.usage.output_tokens) == known
    assert (result.cost is None) == (known == (0, 0))
    usage = {names[0]: 100, names[1]: 10, "prompt_tokens_details": {"cached_tokens": 1e9}}
    usage |= {"completion_tokens_details": {"reasoning_tokens": 99}, "output_tokens_details": {"thinking_tokens": 99}}
    server.play(Raw(json.dumps(whole(vendor, usage)).encode()))
    odd = await make_model().answer(question())
    assert odd.usage.cached_input_tokens <= odd.usage.input_tokens == 100
    assert odd.usage.reasoning_tokens <= odd.usage.output_tokens == 10
    assert odd.cost is not None and odd.cost > 0


WAITS: list[tuple[dict[str, str], Any, float]] = [
    ({"retry-after": "7"}, "slow down", 7),
    ({"retry-after-ms": "1500", "retry-after": "9"}, "slow down", 1.5),
    ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}, "slow down", 30),
    ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, "slow down", 0),
    ({"retry-after": "-3"}, "slow down", 0),
    ({}, gemini(429, "quota", "RESOURCE_EXHAUSTED", {"retryDelay": "7s"}), 7),
    ({}, gemini(429, "quota", "RESOURCE_EXHAUSTED", {"retryDelay": "41.5s"}), 41.5),
    ({}, {"error": {"message": "slow down", "retry_after": 12}}, 12),
    ({}, openai("Rate limit reached for m on requests per min. Please try again in 1.5s."), 1.5),
    ({}, openai("Rate limit reached. Please try again in 20ms. Visit the account page."), 0.02),
    ({}, openai("Rate limit reached. Please try again in 6m30s."), 390),
    ({}, openai("Please retry in 41.2s."), 41.2),
    ({}, openai("Retry after 2 minutes"), 120),
    ({"retry-after": "nan"}, "try again in 3 s", 3),
]


@pytest.mark.parametrize(("headers", "body", "seconds"), WAITS)
async def test_the_wait_that_a_reply_asks_for_is_read_and_kept(
    make_model, server: FakeLLMServer, headers: dict[str, str], body: Any, seconds: float, monkeypatch
) -> None:
    slept: list[float] = []

    async def sleep(until: float) -> None:
        slept.append(until)

    monkeypatch.setattr("connectors.llm.gate.asyncio.sleep", sleep)
    server.play(raw(429, body, tuple(headers.items())), Say())
    result = await make_model().answer(question(settings={"timeout": 1000}))
    assert result.answer is not None
    (failed,) = result.failed
    assert f"asked to wait {seconds:g} s" in failed.detail
    assert max(slept) == pytest.approx(seconds, abs=1)


@pytest.mark.parametrize(
    "said",
    [
        "Invalid schema for response_format 'NewsDigest': 'minLength' is not permitted.",
        'Invalid JSON payload received. Unknown name "additionalProperties" at generation_config.response_schema',
        "output_config.format.schema: For 'integer' type, property 'maximum' is not supported",
        "failed to parse grammar",
        "Grammar error: Unsupported keyword: pattern",
        "This model does not support response format `json_schema`.",
        "The provided JSON schema contains features not supported by xgrammar.",
        "Schema is too complex for compilation",
    ],
)
@pytest.mark.parametrize("status", [400, 422, 200])
async def test_a_refused_keyword_of_the_schema_falls_back_to_words(
    make_model, server: FakeLLMServer, said: str, status: int
) -> None:
    error = raw(200, {"error": {"code": 400, "message": said}}) if status == 200 else Fail(status, said)
    server.play(error, Say())
    result = await make_model().answer(question(), lambda text: None)
    assert result.answer == {"action": "BUY", "size": 3}
    assert any("schema asked for in words" in note for note in result.notes)


async def test_a_refused_picture_costs_nothing_also_with_200(make_model, server: FakeLLMServer) -> None:
    server.play(raw(200, {"error": {"code": 400, "message": "image input is not supported"}}))
    asked = question(messages=(Message("user", "Read it.", (small_chart(),)),))
    result = await make_model(painter=OnePixelPainter()).answer(asked)
    assert result.failure is not None and result.failure.kind is FailureKind.NO_IMAGES
    assert result.cost == 0


LONG = (Message("user", "The close is 182.45 and the volume 1,200,300. " * 60),)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("counted", "cut"), [(200, True), (600, False)])
async def test_a_prompt_of_which_less_than_half_was_counted_is_no_answer(
    make_model, server: FakeLLMServer, counted: int, cut: bool, streamed: bool
) -> None:
    server.play(Say(tokens_in=counted, tokens_out=50))
    result = await make_model().answer(question(messages=LONG), (lambda text: None) if streamed else None)
    if not cut:
        assert result.answer is not None
        return
    assert result.failure is not None and result.failure.kind is WRONG
    assert "--ctx-size" in result.failure.detail and "200" in result.failure.detail
    (paid,) = result.failed
    assert (paid.input_tokens, paid.output_tokens, paid.estimated) == (200, 50, False)
    assert paid.cost is not None and paid.cost > 0


async def test_pictures_and_unknown_counts_show_no_cut(make_model, server: FakeLLMServer, vendor: str) -> None:
    shown = (Message("user", LONG[0].text[:800], (small_chart(),)),)
    server.play(Say(tokens_in=250))
    assert (await make_model(painter=OnePixelPainter()).answer(question(messages=shown))).answer is not None
    server.play(raw(200, whole(vendor, {})))
    assert (await make_model().answer(question(messages=LONG))).answer is not None


@contextmanager
def talking(first: bytes) -> Iterator[int]:
    """A port of loopback at which somebody speaks another language."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def talk() -> None:
            with suppress(OSError):
                while True:
                    caller, _ = listening.accept()
                    with caller:
                        caller.recv(65536)
                        caller.sendall(first)

        threading.Thread(target=talk, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_an_address_at_which_somebody_else_answers_is_a_matter_of_configuration(make_model, scheme: str) -> None:
    with talking(b"SSH-2.0-OpenSSH_9.6\r\n\r\n") as port:
        result = await make_model(base_url=f"{scheme}://me:secret@127.0.0.1:{port}/v1").answer(question())
    assert result.failure is not None and result.failure.kind is WRONG, result.failure
    assert f" at {scheme}://127.0.0.1:{port}/v1" in result.failure.detail and "secret" not in result.failure.detail
