"""Configuration to sources: which embedder, which macro series, with which addresses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from connectors.wiring.models import open_embedder
from connectors.wiring.sources import ConfiguredFetch
from engine.domain.run import ModelUse
from engine.errors import ConfigError, CredentialsRefused
from engine.services import FetchOptions
from engine.settings.config import Config
from tests.servers.fake_llm_server import fake_llm_server


def ignored(use: ModelUse) -> None:
    """Calls are not counted here."""


def config(**sections: Any) -> Config:
    return Config.model_validate(sections)


def test_the_default_embedder_needs_nothing() -> None:
    with open_embedder(config(), None, ignored, {}) as embedder:
        assert (embedder.id, embedder.dimension) == ("hash-384", 384)


def test_a_vendors_embedder_needs_its_key() -> None:
    named = config(memory={"embedder": "openai:text-embedding-3-small"})
    with open_embedder(named, None, ignored, {"OPENAI_API_KEY": "k-0123456789"}) as embedder:
        assert (embedder.id, embedder.dimension) == ("openai:text-embedding-3-small", 1536)
    with pytest.raises(CredentialsRefused, match="OPENAI_API_KEY"), open_embedder(named, None, ignored, {}):
        pass


def test_an_endpoints_embedder_asks_its_address_with_its_key() -> None:
    with fake_llm_server() as server:
        endpoint = {"base_url": server.openai_url, "key_env": "LOCAL_KEY", "concurrency": 1}
        named = config(memory={"embedder": "local:nomic:v1"}, endpoints={"local": endpoint})
        with open_embedder(named, None, ignored, {"LOCAL_KEY": "k-local"}) as embedder:
            assert embedder.id == "local:nomic:v1"
            first = embedder.embed(["a", "b"])
        assert first.shape == (2, 8)
        assert (server.requests[0]["model"], server.headers[0]["authorization"]) == ("nomic:v1", "Bearer k-local")
        with open_embedder(named, None, ignored, {"LOCAL_KEY": "k-local"}) as embedder:
            assert embedder.dimension == 8
            assert (embedder.embed(["b"])[0] == first[1]).all()
        assert len(server.requests) == 1


@pytest.mark.parametrize("spec", ["hash-385", "anthropic:claude", "offline", "replay", "nowhere:m", "openai:", ""])
def test_what_makes_no_vectors_is_a_configuration_error(spec: str) -> None:
    named = config(memory={"embedder": spec}, endpoints={"local": {"base_url": "http://127.0.0.1:9/v1"}})
    with (
        pytest.raises(ConfigError, match="local:MODEL"),
        open_embedder(named, None, ignored, {"OPENAI_API_KEY": "k-0123456789"}),
    ):
        pass


async def test_services_are_refused_without_what_they_demand(
    paperdesk_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FRED_API_KEY", raising=False)
    options = FetchOptions(folder=paperdesk_home)
    with pytest.raises(ConfigError, match="user_agent"):
        await ConfiguredFetch(config()).filings(options, ["AAPL"], None)
    with pytest.raises(CredentialsRefused, match="FRED_API_KEY"):
        await ConfiguredFetch(config()).macro(options)
    with pytest.raises(ValueError, match="not a FRED series id"):
        config(macro={"series": ["../ICSA"]})
