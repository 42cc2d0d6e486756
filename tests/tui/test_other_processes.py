"""The open app beside other processes: their runs, their fills and a restored journal are shown as they come."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from conftest import Running, bar, shown, until
from fake_desk import FakeDesk
from test_clicks import every_click_hits
from textual.pilot import Pilot

from connectors.wiring.services import services
from engine.app.desk.notification import CycleProcess, CycleRunner, run_here
from engine.app.desk.run import run_daily
from engine.app.open_desk import OpenDesk
from engine.domain.order import Order, OrderState, Side
from engine.domain.run import RunOutcome
from engine.journal.writer import JournalWriter
from engine.messages.events import Event, Noticed, OrderMoved, RunFinished, RunStarted, StepStarted
from engine.settings import places
from engine.settings.config import Config, load_config
from tui.desk.journal_tail import Growth, JournalTail, OwnEvents
from tui.settings.app_settings import app_settings
from tui.view.state import Progress
from tui.widgets.screen_bars import ErrorBar, EventLog
from tui.widgets.table import Table
from tui.widgets.text_lines import TextPane

NOW = datetime(2025, 3, 11, 21, tzinfo=UTC)
FIRST, SECOND = date(2025, 3, 11), date(2025, 3, 12)


@pytest.fixture
def config(paperdesk_home: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    monkeypatch.setenv("PAPERDESK_DESK__PRESET", "finvision")
    return load_config(None).config


def rows(pilot: Pilot[Any], name: str) -> list[list[str]]:
    table = pilot.app.screen_stack[0].query_one(f"#{name}", Table)
    return [[cell.text for cell in row.cells] for row in table.rows]


def held(pilot: Pilot[Any]) -> set[str]:
    return {row[0] for row in rows(pilot, "watchlist") if row[5] != "-"}


def log(pilot: Pilot[Any]) -> list[str]:
    text = pilot.app.screen_stack[0].query_one(EventLog).as_text()
    return text.splitlines()


def desk_is_open(pilot: Pilot[Any]) -> bool:
    return pilot.app.bridge.snapshot().opened is not None  # type: ignore[attr-defined]


async def run_elsewhere(config: Config, session: date) -> None:
    """A daily run that this app does not publish: only the journal tells of it."""
    await asyncio.to_thread(lambda: asyncio.run(run_daily(services(config), session)))


async def test_runs_and_fills_of_another_process_come_as_they_are_written(running: Running, config: Config) -> None:
    async with running(open_desk=partial(OpenDesk, services(config))) as pilot:
        await until(pilot, lambda: desk_is_open(pilot))
        await pilot.press("escape")  # somebody is there: no tour begins by itself
        await until(pilot, lambda: "no cycle yet" in bar(pilot) and held(pilot) == set())
        for session in (FIRST, SECOND):
            await run_elsewhere(config, session)
            done = {FIRST: 1, SECOND: 2}[session]
            await until(pilot, lambda done=done: sum("run done" in line for line in log(pilot)) == done)  # type: ignore[misc]
        await shown(pilot)
        with_journal = pilot.app.bridge.snapshot().desk.books  # type: ignore[attr-defined]
        assert with_journal.session == SECOND and "no cycle yet" not in bar(pilot)
        assert set(with_journal.point.portfolio.positions) == held(pilot) != set()
        assert any(" at " in line and "trade: " in line for line in log(pilot)), "the fill is an event"
        await pilot.press("2")
        await until(
            pilot, lambda: len(pilot.app.screen.query("#decisions")) == 1 and len(rows(pilot, "decisions")) == 8
        )
        await every_click_hits(pilot, pilot.app.screen.query_one("#decisions", Table))
        await pilot.press("5")
        await until(pilot, lambda: bool(pilot.app.screen.query("#log")))
        await shown(pilot)
        every = pilot.app.screen.query_one("#log", TextPane).as_text()
        assert every.count("daily run of ") == every.count("run done") == 2, "each line of the log stands there once"


@pytest.mark.parametrize(
    "run_cycle",
    [pytest.param(run_here, marks=pytest.mark.slow), CycleProcess(partial(services, load_config(None).config))],
)
async def test_a_cycle_of_its_own_is_shown_once(running: Running, config: Config, run_cycle: CycleRunner) -> None:
    async with running(open_desk=partial(OpenDesk, services(config), run_cycle=run_cycle)) as pilot:
        await until(pilot, lambda: desk_is_open(pilot))
        await pilot.press("r")
        await until(pilot, lambda: any("run done" in line for line in log(pilot)))
        places.desk_journal("demo").touch()  # one more look at the journal, with nothing new in it
        await pilot.pause(2.5)
        told = [line.split(" ", 2)[2] for line in log(pilot)]
        assert len(told) == len(set(told)), told


@pytest.mark.parametrize("read_only", [False, True])
async def test_a_run_that_failed_elsewhere_is_offered_again_where_the_app_may_run_it(
    running: Running, tmp_path: Path, read_only: bool
) -> None:
    desk = FakeDesk(tmp_path)
    failed = RunFinished("elsewhere", desk.clock.now(), RunOutcome.FAILED, None, "the model answered with 500")
    async with running(desk=desk, settings=app_settings(read_only=read_only)) as pilot:
        await until(pilot, lambda: desk_is_open(pilot))
        with JournalWriter(desk.journal) as journal:
            journal.event(failed)
        strip = pilot.app.screen.query_one(ErrorBar)
        await until(pilot, lambda: "the model answered with 500" in strip.text)
        await until(pilot, lambda: ("ctrl+t try again" in str(strip.render())) is not read_only)


@pytest.mark.parametrize("killed", [False, True])
async def test_a_run_that_is_at_work_is_shown_at_work_until_it_ends_or_nothing_is_heard_of_it(
    running: Running, config: Config, monkeypatch: pytest.MonkeyPatch, killed: bool
) -> None:
    await run_elsewhere(config, FIRST)
    journal = places.desk_journal("demo")
    desk = OpenDesk(services(config))
    now, symbols = desk.clock.now(), tuple(desk.symbols)
    started = RunStarted(
        run="later",
        time=now,
        kind="daily",
        name="x",
        label="x",
        symbols=symbols,
        first=SECOND,
        last=SECOND,  # type: ignore[arg-type]
        sessions=1,
        steps=tuple(desk.steps),
    )
    async with running(open_desk=lambda: desk) as pilot:
        await until(pilot, lambda: desk_is_open(pilot))
        with JournalWriter(journal) as writer:
            writer.event(started)
            writer.event(StepStarted(run="later", time=now, session=SECOND, symbol=symbols[0], owner="d", step="chart"))
        await until(pilot, lambda: f"Cycle 0/{len(symbols)} {symbols[0]}" in bar(pilot))
        panes = pilot.app.bridge.snapshot().desk.panes_of(symbols[0])  # type: ignore[attr-defined]
        assert any(pane.progress is Progress.THINKING for pane in panes)
        if killed:
            monkeypatch.setattr("tui.desk.desk_follower.QUIET_SECONDS", 0.0)
            await until(
                pilot, lambda: "Cycle" not in bar(pilot) and "no sign of the running cycle" in "".join(log(pilot))
            )
            return
        with JournalWriter(journal) as writer:
            writer.event(RunFinished("later", now, "done", None, ""))  # type: ignore[arg-type]
        await until(pilot, lambda: "Cycle" not in bar(pilot))


async def test_a_restored_journal_is_read_whole(running: Running, config: Config) -> None:
    journal = places.desk_journal("demo")
    await run_elsewhere(config, FIRST)
    kept = Path(shutil.copy(journal, journal.with_name("kept.db")))
    await run_elsewhere(config, SECOND)
    async with running(open_desk=partial(OpenDesk, services(config))) as pilot:
        await until(pilot, lambda: desk_is_open(pilot))
        assert pilot.app.bridge.snapshot().desk.books.session == SECOND  # type: ignore[attr-defined]
        shutil.copy(kept, kept.with_name("again.db")).replace(journal)
        await until(pilot, lambda: pilot.app.bridge.snapshot().desk.books.session == FIRST)  # type: ignore[attr-defined]


class Looks:
    """A journal that is written, the bus of this program's own runs, and looks at both."""

    def __init__(self, journal: JournalWriter, path: Path) -> None:
        self.journal, self.bus, self.tail = journal, OwnEvents(), JournalTail(path)
        self.busy = False
        self.meanwhile: list[Event] = []
        """Events that are written and published while the journal is looked at."""

    def writes(self, *events: Event, publishes: bool = False) -> None:
        for event in events:
            self.journal.event(event)
            if publishes:
                self.bus.publish(event)

    def look(self) -> tuple[Growth, list[Event]]:
        growth = self.tail.growth(self.bus.expected(), lambda: self.busy)
        self.writes(*self.meanwhile, publishes=True)
        self.meanwhile = []
        return growth, list(self.bus.foreign(growth))


@pytest.fixture
def looks(tmp_path: Path) -> Iterator[Looks]:
    with JournalWriter(tmp_path / "desk.db") as journal:
        yield Looks(journal, tmp_path / "desk.db")


def line(text: str) -> Noticed:
    return Noticed("r", NOW, "info", text)


def test_what_this_program_has_published_is_not_read_from_the_journal_again(looks: Looks) -> None:
    looks.busy = True
    looks.writes(line("one"), line("two"))
    assert looks.look() == (Growth(), []) and looks.tail.last_event == 2, "the run is at work, and will publish them"
    for text in ("one", "two"):
        looks.bus.publish(line(text))
    looks.busy = False
    growth, foreign = looks.look()
    assert (growth.events, growth.kinds, growth.changed, foreign) == ((), ("Noticed", "Noticed"), True, [])
    assert not looks.bus.expected()

    looks.writes(line("theirs"))
    growth, foreign = looks.look()
    assert growth.events == (line("theirs"),) and foreign == [line("theirs")]

    looks.writes(line("one"), publishes=True)
    looks.writes(line("theirs"))
    growth, foreign = looks.look()
    assert growth.events == (line("one"), line("theirs")) and foreign == [line("theirs")], "the content is compared"
    assert not looks.bus.expected() and looks.look()[1] == []


def test_what_is_published_during_a_look_is_not_foreign_at_the_next(looks: Looks) -> None:
    looks.writes(line("before"), publishes=True)
    looks.meanwhile = [line("during")]
    assert looks.look()[1] == [] and looks.look()[1] == []
    assert not looks.bus.expected()


def test_what_was_published_and_never_written_hides_nothing(looks: Looks) -> None:
    looks.bus.publish(line("is decided already"))
    looks.writes(line("one"), publishes=True)
    assert looks.look()[1] == []
    looks.writes(line("the broker refused it"))
    assert looks.look()[1] == [line("the broker refused it")]


def test_books_are_read_after_orders_that_follow_the_end_of_a_run(looks: Looks) -> None:
    ended = RunFinished("r", NOW, RunOutcome.DONE, None, "")
    order = Order(id="demo-1", symbol="AAA", side=Side.BUY, session=FIRST, notional=Decimal(100))
    moved = OrderMoved("r", NOW, replace(order, state=OrderState.ACKNOWLEDGED))
    looks.busy = True
    looks.writes(moved, ended, publishes=True)
    assert not looks.look()[0].booked
    looks.busy = False
    assert not looks.look()[0].booked, "the end of the run has shown it"
    looks.busy = True
    looks.writes(ended, moved, publishes=True)
    assert not looks.look()[0].booked
    looks.busy = False
    assert looks.look()[0].booked
    assert not looks.look()[0].booked
