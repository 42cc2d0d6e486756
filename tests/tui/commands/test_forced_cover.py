"""A forced cover, from the backtest to what the commands say of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from connectors.wiring.services import services
from engine.app.research import backtest
from engine.domain.model_call import ModelRequest, ModelResult
from engine.domain.run import DataSpec, RunSpec
from engine.offline.model import OfflineModel
from engine.settings.config import load_config
from tests.engine.desks import bars, market_of, trade
from tests.tui.commands.conftest import FEW_AGENTS, Run

PRESET = """
extends = "finvision"
name = "shorting"
[sizing]
allow_short = {short}
cash_floor = 0
[sizing.sell]
"reversal" = {{ smallest = 100, largest = 100 }}
"""


async def sells(
    self: OfflineModel, request: ModelRequest, on_delta: Callable[[str], None] | None = None
) -> ModelResult:
    said = trade(request, "SELL", 10, "reversal") if request.purpose == "decision" else None
    return ModelResult(model="offline", answer=said, text="")


@pytest.mark.parametrize("short", [True, False])
def test_a_forced_cover_is_on_the_trail_and_a_refused_short_on_the_decision(
    short: bool, run: Run, fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OfflineModel, "answer", sells)
    own = tmp_path / "shorting.toml"
    own.write_text(PRESET.format(short=str(short).lower()))
    every = services(load_config(None, environ=FEW_AGENTS).config)
    calendar = every.calendar_for("ORVL")
    days = calendar.sessions(date(2025, 3, 3), date(2025, 3, 20))
    market = market_of({"ORVL": bars("ORVL", days, [100] * 6 + [130] * (len(days) - 6))})
    market = replace(market, calendars={"ORVL": calendar})
    spec = RunSpec(
        symbols=("ORVL",),
        first=days[4],
        last=days[9],
        preset=str(own),
        data=DataSpec(None, 7),
        run="short",
        model="offline",
    )
    report = backtest.run_backtest(every, spec, market=market, baselines=())
    assert min(point.value for point in report.result.test.equity) > 0
    document = run("why", "ORVL", str(days[6]), "--run", "short", "--json").json["decisions"][0]
    first = run("why", "ORVL", str(days[3]), "--run", "short").out
    if not short:
        assert not report.result.test.fills
        assert "nothing is held to be sold" in first
        return
    (cover,) = document["undecided_trades"]
    assert (cover["side"], cover["session"]) == ("BUY", str(days[7]))
    assert cover["reason"].startswith("forced cover")
    assert {flow.kind for flow in report.result.test.cash_flows} == {"borrow cost"}
    assert all(flow.amount < Decimal(0) for flow in report.result.test.cash_flows)
    assert "Not decided" in run("why", "ORVL", str(days[6]), "--run", "short").out
