"""Real news and filings: told apart by weight, and read fast enough for years of sessions."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from engine.agents.evidence_decision import EvidenceView
from engine.agents.market_intelligence import (
    INTELLIGENCE,
    IntelligenceItem,
    IntelligenceView,
    MarketIntelligence,
)
from engine.agents.past_intelligence import PastView
from engine.domain.recollection import LAYERS
from engine.market.moves import SessionMove
from engine.offline import evidence, intelligence, moves, past, review
from engine.offline.model import OfflineModel
from tests.engine.agents import evidence_samples as some
from tests.engine.agents.samples import Desk, outcome
from tests.engine.offline.test_offline_model import UP


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
        told = MarketIntelligence.model_validate(intelligence.judge(view))
        told.check(view)
        kinds = {item.id: item.kind for item in view.items}
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


async def test_a_decision_with_ten_items_and_all_agents_costs_a_few_milliseconds(real_data: Path) -> None:
    days = real_items(real_data, "MSFT")
    day = next(day for day, items in sorted(days.items()) if len(items) >= 11)
    view = IntelligenceView(
        symbol="MSFT", session=day, owner="desk", items=tuple(days[day][:11]), prices=(SessionMove(day, 214.1, 0.011),)
    )
    model = Desk(OfflineModel())
    told = (await model.asker.ask(INTELLIGENCE, view)).answer
    assert told is not None
    memories = tuple(
        some.recollection(f"m{n}", item.text, LAYERS[n % 4], item.kind)
        for n, item in enumerate(item for later in list(days.values())[5:9] for item in later[:5])
    )
    low = some.low_level_view(intelligence=told)
    high = some.high_level_view(*(outcome(n) for n in range(10, 1, -1)))
    spent = []
    for attempt in range(5):
        # Other texts every time, so that nothing comes from what was read before.
        new = tuple(replace(memory, text=f"{attempt} {memory.text}") for memory in memories)
        items = tuple(replace(item, text=f"{attempt} {item.text}") for item in view.items)
        begun = time.perf_counter()
        intelligence.judge(replace(view, items=items))
        past.summarize(PastView("MSFT", day, "desk", new))
        moves.reflect(low)
        review.on_decisions(high)
        evidence.decide(some.evidence_view(intelligence=told, chart=UP, recollections=new, tools=(some.TOOL,) * 3))
        spent.append(time.perf_counter() - begun)
    assert min(spent) < 0.03, f"{min(spent) * 1000:.1f} ms"


def test_an_evidence_view_is_a_decision_view_with_more() -> None:
    assert some.evidence_view().summary() == "no reports; 0 outcomes; no intelligence; 0 tools, 0 memories"
    assert "intelligence, past, low level" in EvidenceView.summary(some.evidence_view(**some.FULL))
