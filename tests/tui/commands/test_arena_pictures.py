"""Pictures of the arena's agents carry day numbers: dates would bring up a market that a model knows."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from connectors.charts.painter import MatplotlibPainter
from engine import places
from engine.arena.agents import TraderView
from engine.domain.chart import ChartSpec
from engine.domain.model_call import ModelRequest, ModelResult
from engine.journal.reader import JournalReader
from engine.offline.model import OfflineModel
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
    assert run("arena", "--agents", "duel", "--days", "3", "--json").code == 0
    assert shown and {bool(chart.candles) for chart in shown} == {True, False}
    for chart in shown:
        days = [int(re.fullmatch(r"day (-?\d+)", session)[1]) for session in chart.sessions]  # type: ignore[index]
        assert days == list(range(days[0], days[0] + len(days))) and days[-1] <= 3
    assert asyncio.run(MatplotlibPainter().paint(shown[-1]))
