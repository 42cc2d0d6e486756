"""Questions on the market alone are asked ahead of their session, and nothing else changes by that."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from connectors.wiring.remote_models import RemoteModels
from connectors.wiring.services import services
from engine.app.models import models
from engine.app.research.backtest import run_backtest
from engine.domain.model_call import AHEAD, ModelRequest, ModelResult, Usage, prompt_hash
from engine.domain.run import DataSpec, RunSpec
from engine.errors import TryAgainLater
from engine.journal.reader import JournalReader
from engine.offline.model import OfflineModel
from engine.reports.documents.backtest import fingerprint
from engine.settings import places
from engine.settings.config import Config
from tests.connectors.wiring.clocks import NOON
from tests.long_cases import first_of

SPEC = RunSpec(
    symbols=("TMBK", "ORVL"),
    first=date(2024, 2, 14),
    last=date(2024, 2, 20),
    warm_up_from=date(2024, 2, 8),
    data=DataSpec(None, 7),
)
OWNERS = """extends = "desk"
name = "two"
combine = "vote"
[owners.a]
risk = "risk-averse"
[owners.b]
risk = "momentum"
"""


DEEP = [{"news", "chart"}, {"mood"}]
OWN_PRESET = 'extends = "finvision"\nname = "mood"\nsteps = ["news", "chart", "mood"]\nload = ["mood.py:MOOD"]\n'
OWN_PROMPT = """{% block system %}You judge moods.{% endblock %}
{% block user %}{{ view.symbol }}: {{ view.news.sentiment }}{% endblock %}
"""
OWN_AGENT = """
from dataclasses import dataclass
from pathlib import Path
from engine.agents.agent import MARKET_ALONE, Agent, Answer, View
from engine.agents.news import NewsDigest

@dataclass(frozen=True, slots=True)
class MoodView(View):
    news: NewsDigest

class Mood(Answer):
    mood: str

def see(inputs):
    news = inputs.answer(NewsDigest)
    return "no news" if news is None else MoodView(inputs.symbol, inputs.session, inputs.owner, news)

MOOD = Agent(name="mood", view=MoodView, answer=Mood, see=see, prompt=Path(__file__).with_name("mood.md"),
             rule=lambda view: {"mood": view.news.sentiment}, reads=MARKET_ALONE)
"""


class Paid:
    """A model behind an address, by its spec, that answers by the rules, each after a delay of its own, and costs."""

    spec, label, sees = "near:rules", "rules (near)", True

    def __init__(self, fails_from: date = date.max) -> None:
        self.asked: list[ModelRequest] = []
        self._delays = random.Random(1)
        self._fails_from = fails_from
        self._rules = OfflineModel()

    async def answer(self, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> ModelResult:
        self.asked.append(request)
        for _ in range(self._delays.randrange(60)):
            await asyncio.sleep(0)
        if request.purpose == "evidence-decision" and request.session >= self._fails_from:
            raise TryAgainLater("the service is out")
        made = await self._rules.answer(request, on_delta)
        digest = prompt_hash(request.system, request.messages)
        return replace(made, model=self.spec, usage=Usage(100, 0, 10), cost=Decimal("0.01"), request_hash=digest)


def play(
    model: Paid, preset: str, ahead: int, monkeypatch: pytest.MonkeyPatch, run: str, batch: bool = False
) -> tuple[str, list[Any]]:
    """The fingerprint of a run and its calls, those of each analysis in the journal's order."""
    monkeypatch.setattr(models, "open_model", lambda text, config, source: model)
    config = Config.model_validate(
        {"models": {"default": "near:rules", "ahead": ahead}, "endpoints": {"near": {"base_url": "http://127.0.0.1:9"}}}
    )
    report = run_backtest(services(config, NOON), replace(SPEC, preset=preset, run=run, batch=batch), baselines=())
    with JournalReader(places.run_journal(run)) as reader:
        calls = [
            (one.key.session, one.key.symbol, one.key.owner, one.agent, one.prompt_hash, one.result.cached)
            for one in reader.answers()
        ]
    return fingerprint(report.result.test), sorted(calls, key=lambda call: call[:3])


@pytest.mark.parametrize(("preset", "sessions_ahead"), first_of(2, [("desk", 100), ("finvision", 1), ("two", 1)]))
def test_a_run_is_the_same_and_nothing_is_asked_twice(
    preset: str, sessions_ahead: int, paperdesk_home: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if preset == "two":
        preset = str(paperdesk_home / "two.toml")
        (paperdesk_home / "two.toml").write_text(OWNERS)
    in_turn, ahead = Paid(), Paid()
    expected = play(in_turn, preset, 0, monkeypatch, "in-turn")
    assert play(ahead, preset, sessions_ahead, monkeypatch, "ahead") == expected

    def questions(model: Paid) -> Counter[Any]:
        return Counter((one.session, one.symbol, one.purpose, one.messages) for one in model.asked)

    assert questions(ahead) == questions(in_turn)
    deciding = [number for number, one in enumerate(ahead.asked) if "decision" in one.purpose]
    early = [one for one in ahead.asked[: deciding[-1]] if one.session == ahead.asked[deciding[-1]].session]
    assert {one.purpose for one in early} >= ({"news", "chart"} if preset == "finvision" else {"market-intelligence"})
    sessions = [one.session for one in ahead.asked if one.purpose in ("market-intelligence", "news")]
    assert any(one.ahead for one in ahead.asked) and sessions == sorted(sessions)


@pytest.mark.parametrize(("preset", "steps"), [("desk", [{"market-intelligence", "chart"}]), ("mood", DEEP)])
def test_in_batches_the_questions_of_a_step_go_out_together(
    preset: str, steps: list[set[str]], paperdesk_home: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    waves: list[list[ModelRequest]] = []

    async def batch(self: RemoteModels, questions: Sequence[tuple[str, ModelRequest]], *more: object) -> None:
        waves.append([request for _, request in questions])

    if preset == "mood":
        preset = str(paperdesk_home / "mood.toml")
        for name, text in (("mood.toml", OWN_PRESET), ("mood.py", OWN_AGENT), ("mood.md", OWN_PROMPT)):
            (paperdesk_home / name).write_text(text)
    monkeypatch.setattr(RemoteModels, "batch", batch)
    in_turn, batched = Paid(), Paid()
    expected = play(in_turn, preset, 0, monkeypatch, "in-turn")
    assert play(batched, preset, 0, monkeypatch, "batched", batch=True) == expected
    assert len(batched.asked) == len(in_turn.asked)

    assert [{one.purpose for one in wave} for wave in waves] == steps
    sent = Counter((one.purpose, one.session) for wave in waves for one in wave)
    # A memory that knows nothing of a symbol yet has its first session asked by itself.
    first = min(one.session for one in in_turn.asked) if len(steps) == 1 else date.min
    alone = {"market-intelligence", "chart", "news", "mood"}
    assert sent == Counter((o.purpose, o.session) for o in in_turn.asked if o.session > first and o.purpose in alone)


def test_what_was_asked_ahead_of_a_stop_is_booked_once(paperdesk_home: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Paid(fails_from=date(2024, 2, 15))
    with pytest.raises(TryAgainLater):
        play(model, "desk", 2, monkeypatch, "stopped")
    with JournalReader(places.run_journal("stopped")) as reader:
        calls = reader.calls("stopped")
        use = reader.run("stopped").model
    answered = [one for one in model.asked if "decision" not in one.purpose or one.session < date(2024, 2, 15)]
    early = [call for call in calls if call.kind == AHEAD]
    assert use is not None and use.cost == Decimal("0.01") * len(answered) and use.failed_calls == 0
    assert {call.agent for call in early} == {"market-intelligence", "chart"}
