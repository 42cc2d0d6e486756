"""The Desk: the rows of its watchlist, the sums in its foot, and the card of the decision."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from pathlib import Path

import pytest

from connectors.wiring.services import services
from engine.app.desk.run import run_daily
from engine.domain.market import NANO
from engine.settings.config import load_config
from tests.tui.commands.conftest import SESSIONS, Run
from tests.tui.conftest import arrived, cells, drawn, opened, shown, until
from tui.charts.chart_canvas import VOLUME_BARS
from tui.settings.app_settings import AppSettings, checked_settings
from tui.settings.invocation import Invocation
from tui.widgets.agent_panes import AgentPanes
from tui.widgets.table import Table

CENT = Decimal("0.01")


async def test_the_foot_of_the_watchlist_has_the_sums_of_positions(run: Run, desk: Path) -> None:
    document = (await asyncio.to_thread(run, "positions", "--json")).json
    held = [
        (Decimal(one["quantity"]), Decimal(one["price"]), Decimal(one["average_cost"]))
        for one in document["positions"].values()
    ]
    value = sum((quantity * price for quantity, price, _ in held), Decimal(0)).quantize(CENT)
    profit = sum((quantity * (price - cost) for quantity, price, cost in held), Decimal(0))
    assert abs(Decimal(document["value"]) - Decimal(document["cash"]) - value) <= CENT
    async with opened((80, 24)) as pilot:
        watchlist = pilot.app.screen.query_one("#watchlist", Table)
        await until(pilot, lambda: bool(watchlist.rows and watchlist.border_subtitle))
        assert watchlist.border_subtitle == f"value {value:,.0f}  P&L {profit:+,.0f}"
        assert str(watchlist.border_subtitle) in drawn(pilot) and str(watchlist.border_title) in drawn(pilot)
        # The pane is as high as its rows: what is left of the column is the curve's.
        await until(pilot, lambda: watchlist.size.height == len(watchlist.rows) + 1)
        assert {row[0] for row in cells(pilot, "watchlist") if row[5] != "-"} == set(document["positions"])


async def test_a_sparkline_rises_and_falls_with_the_closes_of_thirty_sessions(desk: Path) -> None:
    async with opened((200, 60)) as pilot:
        await until(pilot, lambda: {len(row[3]) for row in cells(pilot, "watchlist")} == {10})
        market = pilot.app.bridge.snapshot().market  # type: ignore[attr-defined]
        for symbol, *rest in cells(pilot, "watchlist"):
            bars = market.as_of.bars(symbol, 30)
            closes = [bars.close[row] for row in range(2, 30, 3)]
            levels = [VOLUME_BARS.index(char) for char in rest[2]]
            assert len(levels) == 10 and min(levels) == 1 and max(levels) == 8
            for (level, close), (other, later) in zip(
                zip(levels, closes, strict=True), zip(levels[1:], closes[1:], strict=True), strict=False
            ):
                assert (other - level) * (later - close) >= 0, symbol
            place = (bars.close[-1] - bars.low[-1]) / (bars.high[-1] - bars.low[-1])
            assert abs(rest[3].index("┃") - 6 * place) <= 0.5 and len(rest[3]) == 7
            assert Decimal(rest[0].replace(",", "")) == (Decimal(bars.close[-1]) / NANO).quantize(CENT)


async def test_the_columns_are_those_of_the_configuration(
    run: Run, desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAPERDESK_APP__WATCHLIST", "profit,last")
    settings = checked_settings(Invocation())
    assert settings.watchlist == ("profit", "last")
    async with opened((80, 24), settings=AppSettings(watchlist=settings.watchlist)) as pilot:
        await until(pilot, lambda: bool(cells(pilot, "watchlist")))
        assert pilot.app.screen.query_one("#watchlist", Table).render_line(0).text.split() == ["SYM", "P&L", "LAST"]
    monkeypatch.setenv("PAPERDESK_APP__WATCHLIST", "profit,price")
    said = await asyncio.to_thread(run, "positions")
    assert said.code == 78 and "app.watchlist" in said.err


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (200, 60)])
async def test_the_first_rows_beside_the_chart_are_the_card_of_the_decision(
    run: Run, desk: Path, size: tuple[int, int]
) -> None:
    symbol = "ORVL"
    (made,) = (await asyncio.to_thread(run, "why", symbol, str(SESSIONS[1]), "--json")).json["decisions"]
    async with opened(size) as pilot:
        screen = pilot.app.screen
        agents = screen.query_one(AgentPanes)
        await pilot.press("left_curly_bracket")
        await arrived(pilot)
        screen.show_symbol(symbol)  # type: ignore[attr-defined]
        await until(pilot, lambda: agents.as_text().startswith(symbol), 30)
        await shown(pilot)
        first = [agents.render_line(y).text.strip() for y in range(6)]
        assert first[0].startswith(f"{symbol}  {SESSIONS[1]}  {made['action']}"), first
        labels = {line.split("  ")[0].split(":")[0] for line in first}
        more = labels & {"For", "Against", "For a rise", "For a fall", "For holding"}
        assert {"Why"} < labels and (more or agents.text_width < 60), "a narrow card has the first reason alone"
        # Everything is in sight without scrolling, and no word is cut.
        assert agents.scroll_offset.y == 0 and not any(line.endswith("…") for line in first)


async def test_every_owner_with_a_book_of_its_own_has_its_card(
    run: Run, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAPERDESK_DESK__PRESET", "tradinggpt")
    monkeypatch.setenv("PAPERDESK_DESK__SYMBOLS", "TMBK")
    decided = run_daily(services(load_config(None).config), SESSIONS[0])
    await asyncio.to_thread(asyncio.run, decided)
    made = (await asyncio.to_thread(run, "why", "TMBK", str(SESSIONS[0]), "--json")).json["decisions"]
    assert len(made) == 3
    async with opened() as pilot:
        agents = pilot.app.screen.query_one(AgentPanes)
        heads = [f"TMBK  {SESSIONS[0]}  {one['action']}" for one in made]
        await until(pilot, lambda: all(f"as {one['owner']}" in agents.as_text() for one in made), 30)
        assert all(head in agents.as_text() for head in heads)
