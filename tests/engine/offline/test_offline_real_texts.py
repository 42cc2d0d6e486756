"""Real news and filings: told apart by weight."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import date
from pathlib import Path

import pytest

from engine.agents.decision import EvidenceView
from engine.agents.intelligence import IntelligenceItem, IntelligenceView, answer_with
from engine.offline import intelligence
from tests.engine.agents import evidence_samples as some


def real_items(real_data: Path, symbol: str) -> dict[date, list[IntelligenceItem]]:
    """News and filings of a symbol by day, filings first."""
    days: dict[date, list[IntelligenceItem]] = defaultdict(list)
    for folder in ("filings", "news"):
        for n, line in enumerate((real_data / folder / f"{symbol}.jsonl").read_text(encoding="utf-8").splitlines()):
            row = json.loads(line)
            day = date.fromisoformat(row["date"])
            kind = row.get("form", "news")
            days[day].append(IntelligenceItem(f"{kind}-{n}", kind, day, row["summary"]))
    return days


@pytest.mark.parametrize("symbol", ["MSFT", "JNJ", "HON", "UVV"])
async def test_real_filings_and_news_are_told_apart_by_weight(real_data: Path, symbol: str) -> None:
    weights: dict[str, list[int]] = defaultdict(list)
    with_figures = []
    for day, items in sorted(real_items(real_data, symbol).items()):
        if day > date(2021, 3, 1):
            break
        view = IntelligenceView(symbol=symbol, session=day, owner="desk", items=tuple(items))
        told = answer_with(view.types).model_validate(intelligence.judge(view))
        told.check(view)
        assert not told.missing(view)
        kinds = {item.number: item.kind for item in view.items}
        for item in told.items:
            weights[kinds[item.id]].append(item.weight)
            if kinds[item.id] != "news":
                assert item.concerns_company
                with_figures.append(any(c.isdigit() for c in item.summary))
                assert item.horizon == ("long" if kinds[item.id] == "10-K" else "medium")
    # One annual report of Honeywell's says nothing for or against it that has a figure.
    assert sum(with_figures) >= len(with_figures) - 1 >= 2
    assert min(weights["10-K"]) >= 8 and min(weights["10-Q"]) >= 6
    assert sum(weights["news"]) / len(weights["news"]) < 5
    assert len(set(weights["news"])) >= 5


def test_an_evidence_view_is_a_decision_view_with_more() -> None:
    assert some.evidence_view().summary() == "no reports; 0 outcomes; no intelligence; 0 tools, 0 memories"
    assert "intelligence, past, low level" in EvidenceView.summary(some.evidence_view(**some.FULL))
