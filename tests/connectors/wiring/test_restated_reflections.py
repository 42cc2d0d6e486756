"""A review that says what an earlier one said is not remembered twice: the earlier one is touched."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from connectors.wiring.services import services
from engine.app.memory import memory_of_run
from engine.app.research.backtest import run_backtest
from engine.domain.model_call import ModelRequest, ModelResult
from engine.domain.run import RunSpec
from engine.journal.reader import JournalReader
from engine.offline.model import OfflineModel
from engine.settings import places
from engine.settings.config import Config
from memory.record import Cause
from tests.connectors.wiring.clocks import NOON
from tests.connectors.wiring.past_runs import memories

SPEC = RunSpec(
    symbols=("ORVL",),
    first=date(2024, 4, 1),
    last=date(2024, 6, 14),
    preset="finmem",
    model="offline",
    run="reviews",
    # Too little for an order, so that there is nothing new to review.
    cash=Decimal("0.50"),
)


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Advises to hold every day, so that every review has the same to say."""
    plain = OfflineModel.answer

    async def answer(self: OfflineModel, request: ModelRequest, on_delta: Any = None) -> ModelResult:
        given = await plain(self, request, on_delta)
        if request.purpose != "immediate-reflection":
            return given
        said = {**(given.answer or {}), "action": "HOLD"}
        return replace(given, answer=said, text=json.dumps(said))

    monkeypatch.setattr(OfflineModel, "answer", answer)


@pytest.mark.slow
def test_repeated_reviews_are_stored_once(paperdesk_home: object, idle: None) -> None:
    run_backtest(services(Config(), NOON), SPEC)
    with JournalReader(places.run_journal("reviews")) as reader:
        recalled = [reader.recalled(made.key) for made in reader.decisions("reviews")]
        kept = memory_of_run(services(Config()), reader.run("reviews"))
    with kept.opened() as memory:
        reviews = [record for record in memory.records() if record.kind == "extended-reflection"]
        again = [t for record in reviews for t in memory.lifeline(record.id) if t.cause is Cause.RESTATED]
    sessions = kept.calendar.sessions(SPEC.first, SPEC.last)

    assert len({record.text for record in reviews}) == len(reviews) < len(again)
    # One review a session, but for the first, which had no past: stored, or said again.
    assert len(reviews) + len(again) == len(sessions) - 1
    assert {touch.key.split(" of ")[0] for touch in again} == {"extended-reflection"}
    assert len({touch.key for touch in again}) == len(again)
    for together in recalled:
        texts = Counter(one.memory.text for one in together if one.memory.kind == "extended-reflection")
        assert set(texts.values()) <= {1}


@pytest.mark.parametrize("preset", ["finmem-code", "investorbench-code"])
def test_the_programs_presets_run(paperdesk_home: object, idle: None, preset: str) -> None:
    done = run_backtest(services(Config(), NOON), replace(SPEC, preset=preset, last=date(2024, 5, 10), run="program"))
    assert done.result.test.decisions
    reviews = [record.text for record in memories("program") if record.kind == "extended-reflection"]
    assert (len(set(reviews)) < len(reviews)) == (preset == "finmem-code")
