"""A replay of one run: each agent answered by the model that the run recorded, whatever else is recorded."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.journal.reader import JournalReader
from engine.settings import places
from tests.servers.fake_llm_server import Fail, Say, Turn, fake_llm_server
from tests.tui.commands.conftest import Run
from tests.tui.commands.test_model_outages import BACKTEST, SYMBOLS, Service

Configured = Callable[..., None]
SIZES = {"m1": 2, "m2": 3, "m3": 4}


class Opinionated(Service):
    """Each of its models buys another size, so that the answer of one is never that of another."""

    def next_turn(self, body: dict[str, Any], headers: dict[str, str]) -> Turn:
        turn = super().next_turn(body, headers)
        assert isinstance(turn, Say)
        answer = json.loads(turn.text)
        if "position_size" in answer:
            return replace(turn, text=json.dumps(answer | {"position_size": SIZES[body["model"]]}))
        return turn


@pytest.fixture
def service(fresh: Path) -> Iterator[Opinionated]:
    with fake_llm_server(Opinionated()) as running:
        assert isinstance(running, Opinionated)
        yield running


@pytest.fixture
def configured(service: Opinionated) -> Configured:
    """Writes a configuration: the default model, and those of agents that have one of their own."""

    def written(default: str, **agents: str) -> None:
        own = "".join(f'[models.agents.{agent}]\nmodel = "{model}"\n' for agent, model in agents.items())
        places.config_file().write_text(
            f'[desk]\npreset = "finvision-no-reflection"\nsymbols = {json.dumps(SYMBOLS)}\n'
            f'[models]\ndefault = "{default}"\n{own}'
            f'[endpoints.near]\nbase_url = "{service.openai_url}"\nrequests_per_minute = 60000\n'
            f'[endpoints.far]\nbase_url = "{service.openai_url}"\nrequests_per_minute = 60000\n'
        )

    return written


def asked(run: str) -> dict[str, set[str]]:
    """The models that answered each agent of a backtest."""
    models: dict[str, set[str]] = {}
    with JournalReader(places.run_journal(run)) as reader:
        for answer in reader.answers(run=run):
            models.setdefault(answer.agent, set()).add(answer.result.model)
    return models


def play(run: Run, name: str, *more: str) -> dict[str, Any]:
    done = run(*BACKTEST, "--run", name, "--yes", *more)
    assert done.code == 0, done.err
    document: dict[str, Any] = done.json
    return document


@pytest.fixture
def recorded(run: Run, service: Opinionated, configured: Configured) -> dict[str, dict[str, Any]]:
    """Two runs of the same questions, each with two models at two endpoints; a third model is configured by now."""
    configured("near:m1", decision="far:m2")
    first = play(run, "first")
    configured("far:m2", decision="near:m1")
    second = play(run, "second")
    configured("near:m3")
    assert first["fingerprint"] != second["fingerprint"]
    service.requests.clear()
    return {"first": first, "second": second}


@pytest.mark.parametrize("of", ["first", pytest.param("second", marks=pytest.mark.slow)])
def test_a_run_of_several_models_is_replayed_with_each_agents_own(
    run: Run, service: Opinionated, recorded: dict[str, dict[str, Any]], of: str
) -> None:
    again = run("rerun", of, "--model", "replay", "--run", "again", "--json")
    assert again.code == 0 and again.json["same"] and service.requests == []
    assert asked("again") == asked(of) and {frozenset(models) for models in asked(of).values()} == {
        frozenset({"near:m1"}),
        frozenset({"far:m2"}),
    }
    document = run("report", "--run", "again", "--format", "json").json
    assert document["fingerprint"] == recorded[of]["fingerprint"]
    assert document["model"]["cached_calls"] == document["model"]["calls"] > 0
    # A replay of the replay is one of the same run, and a decision is taken again with the models of its run.
    assert run("rerun", "again", "--model", "replay").code == 0 and service.requests == []
    decided = run("why", "ORVL", "2025-03-11", "--run", of, "--redecide", "--model", "replay", "--json")
    assert decided.code == 0 and decided.json["same_throughout"] and service.requests == []


@pytest.mark.slow
def test_a_question_that_the_models_of_the_run_never_had_is_said_in_one_line(
    run: Run, service: Opinionated, configured: Configured, recorded: dict[str, dict[str, Any]]
) -> None:
    # On other sessions near:m1 alone has answered: far:m2 decided in the run that is replayed.
    later = ("backtest", "--symbols", ",".join(SYMBOLS), "--from", "2025-03-18", "--to", "2025-03-20")
    configured("near:m1")
    assert run(*later, "--run", "later", "--yes").code == 0
    service.requests.clear()
    missed = run(*later, "--run", "missed", "--model", "replay:first")
    assert (missed.code, missed.err.count("\n"), service.requests) == (65, 1, [])
    assert "no answer of far:m2 is recorded for decision of" in missed.err
    assert asked("missed").keys() <= {"news", "chart"}


@pytest.mark.slow
def test_an_endpoint_that_is_gone_from_the_configuration_does_not_keep_a_run_from_being_replayed(
    run: Run, service: Opinionated, recorded: dict[str, dict[str, Any]]
) -> None:
    file = places.config_file()
    file.write_text(file.read_text().partition("[endpoints.far]")[0])
    assert run("rerun", "first", "--model", "replay").code == 0
    missed = run("rerun", "nobody", "--model", "replay")
    assert missed.code == 65 and missed.err.count("\n") == 1


def test_a_run_that_went_on_with_another_model_is_replayed_with_both(
    run: Run, service: Opinionated, configured: Configured
) -> None:
    configured("near:m1")
    service.trouble = lambda number: None if number <= 7 else Fail(402, "no credit")
    stopped = run(*BACKTEST, "--run", "both", "--yes")
    assert stopped.code == 75
    service.trouble = lambda number: None
    done = run("backtest", "--resume", "both", "--model", "near:m2", "--yes", "--json")
    assert done.code == 0
    both = asked("both")
    assert {"near:m1", "near:m2"} == set().union(*both.values())
    configured("offline")
    service.requests.clear()
    again = run("rerun", "both", "--model", "replay", "--run", "again", "--json")
    assert again.code == 0 and again.json["same"] and service.requests == [] and asked("again") == both


def test_rules_are_no_recorded_answers(run: Run, configured: Configured) -> None:
    configured("offline")
    play(run, "ruled")
    refused = run("rerun", "ruled", "--model", "replay")
    assert refused.code == 65 and "ruled has no recorded answers" in refused.err and refused.err.count("\n") == 1
