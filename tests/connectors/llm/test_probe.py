"""What an endpoint can do is found out by asking it."""

from __future__ import annotations

import pytest

from connectors.llm.probe import probe
from engine.domain.model_call import Capabilities, FailureKind
from tests.servers.fake_llm_server import Fail, FakeLLMServer, Say
from tests.servers.llm_questions import OnePixelPainter


@pytest.fixture(autouse=True)
def asked_by_the_script(server: FakeLLMServer) -> None:
    """A probe's first question is a preflight's, and here the script answers it."""
    server.plays_preflight = True


async def test_a_full_endpoint(make_model, server: FakeLLMServer) -> None:
    server.play(Say(text='{"word": "ready"}'), Say(text='{"symbol": "qzxw"}'))
    found = await probe(make_model(painter=OnePixelPainter()))
    assert found == Capabilities(
        enforces_schema=True, sees=True, streams=True, reports_usage=True, latency=found.latency
    )
    assert found.latency > 0


async def test_one_that_guesses_at_pictures_and_enforces_nothing(make_model, server: FakeLLMServer) -> None:
    server.play(
        Fail(400, "response_format / output_config not supported"),
        Fail(400, "response_format not supported"),
        Say(text='{"word": "ready"}', tokens_out=0),
        Say(text='{"symbol": "AAPL"}'),
    )
    model = make_model(painter=OnePixelPainter())
    if model.spec.startswith("anthropic:"):
        server.script.pop(1)
    found = await probe(model)
    assert (found.enforces_schema, found.sees, found.streams, found.reports_usage) == (False, False, True, False)


async def test_one_that_answers_nothing(make_model, server: FakeLLMServer) -> None:
    server.play(Fail(404, "no such model"))
    found = await probe(make_model())
    assert found.problem.startswith(FailureKind.NOT_CONFIGURED)
    assert not found.sees
