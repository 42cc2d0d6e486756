"""Pictures of the arena's agents carry day numbers: dates would bring up a market that a model knows."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connectors.charts.painter import MatplotlibPainter
from engine.arena.agents import TraderView
from engine.domain.chart import ChartSpec
from engine.domain.model_call import ModelRequest, ModelResult
from engine.journal.reader import JournalReader
from engine.offline.model import OfflineModel
from engine.settings import places
from tests.tui.commands.conftest import Run


def test_the_portfolio_agents_pictures_have_no_dates(fresh: Path, run: Run) -> None:
    window = ("--symbols", "ORVL,HLXM", "--from", "2025-03-03", "--to", "2025-03-06")
    assert run("backtest", "--preset", "arena", *window, "--run", "mine", "--json").code == 0
    with JournalReader(places.run_journal("mine")) as journal:
        charts = [chart for one in journal.answers(run="mine") for chart in one.charts]
    assert len(charts) > 4
    for chart in charts:
        assert chart.sessions == tuple(f"day {number}" for number in range(1, len(chart.sessions) + 1))


def test_the_pictures_of_the_closed_market_have_no_dates(
    fresh: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[ChartSpec] = []
    answer = OfflineModel.answer

    async def noted(
        model: OfflineModel, request: ModelRequest, on_delta: Callable[[str], None] | None = None
    ) -> ModelResult:
        if isinstance(request.view, TraderView):
            shown.extend(request.view.charts)
        return await answer(model, request, on_delta)

    monkeypatch.setattr(OfflineModel, "answer", noted)
    document = run("arena", "--agents", "duel", "--days", "3", "--json").json
    assert shown and {bool(chart.candles) for chart in shown} == {True, False}
    _is_the_record_of_charts(document, [chart for chart in shown if chart.kind == "record"][-1])
    _has_own_volume(document, [chart for chart in shown if chart.candles is not None][-1])
    for chart in shown:
        days = [int(re.fullmatch(r"day (-?\d+)", session)[1]) for session in chart.sessions]  # type: ignore[index]
        assert days == list(range(days[0], days[0] + len(days))) and days[-1] <= 3
    assert asyncio.run(MatplotlibPainter().paint(shown[-1]))


def _is_the_record_of_charts(document: Any, record: ChartSpec) -> None:
    """The wealth of the one with charts, of the beginning and of the closes before the last day, and its trades."""
    (agent,) = [one for one in document["agents"] if one["name"] == "Charts"]
    assert record.lines[0].values == pytest.approx([float(one) for one in agent["equity"][:-1]])
    money = {"buyer": [0.0] * 3, "seller": [0.0] * 3}
    for one in document["trades"]:
        for side, of_day in money.items():
            if one[side] == "Charts" and one["day"] < 3:
                of_day[one["day"]] += float(one["price"]) * one["quantity"]
    bought, sold = (panel.bars for panel in record.panels)
    assert bought == pytest.approx(money["buyer"]) and sold == pytest.approx([-one for one in money["seller"]])
    assert any(bought) and any(sold)


def _has_own_volume(document: Any, candles: ChartSpec) -> None:
    """The shares of a stock that the one with charts bought, less those that it sold, by day."""
    own = dict.fromkeys(candles.sessions, 0)
    for one in document["trades"]:
        if one["stock"] == candles.symbol and one["day"] < 3:
            own[f"day {one['day']}"] += one["quantity"] * ((one["buyer"] == "Charts") - (one["seller"] == "Charts"))
    assert candles.panels[-1].bars == tuple(own.values())
