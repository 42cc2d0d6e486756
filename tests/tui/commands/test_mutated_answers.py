"""Answers that a model may write and nobody expects: no text ends the program, whatever agent it was asked by.

The rules' answers are mutated as text and read as a vendor's reply is. What cannot be used is an abstention, and the
journal of the run stays sound. Source: spec of models, "Any answer is only text".
"""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from connectors.llm.endpoint import Endpoint
from connectors.llm.remote_model import RemoteModel, Reply
from connectors.wiring.remote_models import RemoteModels
from engine.domain.model_call import PREFLIGHT, ModelRequest, ModelResult, ModelSpec, PriceTable, Usage
from engine.offline.model import OfflineModel
from tests.servers.fake_llm_server import FakeLLMServer, Say, Turn, fake_llm_server
from tests.tui.commands.conftest import Run

Mutation = Callable[[random.Random, str], str]

PRESETS = ("desk", "finvision", "finagent", "finmem", "tradinggpt")
SAMPLE = ("finmem",)
WINDOW = ("--symbols", "ORVL,BXWD", "--warm-up-from", "2025-03-03", "--from", "2025-03-10")

NUMBERS = ("9" * 5000, "-" + "7" * 400, "1e400", "-1e999", "1e-999", "0.1" + "0" * 2000, "NaN", "-Infinity", "1e", "01")
TEXTS = ('"\\ud800"', '"\\u0000"', '"\\udfff\\ud800"', '"' + "x" * 200_000 + '"', '"\\u202e"', '""', '"\u2028"')
OTHERS = ("null", "true", "[]", "{}", '[{"a": [null]}]', '{"__class__": "int"}', "[" * 3000 + "]" * 3000)


def _replaced(draw: random.Random, text: str, what: tuple[str, ...]) -> str:
    """The answer with one value somewhere in it replaced."""
    answer = json.loads(text)
    places: list[tuple[Any, Any]] = []

    def visit(value: Any) -> None:
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, child in items:
            places.append((value, key))
            visit(child)

    visit(answer)
    holder, key = draw.choice(places)
    holder[key] = "@@"
    return json.dumps(answer, ensure_ascii=False).replace('"@@"', draw.choice(what), 1)


def _shuffled(draw: random.Random, text: str) -> str:
    values = list(text)
    for _ in range(draw.randint(1, 8)):
        values[draw.randrange(len(values))] = draw.choice('{}[]":,\\0\x00\ud800e-.\n')
    return "".join(values)


def _renamed(draw: random.Random, text: str) -> str:
    answer = json.loads(text)
    key = draw.choice(list(answer))
    answer[draw.choice(("", "__init__", key.upper(), "\ud800", "id" * 5000))] = answer.pop(key)
    return json.dumps(answer)


MUTATIONS: tuple[Mutation, ...] = (
    lambda draw, text: text,
    lambda draw, text: _replaced(draw, text, NUMBERS),
    lambda draw, text: _replaced(draw, text, TEXTS),
    lambda draw, text: _replaced(draw, text, OTHERS),
    lambda draw, text: text[: draw.randrange(len(text))],
    lambda draw, text: f"Here is what I think: {text} I hope that helps.",
    lambda draw, text: repr(json.loads(text)).replace("}", draw.choice((",}", "// x\n}", "'}")), 1),
    lambda draw, text: json.dumps(draw.choice(([json.loads(text)], {"answer": json.loads(text)}, {"": text}))),
    lambda draw, text: f"{text}</think>{text[draw.randrange(len(text)) :]}",
    lambda draw, text: text.replace("{", "{" * draw.randint(2, 2000), 1),
    lambda draw, text: text * draw.randint(2, 4),
    lambda draw, text: draw.choice(
        ("", " ", "\ufeff", "null", "[]", "\x00", "\ud800", "<think>", "```json\n```", "{}")
    ),
    _shuffled,
    _renamed,
)


class MutatedModel(RemoteModel):
    """A remote model whose vendor replies with the rules' answer, mutated."""

    def __init__(self, spec: ModelSpec, seed: int, read: Counter[str]) -> None:
        endpoint = Endpoint(provider=spec.provider, key_variable="")
        super().__init__(spec.model, endpoint, PriceTable({}, date(2025, 1, 1)))
        self._rules, self._seed, self._read = OfflineModel(), seed, read

    async def _call(self, call: Any, timeout: float) -> Reply:
        result = await self._rules.answer(call.request)
        draw = random.Random(f"{self._seed}/{result.request_hash}")
        # The rules have no answer to the question that is asked before a run, which is no agent's and is not counted.
        text = draw.choice(MUTATIONS)(draw, result.text or json.dumps({"ready": True}))
        self._read[call.request.purpose] += call.request.purpose != PREFLIGHT
        call.receive(text)
        return Reply(text, "whole", "stop", Usage(1, 0, 1), 0)

    def _nothing(self, *_: Any) -> Any:
        raise AssertionError("no vendor is called")

    _make_client = _image = _parameters = _received = _leave_out = _nothing
    send_batch = find_batch = batch_replies = _nothing


@pytest.fixture
def mutated(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Counter[str]]:
    """Makes every remote model one with mutated answers, by a seed; the count of its answers by agent."""

    def made(seed: int) -> Counter[str]:
        read: Counter[str] = Counter()
        monkeypatch.setattr(RemoteModels, "live", lambda self, spec: MutatedModel(spec, seed, read))
        return read

    return made


def assert_survives(run: Run, read: Counter[str], preset: str, last: str) -> None:
    model = ("--model", "openai:gpt-5-mini", "--yes")
    done = run("backtest", *WINDOW, "--to", last, "--preset", preset, *model, "--abstain-limit", "0", "--json")
    assert done.code == 0, done.err
    document = json.loads(done.out)
    assert document["model"]["calls"] - document["model"]["cached_calls"] == read.total() > 0
    assert document["model"]["abstentions"] > 0
    assert run("journal", "check", "--run", document["run"]).code == 0
    assert run("decisions", "--run", document["run"]).code == 0
    first = document["decisions"][0]
    assert run("why", first["symbol"], first["session"], "--run", document["run"]).code == 0


@pytest.mark.parametrize(
    "preset", [pytest.param(name, marks=() if name in SAMPLE else pytest.mark.slow) for name in PRESETS]
)
def test_no_answer_ends_a_backtest(
    run: Run, paperdesk_home: Path, mutated: Callable[[int], Counter[str]], preset: str
) -> None:
    assert_survives(run, mutated(1), preset, "2025-03-14")


class MutatingServer(FakeLLMServer):
    """A model service that replies with answers of the rules to the question's schema, mutated."""

    def __init__(self, answers: Sequence[str]) -> None:
        super().__init__()
        self._answers = [(json.loads(text).keys(), text) for text in answers]

    def next_turn(self, body: dict[str, Any], headers: dict[str, str]) -> Turn:
        super().next_turn(body, headers)
        question = json.dumps(body)
        fitting = [
            text for keys, text in self._answers if all(f'"{key}"' in question.replace("\\", "") for key in keys)
        ]
        draw = random.Random(hashlib.sha256(question.encode()).digest())
        text = draw.choice(MUTATIONS)(draw, draw.choice(fitting))
        return Say(text=text.encode(errors="replace").decode())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "preset"), [("openai:gpt-5-mini", "finmem"), ("anthropic:claude-opus-5", "tradinggpt")]
)
def test_no_answer_over_http_ends_a_backtest(
    run: Run, paperdesk_home: Path, monkeypatch: pytest.MonkeyPatch, spec: str, preset: str
) -> None:
    texts: list[str] = []
    answer = OfflineModel.answer

    async def recorded(self: OfflineModel, request: ModelRequest, on_delta: Any = None) -> ModelResult:
        result = await answer(self, request, on_delta)
        texts.append(result.text)
        return result

    window = (*WINDOW, "--to", "2025-03-18", "--preset", preset, "--abstain-limit", "0", "--json")
    with monkeypatch.context() as patch:
        patch.setattr(OfflineModel, "answer", recorded)
        assert run("backtest", *window).code == 0
    with fake_llm_server(MutatingServer(texts)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.anthropic_url)
        monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-test")
        monkeypatch.setenv("ANTHROPIC_API_KEY", "key-of-the-test")
        done = run("backtest", *window, "--model", spec, "--yes")
        assert done.code == 0, done.err
        assert len(server.requests) >= 120
    document = json.loads(done.out)
    assert 0 < document["model"]["abstentions"] < document["model"]["calls"]
    assert run("journal", "check", "--run", document["run"]).code == 0


@pytest.mark.slow
def test_20_000_answers_end_no_backtest(
    run: Run, paperdesk_home: Path, mutated: Callable[[int], Counter[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAPERDESK_MODELS__REPLAY", "live")  # each seed answers every question anew
    counts: Counter[str] = Counter()
    seed = 1
    while counts.total() < 20_000:
        seed += 1
        read = mutated(seed)
        assert_survives(run, read, PRESETS[seed % len(PRESETS)], "2025-05-30")
        counts += read
