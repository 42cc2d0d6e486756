"""Owners with a model of their own: whom their agents ask, and where that is shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from connectors.wiring.services import services
from engine.app.bench.forecast import forecast
from engine.app.bench.jobs import Job
from engine.app.models.models import agent_models, build_models
from engine.app.research.backtest import run_backtest
from engine.errors import ConfigError
from engine.journal.reader import JournalReader
from engine.preset import load_preset
from engine.settings import places
from engine.settings.config import Config
from tests.connectors.wiring.clocks import NOON
from tests.connectors.wiring.test_owners_questions import SPEC
from tests.servers.fake_llm_server import FakeLLMServer, Say, fake_llm_server

PRESET = """
extends = "finvision"
name = "three"
steps = ["news"]
[owners.bull]
risk = "risk-seeking"
[owners.bear]
risk = "risk-averse"
model = "near:small"
[owners.calm]
character = "calm.toml"
"""
CALM = 'nature = "You are calm."\ntext = "You wait."\nmodel = "near:medium"\n'
WANTED = {"bull": "near:large", "bear": "near:small", "calm": "near:medium"}


@pytest.fixture
def server() -> Iterator[FakeLLMServer]:
    with fake_llm_server() as served:
        served.play(Say(text='{"symbol": "TMBK"}'))
        yield served


@pytest.fixture
def preset(paperdesk_home: Path) -> str:
    (paperdesk_home / "calm.toml").write_text(CALM)
    (paperdesk_home / "three.toml").write_text(PRESET)
    return str(paperdesk_home / "three.toml")


def config(server: FakeLLMServer, preset: str, **models: object) -> Config:
    return Config.model_validate(
        {
            "desk": {"preset": preset},
            "models": {"default": "offline", "owners": {"bull": "near:large"}, **models},
            "endpoints": {"near": {"base_url": server.openai_url, "requests_per_minute": 60_000}},
        }
    )


def test_every_owners_agents_ask_its_own_model(server: FakeLLMServer, preset: str) -> None:
    made = services(config(server, preset), NOON)
    spec = replace(SPEC, preset=preset, run="own")
    run_backtest(made, spec, baselines=())
    with JournalReader(places.run_journal("own")) as reader:
        asked = {(one.key.owner, one.result.model) for one in reader.answers()}
        entry = reader.run("own")
    assert asked == set(WANTED.items())
    assert {body["model"] for body in server.requests} == {"large", "small", "medium"}
    assert entry.label == "large (near), small (near), medium (near)"

    count = len(server.requests)
    again = replace(spec, run="again", model="replay:own")
    run_backtest(services(config(server, preset), NOON), again, baselines=())
    assert len(server.requests) == count, "a replay asks nobody"
    with JournalReader(places.run_journal("again")) as reader:
        assert {(one.key.owner, one.result.model) for one in reader.answers()} == asked


def test_they_are_listed_and_forecast(server: FakeLLMServer, preset: str) -> None:
    made = services(config(server, preset), NOON)
    rows = {one.agent: str(one.spec) for one in agent_models(made, made.models.prices()) if "@" in one.agent}
    assert rows == {f"{agent}@{owner}": spec for agent in ("news", "decision") for owner, spec in WANTED.items()}
    estimated = forecast(made, [Job(replace(SPEC, preset=preset), None, "own")])
    assert set(estimated.models) == set(WANTED.values())
    assert all(one.calls for one in estimated.models.values())


def test_one_flag_answers_for_all_and_an_unknown_owner_is_refused(server: FakeLLMServer, preset: str) -> None:
    made = services(config(server, preset), NOON)
    assert build_models(made, load_preset(preset), "offline").spec == "offline"
    wrong = services(config(server, preset, owners={"bul": "near:large"}), NOON)
    with pytest.raises(ConfigError, match=r"models\.owners\.bul: preset three has no such owner; it has bull, bear"):
        build_models(wrong, load_preset(preset))
