"""The arena on the Lab: a recorded one is shown day by day, as its document has it, and plays a new one."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from fake_desk import FakeDesk
from textual.pilot import Pilot

from connectors.charts.painter import MatplotlibPainter
from engine.app.desk.demo_history import is_demo
from engine.arena.agents import TraderView
from engine.domain.chart import ChartSpec
from engine.domain.model_call import ModelRequest, ModelResult
from engine.journal.reader import JournalReader
from engine.offline.model import OfflineModel
from engine.reports.documents.runs import StoredKind
from engine.settings import places
from tests.tui.commands.conftest import Run
from tests.tui.conftest import Running, cells, opened, shown, until
from tui.desk.readings import Readings
from tui.screens.arena import DEMO, ArenaScreen
from tui.screens.ask import AskScreen
from tui.view.arena_day import ArenaDay
from tui.widgets.navigation_bars import Hints, TimeBar
from tui.widgets.text_lines import TextPane


def day(pilot: Pilot[Any]) -> ArenaDay:
    """The day that is shown."""
    found: ArenaDay = pilot.app.screen.day  # type: ignore[attr-defined]
    return found


TABLE = "\n".join(
    f'[[agents]]\nname = "{name}"\n{seat}'
    for name, seat in (
        ("Amy", ""),
        ("Fin", 'preset = "finvision-no-reflection"'),
        *((rule.title(), f'rule = "{rule}"') for rule in ("momentum", "value", "market-maker", "zero-intelligence")),
    )
)


async def test_days_of_a_recorded_arena(run: Run, desk: Path, tmp_path: Path) -> None:
    (tmp_path / "table.toml").write_text(TABLE)
    arena = ("arena", "--preset", "paper", "--agents", str(tmp_path / "table.toml"), "--days", "6", "--seed", "3")
    document = (await asyncio.to_thread(run, *arena, "--run", "one", "--json")).json  # it has a loop of its own
    assert sum(one["quantity"] for one in document["books"]) > 0
    async with opened() as pilot:
        await pilot.press("4", "A")
        await until(pilot, lambda: pilot.app.screen.day is not None)  # type: ignore[attr-defined]
        last = day(pilot).agents()
        bar = pilot.app.screen.query_one(TimeBar)
        assert bar.place is None and "present" not in str(pilot.app.screen.query_one(Hints).render())
        await pilot.press("left_curly_bracket", "left_curly_bracket")
        assert (day(pilot).number, day(pilot).round) == (4, None)
        assert bar.display and "PAST one" in str(bar.render()) and "close of day 4" in str(bar.render())
        assert "present" in str(pilot.app.screen.query_one(Hints).render())
        await until(pilot, lambda: bool(cells(pilot, "tape")))
        tape = cells(pilot, "tape")
        book = cells(pilot, "orders-open")
        await steps_of_a_day(pilot, document)
        await pilot.press(*["left_curly_bracket"] * 6)
        assert day(pilot).number == 0
        begun = day(pilot).agents()
        await pilot.press("full_stop")
        await until(pilot, lambda: day(pilot).number == 6)
        await until(pilot, lambda: not bar.display)
        await pilot.press("left_curly_bracket", "backslash")
        assert day(pilot).number == 6 and bar.place is None
        # A desk at the table says why; the chat is one key away.
        place = [one.name for one in day(pilot).agents()].index("Fin")
        await pilot.press("tab", *["down"] * place, "v", "right_square_bracket")
        said = pilot.app.screen.query_one("#chat", TextPane).as_text()
        assert said.startswith("Fin\n") and "day 6  C  desk" in said and "  decision: " in said
        # d asks why: the agent's decisions of the day alone, with the answers whole; a rule has none.
        await pilot.press("d")
        page = pilot.app.screen.text.plain  # type: ignore[attr-defined]
        assert "day 6  A  desk" in page and "day 5" not in page and "Trades of the day" in page
        await pilot.press("escape", "up" if place else "down", "d")
        assert "decision: " not in pilot.app.screen.text.plain  # type: ignore[attr-defined]
        await pilot.press("escape")
        # A low screen leaves out what could not be drawn.
        await pilot.resize_terminal(80, 24)
        shown = {name for name in ArenaScreen.PANES if pilot.app.screen.query_one(f"#{name}").display}
        assert shown == {"quoted", "traders", "tape", "chat", "arenas"}
    assert {one.name: (str(one.cash), dict(one.shares)) for one in last} == {
        one["name"]: (one["cash"], one["holdings"]) for one in document["agents"]
    }
    assert {one.wealth for one in begun} == {Decimal(one["equity"][0]) for one in document["agents"]}
    assert len(tape) == len([one for one in document["trades"] if one["day"] == 4])
    assert len(book) == len([one for one in document["books"] if one["day"] == 4])


async def steps_of_a_day(pilot: Pilot[Any], document: Any) -> None:
    """From the close of day 4 back to that of day 3, a round with trades at a time: nothing of what came later."""
    trades = [one for one in document["trades"] if one["day"] == 4]
    rounds = sorted({one["round"] for one in trades})
    closes = {one["name"]: one for one in document["agents"]}
    assert len(rounds) > 1
    for last in reversed(rounds):
        await pilot.press("less_than_sign")
        assert (day(pilot).number, day(pilot).round) == (4, last)
        assert len(cells(pilot, "tape")) == sum(one["round"] <= last for one in trades)
        assert {one.wealth for one in day(pilot).agents()} == {Decimal(one["equity"][3]) for one in closes.values()}
        assert all(len(prices) <= 4 for prices in day(pilot).prices().values())
        assert all(one["day"] <= 3 for one in day(pilot).messages())
        assert all(one["day"] == 3 for one in day(pilot).book())
    cash = sum(one.cash for one in day(pilot).agents())
    await pilot.press("less_than_sign")
    assert (day(pilot).number, day(pilot).round) == (3, None)
    costs = sum(Decimal(one["cost_buyer"]) + Decimal(one["cost_seller"]) for one in trades if one["round"] == rounds[0])
    assert sum(one.cash for one in day(pilot).agents()) == cash + costs
    await pilot.press("greater_than_sign", "right_curly_bracket")
    assert (day(pilot).number, day(pilot).round) == (4, None)


@pytest.mark.slow
async def test_a_new_arena_is_played_beside_the_app(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.app.open_desk.is_demo", is_demo)
    async with opened() as pilot:
        # Without an arena the first is asked for at once, on a demo desk the one that costs nothing.
        await pilot.press("4", "A")
        await until(pilot, lambda: isinstance(pilot.app.screen, AskScreen))
        await pilot.press(*["backspace"] * len(DEMO))
        await pilot.press(*"ssw controls many 7", "enter")
        await pilot.press(*["backspace"] * len("many 7"), *"2 7", "enter")
        await until(pilot, lambda: getattr(pilot.app.screen, "day", None) and day(pilot).document["preset"] == "ssw")
        assert day(pilot).count == 2


@pytest.mark.slow
async def test_an_arena_that_was_left_before_its_end_gives_way_to_another(run: Run, running: Running) -> None:
    played = ("arena", "--agents", "controls", "--days", "2")
    for name in ("earlier", "left"):
        await asyncio.to_thread(run, *played, "--run", name)
    record = places.arena_file("left")
    record.write_text(json.dumps({**json.loads(record.read_text()), "document": None}))
    desk = FakeDesk(record.parent)
    async with running(desk=desk) as pilot:
        await pilot.press("4", "A")
        await until(pilot, lambda: pilot.app.screen.day is not None)  # type: ignore[attr-defined]
        assert day(pilot).document["run"] == "earlier"
        await pilot.press("A")
        assert pilot.app.screen.query_one("#results").display


async def test_the_latest_arena_comes_too_late_where_another_was_opened_and_none_is_asked_for_elsewhere(
    run: Run, fresh: Path, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, listed, latest = Readings.run, Readings.runs, asyncio.Event()

    async def run_later(self: Readings, name: str, *others: str) -> Any:
        if name == "later":
            await latest.wait()
        return await read(self, name, *others)

    async def list_later(self: Readings, kind: StoredKind) -> Any:
        await latest.wait()
        return await listed(self, kind)

    folder = places.arena_file("later").parent
    places.make_folder(folder)
    with monkeypatch.context() as patch:
        patch.setattr(Readings, "runs", list_later)
        async with running(desk=FakeDesk(folder)) as pilot:
            await pilot.press("4", "A", "1")
            latest.set()
            await shown(pilot)
            assert not isinstance(pilot.app.screen, AskScreen)
    latest.clear()
    for name in ("earlier", "later"):
        await asyncio.to_thread(run, "arena", "--agents", "controls", "--days", "2", "--run", name)
    monkeypatch.setattr(Readings, "run", run_later)
    async with running(desk=FakeDesk(folder)) as pilot:
        await pilot.press("4", "A")
        await until(pilot, lambda: len(cells(pilot, "arenas")) == 2)
        await pilot.press("down", "enter")
        await until(pilot, lambda: pilot.app.screen.day is not None)  # type: ignore[attr-defined]
        latest.set()
        await shown(pilot)
        assert day(pilot).document["run"] == "earlier"


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
