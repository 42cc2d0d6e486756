"""The rate limit of calls."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack

import pytest

from connectors.llm.endpoint import RateLimiter
from connectors.llm.service_reply import exhausted_for
from connectors.llm.slots import Slots


async def passes(limiter: RateLimiter) -> bool:
    try:
        async with asyncio.timeout(0.05), limiter.slot():
            return True
    except TimeoutError:
        return False


async def test_requests_beyond_the_minutes_allowance_wait() -> None:
    limiter = RateLimiter(requests_per_minute=2)
    assert [await passes(limiter) for _ in range(3)] == [True, True, False]


async def test_a_slot_is_given_back_even_after_an_error() -> None:
    limiter = RateLimiter(concurrency=1)
    with pytest.raises(RuntimeError):
        async with limiter.slot():
            assert not await passes(limiter)
            raise RuntimeError("the call went wrong")
    assert await passes(limiter)


def test_the_vendors_packages_are_not_loaded_before_the_first_question() -> None:
    program = (
        "import sys\n"
        "from connectors.llm import anthropic_model, endpoint, openai_model, pricing, probe, replay\n"
        "from engine.domain import model_call\nprices = pricing.load_prices()\n"
        "one = endpoint.Endpoint(provider='openai', key_variable='KEY', api_key='k')\n"
        "openai_model.OpenAIModel('m', one, prices)\n"
        "anthropic_model.AnthropicModel('m', one, prices)\n"
        "heavy = {'openai', 'anthropic', 'httpx2', 'aiolimiter', 'matplotlib'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


async def play(slots: Slots, rounds: int, seconds: Callable[[int], float], *, refuse_from: int = 99) -> int:
    """The most calls at once that were under way in rounds of twenty calls, each of which takes seconds by the number
    that are under way; beyond a number the endpoint refuses."""
    most = clock = 0
    for _ in range(rounds):
        waiting = 20
        while waiting:
            under_way = min(slots.limit, waiting)
            most, waiting = max(most, under_way), waiting - under_way
            async with AsyncExitStack() as stack:
                for _ in range(under_way):
                    await stack.enter_async_context(slots.slot())
                ended = clock + seconds(under_way)
                for number in range(under_way):
                    if number < refuse_from:
                        slots.answered("decision", clock, ended)
                    else:
                        slots.refused(clock, ended)
                clock = ended
    return most


async def test_calls_at_once_grow_by_one_a_round_where_more_are_as_fast() -> None:
    slots = Slots(16, begin=1)
    assert await play(slots, 1, lambda under_way: 1.0) <= 6
    await play(slots, 20, lambda under_way: 1.0)
    assert slots.limit == 16


async def test_a_server_that_answers_one_after_another_is_not_crowded() -> None:
    slots = Slots(16, begin=1)
    assert await play(slots, 20, lambda under_way: float(under_way)) <= 4
    assert slots.limit <= 3


async def test_a_refusal_for_too_many_requests_halves_the_calls_once() -> None:
    slots = Slots(16)
    await play(slots, 1, lambda under_way: 1.0, refuse_from=8)
    assert 4 <= slots.limit <= 9
    assert await play(slots, 20, lambda under_way: 1.0, refuse_from=8) <= 10


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m30s"}, 90),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "20ms"}, 0.02),
        (
            {
                "date": "Sat, 28 Nov 2026 12:00:00 GMT",
                "anthropic-ratelimit-input-tokens-remaining": "0",
                "anthropic-ratelimit-input-tokens-reset": "2026-11-28T12:00:07Z",
            },
            7,
        ),
        ({"x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "1s"}, None),
        ({"x-ratelimit-remaining-requests": "0"}, None),
        ({}, None),
    ],
)
def test_headers_tell_how_long_nothing_is_left(headers: dict[str, str], wait: float | None) -> None:
    assert exhausted_for(headers) == wait
