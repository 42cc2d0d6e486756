"""A cap is never crossed and nearly used up: what is reserved, sent and billed, through both vendors' packages."""

from __future__ import annotations

import asyncio
import random
from decimal import Decimal
from typing import Any

import pytest

from connectors.llm.capped_model import CappedModel, SpendingCap
from engine.domain.model_call import FailureKind, Message, ModelPrice, ModelResult, Rates, Usage
from engine.errors import BudgetReached
from engine.services import SpendingLimit
from engine.settings.config import BudgetConfig
from tests.connectors.llm.conftest import MakeModel
from tests.long_cases import first_of
from tests.servers.fake_llm_server import Fail, FakeLLMServer, Say, Turn, fake_llm_server
from tests.servers.llm_questions import OnePixelPainter, question, small_chart

MILLION = Decimal(1_000_000)


class Service(FakeLLMServer):
    """Keeps to the token limits that it is sent; `draw` makes answers of a usual length, and now and then a fault."""

    draw = random.Random(0)
    faults: tuple[str, ...] = ()

    def next_turn(self, body: dict[str, Any], headers: dict[str, str]) -> Turn:
        super().next_turn(body, headers)
        limit, made = body.get("max_tokens") or body["max_completion_tokens"], self.draw.randint(20, 120)
        fault = self.draw.choice((*self.faults, *[""] * 12))
        if fault == "picture":
            return Fail(400, "image input is not supported by this model")
        if fault == "cut":
            return Say(ending="cut off", tokens_out=limit)
        if fault == "broken":
            return Say(ending="missing")
        if fault == "down":
            return Fail(503, "busy")
        return Say(tokens_out=min(limit, made)) if made <= limit else Say(ending="cut off", tokens_out=limit)


@pytest.fixture
def server() -> Any:
    with fake_llm_server(Service()) as running:
        yield running


def billed(results: list[ModelResult]) -> Decimal:
    return sum((one.cost or Decimal(0) for one in results), Decimal(0)) + sum(
        (call.cost or Decimal(0) for one in results for call in one.failed), Decimal(0)
    )


@pytest.mark.parametrize("seed", first_of(2, range(8)))
async def test_no_cap_is_crossed_and_one_of_many_calls_is_used_up(
    make_model: MakeModel, server: Service, vendor: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = server.draw = random.Random(seed)
    server.faults = ("cut", "broken", "down", "picture") if seed % 2 else ()
    cheap = Decimal(draw.randint(1, 200)) / 10
    rates = Rates(cheap, cheap * draw.randint(1, 10), cheap / 10, cheap * Decimal("1.25"))
    model = make_model("capped", painter=OnePixelPainter(), thinking_tokens=draw.choice((0, 6000)))
    model._price = price = ModelPrice(rates)
    text = ("The close is 182.45, and the volume 1,200,300. " * 200)[: draw.randint(2000, 9000)]

    def asked(number: int) -> Any:
        charts = (small_chart(),) if server.faults and number % 5 == 0 else ()
        turns = (Message("user", f"{number} {text[: draw.randint(1500, len(text))]}", charts),)
        return question(messages=turns, sample=number, settings={"timeout": 20})

    dearest = price.cost(Usage(len(text) // 4 + 200, 0, 120))
    cap = dearest * draw.randint(25, 60)
    limit = SpendingLimit.of_dollars(BudgetConfig(), cap)
    capped, results = CappedModel(model, SpendingCap(limit), price), list[ModelResult]()
    stopped = False

    async def worker(first: int) -> None:
        nonlocal stopped
        for number in range(first, 10_000, 4):
            if stopped:
                return
            try:
                results.append(await capped.answer(asked(number), lambda text: None))
            except BudgetReached:
                stopped = True

    await asyncio.gather(*map(worker, range(draw.choice((1, 4)))))
    spent = billed(results)
    assert stopped and spent <= cap
    assert limit.spent.usd == spent and (limit.in_flight, limit.reserved.usd) == (0, 0)
    calls = [billed([one]) for one in results]
    assert (max(calls) <= cap / 20) or server.faults  # answers that were cut, and asked for again
    assert spent >= cap * 9 / 10 or max(calls) > cap / 20, f"{spent} of {cap}"


async def test_a_refused_picture_a_refusal_and_an_outage_cost_nothing(
    make_model: MakeModel, server: FakeLLMServer, vendor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = [Fail(400, "image input is not supported"), Say(tokens_in=2500, tokens_out=100)]
    monkeypatch.setattr(Service, "next_turn", lambda self, body, headers: FakeLLMServer.next_turn(self, body, headers))
    server.play(*turns)
    model = make_model("capped", painter=OnePixelPainter())
    model._price = price = ModelPrice(Rates(*[Decimal(5)] * 4))
    limit = SpendingLimit.of_dollars(BudgetConfig(), Decimal(1))
    capped = CappedModel(model, SpendingCap(limit), price)
    refused = await capped.answer(question(messages=(Message("user", "Read it.", (small_chart(),)),)))
    assert refused.failure is not None and refused.failure.kind is FailureKind.NO_IMAGES
    assert limit.spent.usd == 0
    await capped.answer(question())
    assert limit.spent.usd == Decimal(2600 * 5) / MILLION
    server.play(Fail(402, "no credit"))
    await capped.answer(question(sample=2))
    assert limit.spent.usd == Decimal(2600 * 5) / MILLION and limit.reserved.usd == 0


async def test_a_free_model_and_tokens_without_a_price_have_caps_of_their_own(
    make_model: MakeModel, server: Service
) -> None:
    model = make_model("free")
    free = ModelPrice(Rates(*[Decimal(0)] * 4))
    limit = SpendingLimit.of_dollars(BudgetConfig(), Decimal(0))
    model._price = free
    capped = CappedModel(model, SpendingCap(limit), free)
    for number in range(3):
        assert (await capped.answer(question(sample=number))).answer is not None
    assert (limit.in_flight, limit.spent.usd) == (0, 0)

    tokens = SpendingLimit(BudgetConfig(tokens_per_day=20_000), limit.spent)
    unknown = make_model("unheard-of")
    capped, used = CappedModel(unknown, SpendingCap(tokens), None), 0
    with pytest.raises(BudgetReached, match="tokens_per_day of 20,000 is reached"):
        for number in range(1000):
            result = await capped.answer(question(sample=number))
            used += result.usage.input_tokens + result.usage.output_tokens
    assert 18_000 <= used <= 20_000 and tokens.spent.tokens == used


async def test_a_repeat_with_a_larger_limit_that_has_no_room_is_not_asked_and_the_first_call_is_counted(
    make_model: MakeModel, server: FakeLLMServer, vendor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Service, "next_turn", lambda self, body, headers: FakeLLMServer.next_turn(self, body, headers))
    server.play(Say(ending="cut off", tokens_in=100, tokens_out=500))
    model = make_model("capped")
    model._price = price = ModelPrice(Rates(*[Decimal(1000)] * 4))
    limit = SpendingLimit.of_dollars(BudgetConfig(), Decimal(1))
    capped = CappedModel(model, SpendingCap(limit), price)
    result = await capped.answer(question(settings={"max_output_tokens": 500}))
    assert result.failure is not None and result.failure.kind is FailureKind.NO_CREDIT
    assert "--budget of $1.00 is reached" in result.failure.detail
    assert len(server.requests) == 1
    assert [call.cost for call in result.failed] == [Decimal("0.6")]
    assert limit.spent.usd == Decimal("0.6")
