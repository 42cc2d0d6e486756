"""The rate limit of calls."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from connectors.llm.endpoint import RateLimiter


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
        "from engine.domain import model_spec\nprices = pricing.load_prices()\n"
        "one = endpoint.Endpoint(provider='openai', key_variable='KEY', api_key='k')\n"
        "openai_model.OpenAIModel('m', one, prices)\n"
        "anthropic_model.AnthropicModel('m', one, prices)\n"
        "heavy = {'openai', 'anthropic', 'httpx2', 'aiolimiter', 'matplotlib'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
