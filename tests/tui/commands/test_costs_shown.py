"""The app shows the fills and costs in effect: in the status bar, in the backtest's form and beside its progress."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from textual.pilot import Pilot
from textual.widgets import Static

from connectors.wiring.services import services
from engine.app.open_desk import OpenDesk
from engine.settings import places
from engine.settings.config import load_config
from tests.tui.commands.conftest import OpenBroker
from tests.tui.conftest import opened, shown, until
from tui.widgets.run_results import RunProgress
from tui.widgets.screen_bars import StatusBar


def status_of(pilot: Pilot[Any]) -> str:
    return pilot.app.screen.query_one(StatusBar).render_line(0).text


def text_of(pilot: Pilot[Any], kind: type[Static], name: str) -> str:
    return " ".join(str(pilot.app.screen.query_one(f"#{name}", kind).render()).split())


async def test_the_costs_of_the_configuration_are_shown(fresh: Path) -> None:
    places.config_file().write_text(
        '[desk]\npreset = "finvision-no-reflection"\ncash = "25000"\nsymbols = ["ORVL"]\n'
        '[execution]\nslippage_bp = "9"\ncommission = "0.002"\ncommission_per_order = "1.5"\n'
    )
    async with opened((160, 40)) as pilot:
        bridge = pilot.app.bridge  # type: ignore[attr-defined]
        await shown(pilot)
        assert "Fills next open, 9 bp, 0.2 %" in status_of(pilot)
        await pilot.press("7")
        await until(pilot, lambda: text_of(pilot, Static, "costs") == "next open, 9 bp, 0.2 %")
        await pilot.press("ctrl+r")
        await until(pilot, lambda: bool(bridge.snapshot().backtests))
        told = "fills at the next open, slippage 9 bp, commission 0.2 %, 1.5 an order, cash 25,000.00, cash floor 10 %"
        await until(pilot, lambda: told in text_of(pilot, RunProgress, "progress"))


def test_an_account_at_a_broker_has_costs_of_its_own(open_broker: OpenBroker) -> None:
    open_broker(datetime(2025, 3, 11, 21, tzinfo=UTC), through=date(2025, 3, 11), symbols=["ORVL"])
    desk = OpenDesk(services(load_config(places.config_file()).config))
    assert (desk.costs, desk.default_costs) == ("broker's", "next open, 5 bp, 0 %")
