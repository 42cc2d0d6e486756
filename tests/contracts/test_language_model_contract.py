"""What holds for every LanguageModel, whoever answers; a new adapter adds one line to SUBJECTS."""

from __future__ import annotations

import asyncio
import json
import pickle
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from connectors.llm.anthropic_model import AnthropicModel
from connectors.llm.endpoint import Endpoint
from connectors.llm.openai_model import OpenAIModel
from connectors.llm.paid_results import AnswerStore
from connectors.llm.pricing import load_prices
from connectors.llm.replay import ReplayModel
from engine.agents.news import NEWS, NewsLine, NewsView
from engine.domain.model_call import Message, ModelRequest
from engine.offline.model import OfflineModel
from engine.ports import LanguageModel
from tests.servers.fake_llm_server import fake_llm_server
from tests.servers.llm_questions import OnePixelPainter, question, small_chart

Subject = tuple[LanguageModel, ModelRequest]
"""A model and a question that it can answer."""

SUBJECTS: dict[str, Callable[[Path], AbstractAsyncContextManager[Subject]]] = {}


def subject(make: Callable[[Path], AsyncIterator[Subject]]) -> Callable[[Path], AsyncIterator[Subject]]:
    """Registers an adapter under the function's name; it is given a folder of its own."""
    SUBJECTS[make.__name__] = asynccontextmanager(make)
    return make


@subject
async def openai(folder: Path) -> AsyncIterator[Subject]:
    with fake_llm_server() as server:
        endpoint = Endpoint(provider="openai", key_variable="KEY", api_key="sk-secret", base_url=server.openai_url)
        model = OpenAIModel("gpt-6-luna", endpoint, load_prices(), OnePixelPainter())
        yield model, question()
        await model.aclose()


@subject
async def anthropic(folder: Path) -> AsyncIterator[Subject]:
    with fake_llm_server() as server:
        url = server.anthropic_url
        endpoint = Endpoint(provider="anthropic", key_variable="KEY", api_key="sk-secret", base_url=url)
        model = AnthropicModel("claude-haiku-5-5", endpoint, load_prices(), OnePixelPainter())
        yield model, question()
        await model.aclose()


@subject
async def replay_over_openai(folder: Path) -> AsyncIterator[Subject]:
    store = AnswerStore(folder / "answers.sqlite")
    async with SUBJECTS["openai"](folder) as (inner, request):
        yield ReplayModel(store, inner, provider="openai", model="gpt-6-luna", painter_version="pixel-1"), request
    store.close()


@subject
async def offline(folder: Path) -> AsyncIterator[Subject]:
    items = (NewsLine(date(2023, 6, 1), "", "Microsoft raised its guidance."),)
    yield OfflineModel(), replace(question(), view=NewsView("MSFT", date(2023, 6, 1), "desk", items), rule=NEWS.rule)


@pytest.fixture(params=sorted(SUBJECTS))
async def asked(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Subject]:
    async with SUBJECTS[request.param](tmp_path) as pair:
        yield pair


async def test_it_says_who_it_is_and_never_its_key(asked: Subject) -> None:
    model, _ = asked
    assert model.spec == model.spec.strip() != ""
    assert model.label
    assert isinstance(model.sees, bool)
    assert "sk-secret" not in f"{model!r} {model.spec} {model.label}"


async def test_a_result_is_an_answer_or_a_failure_and_plain_data(asked: Subject) -> None:
    model, request = asked
    result = await model.answer(request)
    assert (result.answer is None) != (result.failure is None)
    if result.answer is not None:
        assert json.loads(json.dumps(result.answer, allow_nan=False)) == result.answer
    if result.failure is not None:
        assert result.failure.detail
        assert "\n" not in result.failure.detail
    assert pickle.loads(pickle.dumps(result)) == result


async def test_what_it_took_is_told(asked: Subject) -> None:
    model, request = asked
    result = await model.answer(request)
    assert result.model == model.spec
    assert 0 <= result.usage.cached_input_tokens <= result.usage.input_tokens
    assert result.usage.output_tokens >= 0
    assert result.latency >= 0
    assert result.cost is None or (isinstance(result.cost, Decimal) and result.cost >= 0)
    assert result.cached is False


async def test_the_same_question_has_the_same_hash_and_another_sample_another(asked: Subject) -> None:
    model, request = asked
    hashes = [(await model.answer(each)).request_hash for each in (request, request, replace(request, sample=7))]
    assert hashes[0] == hashes[1] != hashes[2]
    assert len(hashes[0]) == 64


async def test_streaming_changes_nothing_but_that_the_text_is_seen_coming(asked: Subject) -> None:
    model, request = asked
    pieces: list[str] = []
    streamed = await model.answer(request, pieces.append)
    plain = await model.answer(replace(request, sample=1))
    assert "".join(pieces) == streamed.text
    assert (streamed.answer, streamed.failure) == (plain.answer, plain.failure)


async def test_several_questions_may_be_asked_at_once(asked: Subject) -> None:
    model, request = asked
    results = await asyncio.gather(*(model.answer(replace(request, sample=n)) for n in range(5)))
    assert len({result.request_hash for result in results}) == 5
    assert len({json.dumps(result.answer) for result in results}) == 1


async def test_a_question_with_a_chart_and_an_earlier_turn_is_answered_all_the_same(asked: Subject) -> None:
    model, request = asked
    earlier = (Message("user", "Read it.", (small_chart(),)), Message("assistant", "{}"))
    longer = replace(request, messages=(*earlier, *request.messages))
    plain, result = await model.answer(request), await model.answer(longer)
    assert (result.answer, result.failure and result.failure.kind) == (
        plain.answer,
        plain.failure and plain.failure.kind,
    )
    assert result.request_hash != plain.request_hash


async def test_a_wish_for_a_temperature_is_no_trouble(asked: Subject) -> None:
    model, request = asked
    wishing: Any = replace(request, settings=replace(request.settings, temperature=0.7))
    result = await model.answer(wishing)
    assert (result.answer is None) != (result.failure is None)
