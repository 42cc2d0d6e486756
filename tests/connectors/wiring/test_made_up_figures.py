"""Every decision is given figures to quote, and rules make none up."""

from __future__ import annotations

import re
from datetime import date

import pytest

from connectors.wiring.services import services
from engine.app.research.backtest import run_backtest
from engine.domain.run import DataSpec, RunSpec
from engine.journal.reader import JournalReader
from engine.reports.documents.backtest import document
from engine.settings import places
from engine.settings.config import Config

DECIDING = {
    "finvision": "decision",
    "desk": "evidence-decision",
    "finagent": "whole-decision",
    "finmem": "immediate-reflection",
}


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
