"""The fake service and models in front of it, with the waiting between retries made short."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from connectors.llm.anthropic_model import AnthropicModel
from connectors.llm.endpoint import Endpoint
from connectors.llm.openai_model import OpenAIModel
from connectors.llm.pricing import load_prices
from connectors.llm.remote_model import RemoteModel
from tests.servers.fake_llm_server import FakeLLMServer, fake_llm_server

MakeModel = Callable[..., RemoteModel]


@pytest.fixture
def server() -> Iterator[FakeLLMServer]:
    with fake_llm_server() as running:
        yield running


@pytest.fixture(params=["openai", "anthropic"])
def vendor(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def make_model(server: FakeLLMServer, vendor: str) -> AsyncIterator[MakeModel]:
    """Makes a model of the vendor that talks to the fake service."""
    made: list[RemoteModel] = []

    def make(model: str | None = None, **options: Any) -> RemoteModel:
        painter = options.pop("painter", None)
        url = server.openai_url if vendor == "openai" else server.anthropic_url
        parts = {"api_key": "sk-secret-1", "base_url": url, "key_variable": f"{vendor.upper()}_API_KEY"}
        endpoint = Endpoint(provider=vendor, **(parts | options))
        if vendor == "openai":
            made.append(OpenAIModel(model or "gpt-6.1-sol", endpoint, load_prices(), painter))
        else:
            made.append(AnthropicModel(model or "claude-sonnet-5-5", endpoint, load_prices(), painter))
        return made[-1]

    yield make
    for model in made:
        await model.aclose()
