"""Three owners who read the same market ask a model once what they all ask; each has the answer in its own trail."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from connectors.wiring.services import services
from engine.app.research.backtest import run_backtest
from engine.domain.run import DataSpec, RunSpec
from engine.journal.reader import JournalReader
from engine.settings import places
from engine.settings.config import Config
from tests.connectors.wiring.clocks import NOON
from tests.servers.fake_llm_server import Fail, FakeLLMServer, Say, fake_llm_server

OWNERS = ("bull", "bear", "calm")
PRESET = 'extends = "finvision"\nname = "three"\ncombine = "vote"\n' + "".join(
    f'[owners.{owner}]\nrisk = "{risk}"\n'
    for owner, risk in zip(OWNERS, ("risk-seeking", "risk-averse", "momentum"), strict=True)
)
SPEC = RunSpec(symbols=("TMBK",), first=date(2024, 2, 14), last=date(2024, 2, 15), data=DataSpec(None, 7))


@pytest.fixture
def server() -> Iterator[FakeLLMServer]:
    """Knows no answer that any agent would take: every question is sent back once."""
    with fake_llm_server() as served:
        served.play(Say(text='{"symbol": "TMBK"}'))
        yield served


def run(server: FakeLLMServer, folder: Path, replay: str) -> str:
    preset = folder / "three.toml"
    preset.write_text(PRESET)
    config = Config.model_validate(
        {
            "models": {"default": "near:small", "replay": replay},
            "endpoints": {"near": {"base_url": server.openai_url, "requests_per_minute": 60_000}},
        }
    )
    run_backtest(services(config, NOON), replace(SPEC, preset=str(preset), run="shared"), baselines=())
    return "shared"


def questions(server: FakeLLMServer) -> Counter[str]:
    return Counter(json.dumps(body["messages"]) for body in server.requests)


@pytest.mark.parametrize("replay", ["live", "read-through"])
def test_what_all_owners_ask_is_asked_once(server: FakeLLMServer, paperdesk_home: Path, replay: str) -> None:
    name = run(server, paperdesk_home, replay)

    assert set(questions(server).values()) == {1}
    with JournalReader(places.run_journal(name)) as reader:
        answers = [answer for opinion in reader.opinions() for answer in reader.answers(opinion.key)]
        by_owner = {
            owner: [(one.agent, one.prompt_hash, one.result.text) for one in answers if one.key.owner == owner]
            for owner in OWNERS
        }
        used = reader.run(name).model
    assert used is not None and used.cached_calls
    assert len(server.requests) == used.calls - used.cached_calls
    charts = {owner: [one for one in made if one[0] == "chart"] for owner, made in by_owner.items()}
    assert charts["bull"] and charts["bull"] == charts["bear"] == charts["calm"]
    first, *others = (one for one in answers if one.agent == "chart" and one.attempt == 1)
    assert {one.result.cost for one in others if one.prompt_hash == first.prompt_hash} == {Decimal(0)}


def test_a_failure_of_the_service_is_no_answer_for_others(server: FakeLLMServer, paperdesk_home: Path) -> None:
    server.play(Fail(400, "the prompt was filtered", "content_filter"))
    run(server, paperdesk_home, "live")
    assert set(questions(server).values()) == {1, len(OWNERS)}
