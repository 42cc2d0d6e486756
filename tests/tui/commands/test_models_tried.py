"""What `models --check SPEC` finds out of a model, at both vendors' interfaces, and what it writes of that."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connectors.llm.probe import CONTEXTS
from engine.settings.config import load_config
from tests.servers.fake_llm_server import Fail, FakeLLMServer, Say, Turn, fake_llm_server
from tests.tui.commands.conftest import Run

CONFIG = """
# The model in the cellar.
[endpoints.near]
base_url = "{url}"  # its address
vision = false  # to be found out
[app]
theme = "light"  # stays
"""


class Model(FakeLLMServer):
    """A model that can do what its attributes say."""

    sees, thinks, calls, reads = True, True, True, 20_000

    def next_turn(self, body: dict[str, Any], headers: dict[str, str]) -> Turn:
        self.requests.append(body)
        asked = json.dumps(body["messages"])
        if "image" in asked and not self.sees:
            return Fail(400, "image input is not supported")
        if hidden := re.search(r"quarz(\d+)", asked):
            if int(hidden[1]) > self.reads:
                return Fail(400, "prompt is too long: maximum context length exceeded")
            return Say(text=json.dumps({"word": f"{hidden[0].title()}."}))
        if body.get("tools") and not self.calls:
            return Fail(400, "tools are not supported")
        answer = json.dumps({"word": "ready", "symbol": "QZXW"})
        return Say(
            text=answer, called=bool(body.get("tools")), reasoned=15 if self.thinks and "times 23" in asked else 0
        )


@pytest.fixture(params=["near:m", "anthropic:m"])
def model(request: pytest.FixtureRequest, paperdesk_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Model]:
    with fake_llm_server(Model(plays_preflight=True)) as server:
        assert isinstance(server, Model)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.anthropic_url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-of-the-test")
        (paperdesk_home / "config.toml").write_text(CONFIG.format(url=server.openai_url))
        yield server


@pytest.fixture
def spec(request: pytest.FixtureRequest) -> str:
    return str(request.node.callspec.params["model"])


def test_all_that_a_model_can_do_is_found_and_its_section_is_written(
    run: Run, model: Model, spec: str, paperdesk_home: Path
) -> None:
    model.limits = {"x-ratelimit-limit-requests": "500", "anthropic-ratelimit-tokens-limit": "30000"}
    said = run("models", "--check", spec, "--json")
    assert said.code == 0, said.err
    found = said.json["check"][spec]
    assert {name: found[name] for name in ("answered", "enforces_schema", "vision", "streams", "reports_usage")} == (
        dict.fromkeys(("answered", "enforces_schema", "vision", "streams", "reports_usage"), True)
    )
    assert (found["thinks"], found["calls_tools"], found["context"]) == (True, True, CONTEXTS[1])
    assert found["counted"] == pytest.approx(1, abs=0.1)
    assert found["limits"] == {"requests": 500, "tokens": 30_000} and found["cost"] is None
    own = said.json["written"]
    assert own == {"vision": True} | ({"thinking_tokens": 6144} if spec == "near:m" else {})
    file = paperdesk_home / "config.toml"
    text = file.read_text()
    for comment in ("# The model in the cellar.", "# its address", 'theme = "light"  # stays'):
        assert comment in text
    endpoint = load_config(file, environ={}).config.endpoints[spec.partition(":")[0]]
    assert {name: getattr(endpoint, name) for name in own} == own


def test_what_it_cannot_do_is_found_too(run: Run, model: Model, spec: str) -> None:
    model.sees, model.thinks, model.calls, model.reads = False, False, False, 0
    said = run("models", "--check", spec, "--json")
    assert said.code == 0, said.err
    found = said.json["check"][spec]
    assert (found["vision"], found["thinks"], found["calls_tools"], found["context"]) == (False, False, False, 0)
    assert found["counted"] is None and found["limits"] == {}
    assert said.json["written"] == {"vision": False}


def test_one_that_does_not_answer_changes_nothing(run: Run, model: Model, spec: str, paperdesk_home: Path) -> None:
    model.next_turn = lambda body, headers: Fail(404, "no such model")  # type: ignore[method-assign]
    before = (paperdesk_home / "config.toml").read_text()
    said = run("models", "--check", spec)
    assert said.code == 1 and "no such model" in said.out
    assert (paperdesk_home / "config.toml").read_text() == before


def test_a_person_reads_a_table_and_the_section(run: Run, model: Model, spec: str) -> None:
    text = run("models", "--check", spec).out
    assert re.search(r"calls tools\s+yes", text) and f"context{' ' * 1}" in text
    assert f"[endpoints.{spec.partition(':')[0]}]\nvision = true" in text


@pytest.mark.parametrize(("wrong", "says"), [("nar:m", "did you mean near:m?"), ("offline", "offline is no service")])
@pytest.mark.parametrize("model", ["near:m"], indirect=True)
def test_a_wrong_one_is_a_usage_error(run: Run, model: Model, wrong: str, says: str) -> None:
    refused = run("models", "--check", wrong)
    assert refused.code == 2 and says in refused.err and not model.requests
