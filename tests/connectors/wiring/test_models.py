"""Which model answers which agent, how it is asked, and whose temperature it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from connectors.wiring.remote_models import RemoteModels, endpoint_of
from connectors.wiring.services import services
from engine.agents.registry import registered
from engine.app.models.models import build_models
from engine.app.research.backtest import run_backtest
from engine.domain.decision import Action
from engine.domain.model_call import AnswerOptions, parse_model_spec
from engine.domain.run import DataSpec, RunSpec
from engine.errors import ConfigError, CredentialsRefused, MissingData, UsageError
from engine.journal.reader import JournalReader
from engine.preset import load_preset
from engine.reports.documents.backtest import document
from engine.settings import places
from engine.settings.config import Config
from engine.settings.values import AgentSettings
from tests.connectors.wiring.clocks import NOON
from tests.servers.fake_llm_server import Fail, FakeLLMServer, Say, fake_llm_server

FINVISION = load_preset("finvision")
SPEC = RunSpec(
    symbols=("ORVL",),
    first=date(2024, 3, 4),
    last=date(2024, 3, 6),
    preset="finvision-no-reflection",
    data=DataSpec(demo_seed=7),
)
TRADE = {
    "symbol": "ORVL",
    "recommendation": "BUY",
    "position_size": 5,
    "rule": "strong uptrend",
    "explanation": "Because.",
}


@pytest.fixture
def server() -> Iterator[FakeLLMServer]:
    """A server that takes no temperature, and says the same trade to everybody."""
    with fake_llm_server() as served:
        refusal = Fail(400, "Unsupported value", param="temperature")

        def turn(body: dict[str, Any], headers: dict[str, str]) -> Any:
            served.requests.append(body)
            return refusal if "temperature" in body else Say(text=json.dumps(TRADE))

        served.next_turn = turn  # type: ignore[method-assign]
        yield served


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[RemoteModels]:
    """The services that were closed."""
    found, close = list[RemoteModels](), RemoteModels.aclose

    async def counted(self: RemoteModels) -> None:
        found.append(self)
        await close(self)

    monkeypatch.setattr(RemoteModels, "aclose", counted)
    return found


def config(server: FakeLLMServer, **agents: Any) -> Config:
    return Config.model_validate(
        {
            "models": {"default": "near:small", "agents": agents, "replay": "live"},
            "endpoints": {"near": {"base_url": server.openai_url, "requests_per_minute": 6000}},
        }
    )


def test_the_presets_wishes_are_changed_by_the_configuration_agent_by_agent() -> None:
    own = Config.model_validate({"models": {"agents": {"news": {"temperature": 0.9}, "chart": {"timeout": 5}}}})

    models = build_models(services(own), FINVISION)

    assert {models.settings[agent].temperature for agent in ("chart", "performance-reflection")} == {0.3}
    assert (models.settings["news"].temperature, models.settings["decision"].temperature) == (0.9, 1.0)
    assert (models.settings["chart"].timeout, models.settings["decision"].max_output_tokens) == (5, 8192)
    # Only what the user set himself is insisted on.
    assert models.insisted == {"news"}
    assert set(models.models) == set(registered())
    assert (models.spec, models.label) == ("offline", "rules, not a language model")


def test_each_agent_may_have_a_model_of_its_own_and_equal_ones_are_shared(server: FakeLLMServer) -> None:
    own = config(server, decision={"model": "near:large"}, news={"model": "offline"})

    models = build_models(services(own), FINVISION)

    assert {agent: models.models[agent].spec for agent in ("news", "chart", "decision")} == {
        "news": "offline",
        "chart": "near:small",
        "decision": "near:large",
    }
    assert models.models["chart"] is models.models["performance-reflection"]
    assert build_models(services(own), FINVISION, "offline").spec == "offline"


@pytest.mark.parametrize(
    ("plain", "override", "error", "complaint"),
    [
        ({"models": {"agents": {"decison": {}}}}, None, ConfigError, "decison"),
        ({}, "gpt", UsageError, "did you mean openai:gpt"),
        ({}, "nowhere:gpt", UsageError, "nowhere"),
        ({}, "openai:gpt", CredentialsRefused, "OPENAI_API_KEY"),
        ({}, "anthropic:claude", CredentialsRefused, "ANTHROPIC_API_KEY"),
    ],
)
def test_a_spec_that_means_nothing_is_refused(
    plain: dict[str, Any], override: str | None, error: type[Exception], complaint: str
) -> None:
    with pytest.raises(error, match=complaint):
        build_models(services(Config.model_validate(plain)), FINVISION, override)


def test_a_preset_that_names_an_agent_that_there_is_not_is_refused() -> None:
    misspelt = FINVISION.model_copy(update={"agents": {"decison": AgentSettings(temperature=0.1)}})

    with pytest.raises(ConfigError, match=r"preset finvision: agents\.decison: unknown agent"):
        build_models(services(Config()), misspelt)


def test_a_temperature_that_the_user_set_is_never_dropped(server: FakeLLMServer, closed: list[RemoteModels]) -> None:
    with pytest.raises(ConfigError, match=r"near:small takes no temperature \(0.5 is set\)"):
        run_backtest(services(config(server, decision={"temperature": 0.5}), NOON), replace(SPEC, run="insisted"))

    with JournalReader(places.run_journal("insisted")) as reader:
        run = reader.run("insisted")
    assert run.outcome == "failed"
    assert "takes no temperature" in run.detail
    assert len(closed) == 1, "what was opened"


def test_a_temperature_that_the_preset_wishes_for_is_dropped_with_a_note(
    server: FakeLLMServer, closed: list[RemoteModels]
) -> None:
    report = run_backtest(services(config(server), NOON), replace(SPEC, run="wished"))
    assert len(closed) == 1

    assert [d.action for d in report.result.test.decisions] == [Action.BUY] * 3
    assert report.result.model is not None
    assert report.result.model.usage.input_tokens > 0
    with JournalReader(places.run_journal("wished")) as reader:
        entries = [e for d in report.result.test.decisions for e in reader.answers(d.key)]
    decided = [e for e in entries if e.agent == "decision"]
    assert len(decided) == 3
    assert any("temperature 1 not sent" in note for e in decided for note in e.result.notes)
    # A trade is no reading of a chart: that agent abstains, is counted, and the decision goes on without it.
    assert {e.outcome for e in entries if e.agent == "chart"} == {"sent back", "abstained"}
    assert report.result.model.abstentions == len([e for e in entries if e.outcome == "abstained"]) > 0


def test_recorded_answers_make_the_run_again_without_asking(server: FakeLLMServer, tmp_path: Path) -> None:
    recording = config(server).model_copy(
        update={"models": config(server).models.model_copy(update={"replay": "read-through"})}
    )
    first = run_backtest(services(recording, NOON), replace(SPEC, run="first"))
    asked = len(server.requests)
    again = run_backtest(services(recording, NOON), replace(SPEC, run="again", model="replay"))

    assert len(server.requests) == asked
    assert again.result.test.equity == first.result.test.equity
    assert again.result.model is not None
    assert again.result.model.cached_calls == again.result.model.calls > 0
    # Over another window there is nothing recorded, and nobody is asked.
    with pytest.raises(MissingData):
        run_backtest(services(recording, NOON), replace(SPEC, run="other", first=date(2024, 2, 20), model="replay"))
    assert len(server.requests) == asked


@pytest.mark.parametrize(("own", "begins"), [({"local": True}, 1), ({}, 16), ({"concurrency": 3}, 3)])
def test_a_local_server_is_asked_one_question_at_a_time_first(own: dict[str, Any], begins: int) -> None:
    made = Config.model_validate({"endpoints": {"near": {"base_url": "http://127.0.0.1:9/v1", **own}}})
    spec = parse_model_spec("near:small", ("near",))
    assert endpoint_of(services(made).models, made, spec).limiter.slots.limit == begins


def test_effort_and_tier_of_an_agent_are_sent_recorded_and_shown(server: FakeLLMServer) -> None:
    def turn(body: dict[str, Any], headers: dict[str, str]) -> Any:
        server.requests.append(body)
        return Say(text=json.dumps(TRADE), tier=body.get("service_tier", ""))

    server.next_turn = turn  # type: ignore[method-assign]
    own = config(server, decision={"effort": "high", "tier": "default"})
    spec = replace(SPEC, run="tiers", options=AnswerOptions(tier="flex"))
    report = run_backtest(services(own, NOON), spec)

    # The preflight has asked in each of the two ways before.
    sent = {(body.get("reasoning_effort"), body["service_tier"]) for body in server.requests}
    assert sent == {("high", "default"), (None, "flex")}
    use = document(report)["model"]
    assert use["tier"] == "default, flex"
    assert (use["agents"]["decision"]["tier"], use["agents"]["chart"]["tier"]) == ("default", "flex")


def test_an_effort_that_a_model_refuses_ends_the_run_before_its_first_session(server: FakeLLMServer) -> None:
    refusal = Fail(400, "no such effort", param="reasoning_effort")
    server.next_turn = lambda body, headers: refusal if "reasoning_effort" in body else Say(text=json.dumps(TRADE))  # type: ignore[method-assign]
    with pytest.raises(ConfigError, match="does not take effort = high"):
        run_backtest(services(config(server, decision={"effort": "high"}), NOON), replace(SPEC, run="refused"))
    with JournalReader(places.run_journal("refused")) as reader:
        assert not reader.decisions()


def test_a_fallback_answers_where_the_model_has_no_credit_and_the_record_says_so(server: FakeLLMServer) -> None:
    def turn(body: dict[str, Any], headers: dict[str, str]) -> Any:
        server.requests.append(body)
        spent = Fail(402, "insufficient credit", "insufficient_quota")
        return spent if body["model"] == "large" else Say(text=json.dumps(TRADE))

    server.next_turn = turn  # type: ignore[method-assign]
    own = config(server, decision={"model": "near:large", "fallback": "near:small"})
    report = run_backtest(services(own, NOON), replace(SPEC, run="fell-back"))

    assert [made.action for made in report.result.test.decisions] == [Action.BUY] * 3
    with JournalReader(places.run_journal("fell-back")) as reader:
        decided = [one for one in reader.answers(run="fell-back") if one.agent == "decision"]
    assert {one.result.model for one in decided} == {"near:small"}
    assert all("in place of near:large" in one.result.notes[0] for one in decided)

    asked = len(server.requests)
    again = run_backtest(services(own, NOON), replace(SPEC, run="replayed", model="replay"))
    assert [made.proposal for made in again.result.test.decisions] == [
        made.proposal for made in report.result.test.decisions
    ]
    assert len(server.requests) == asked


def test_a_run_by_the_rules_needs_no_key_of_a_fallback(server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    own = config(server, decision={"fallback": "anthropic:claude-sonnet-5-5"})
    report = run_backtest(services(own, NOON), replace(SPEC, run="by-rules", model="offline"))
    assert report.result.test.decisions
