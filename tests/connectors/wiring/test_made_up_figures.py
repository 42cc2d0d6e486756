"""A figure that an agent makes up is no source for the decision, and every decision is given figures to quote."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from connectors.wiring.services import services
from engine.app.research.backtest import run_backtest
from engine.domain.model_call import ModelRequest, ModelResult
from engine.domain.run import DataSpec, RunSpec
from engine.journal.reader import JournalReader
from engine.offline.model import OfflineModel
from engine.reports.documents.backtest import document
from engine.reports.summary import totals
from engine.settings import places
from engine.settings.config import Config

DECIDING = {
    "finvision": "decision",
    "desk": "evidence-decision",
    "finagent": "whole-decision",
    "finmem": "immediate-reflection",
}


def target_of(session: date) -> str:
    """A price that stands nowhere."""
    return f"76{session.day}.32"


@pytest.fixture
def inventor(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model like the rules, except that the first agent makes up a price target, and the decision believes it."""
    rules = OfflineModel.answer

    async def answer(
        self: OfflineModel, request: ModelRequest, on_delta: Callable[[str], None] | None = None
    ) -> ModelResult:
        result = await rules(self, request, on_delta)
        made: dict[str, Any] = dict(result.answer or {})
        target = target_of(request.session)
        if request.purpose == "news":
            made["reason"] = f"Analysts aim at {target}."
        if request.purpose == "market-intelligence":
            made["summary"] = f"Analysts aim at {target}."
        if request.purpose in DECIDING.values():
            made["explanation"] = f"The fair value is {target}."
        return replace(result, answer=made)

    monkeypatch.setattr(OfflineModel, "answer", answer)
    monkeypatch.setattr(OfflineModel, "spec", "inventor")


@pytest.mark.parametrize("preset", ["finvision", "desk", "finagent"])
@pytest.mark.usefixtures("inventor")
def test_a_made_up_figure_in_a_report_is_no_source(preset: str) -> None:
    spec = RunSpec(
        symbols=("TMBK",), first=date(2024, 2, 13), last=date(2024, 2, 15), preset=preset, data=DataSpec(None, 7)
    )
    report = run_backtest(services(Config()), spec)
    made = report.result.test.decisions
    assert made
    found = [
        one for one in made if any(f.startswith(f"{target_of(one.key.session)} (") for f in one.unresolved_figures)
    ]
    assert found
    assert all(one.unresolved_figures[0] == target_of(one.key.session) for one in found)
    printed = document(report)
    assert printed["unresolved_figures"] == sum(len(one.unresolved_figures) for one in made) >= 2 * len(found)
    assert any(name == "Figures" and "not found in the inputs" in text for name, text in totals(printed))


@pytest.mark.parametrize("preset", DECIDING)
def test_every_decision_is_given_figures_and_rules_make_none_up(preset: str) -> None:
    spec = RunSpec(
        symbols=("TMBK",), first=date(2024, 2, 13), last=date(2024, 2, 15), preset=preset, data=DataSpec(None, 7)
    )
    report = run_backtest(services(Config()), spec)
    assert document(report)["unresolved_figures"] == 0
    with JournalReader(places.run_journal(report.result.spec.run)) as reader:
        answers = [one for made in report.result.test.decisions for one in reader.answers(made.key)]
    asked = [one.messages[0].text for one in answers if one.agent == DECIDING[preset]]
    assert len(asked) == len(report.result.test.decisions) > 0
    for text in asked:
        for figure in (r"close: \d+\.\d\d", r"RSI, 14 sessions: \d+\.\d", r"\(ATR\), 14 sessions: \d+\.\d\d"):
            assert re.search(figure, text), figure
        for span in ("1 session", "5 sessions", "20 sessions"):
            assert re.search(rf"over {span} up to now: [+-]\d+\.\d\d%", text), span
