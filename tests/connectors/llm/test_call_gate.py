"""The pace at which calls are let through."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from connectors.llm.call_gate import CallGate


async def passes(gate: CallGate, characters: int = 0, output_tokens: int = 0) -> bool:
    try:
        async with asyncio.timeout(0.05), gate.pass_through(characters, output_tokens):
            return True
    except TimeoutError:
        return False


async def test_requests_beyond_the_minutes_allowance_wait() -> None:
    gate = CallGate(requests_per_minute=2)
    assert [await passes(gate) for _ in range(3)] == [True, True, False]


async def test_tokens_beyond_the_minutes_allowance_wait() -> None:
    gate = CallGate(tokens_per_minute=1000)
    assert await passes(gate, characters=2000, output_tokens=400)
    assert not await passes(gate, characters=0, output_tokens=200)
    assert await passes(gate, characters=0, output_tokens=50)


async def test_one_call_larger_than_the_allowance_gets_through_when_nothing_else_is_going_on() -> None:
    assert await passes(CallGate(tokens_per_minute=100), characters=100_000, output_tokens=4000)


async def test_a_slot_is_given_back_even_after_an_error() -> None:
    gate = CallGate(concurrency=1)
    with pytest.raises(RuntimeError):
        async with gate.pass_through(0, 0):
            assert not await passes(gate)
            raise RuntimeError("the call went wrong")
    assert await passes(gate)


def test_the_vendors_packages_are_not_loaded_before_the_first_question() -> None:
    program = (
        "import sys\n"
        "from connectors.llm import anthropic_model, openai_model, pricing, probe, replay\n"
        "from engine.domain import model_spec\nprices = pricing.load_prices()\n"
        "openai_model.OpenAIModel('m', api_key='k', prices=prices)\n"
        "anthropic_model.AnthropicModel('m', api_key='k', prices=prices)\n"
        "heavy = {'openai', 'anthropic', 'httpx2', 'pydantic', 'aiolimiter', 'matplotlib'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
