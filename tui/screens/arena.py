"""Arena: a closed market by days and their rounds, with prices, wealth, tape, book, chat and strategies; begun and
played here."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Horizontal, Vertical
from textual.content import Content
from textual.widget import Widget

from engine.errors import PaperdeskError
from engine.reports.documents.runs import StoredKind
from engine.reports.tables import ARENA_ORDERS, TAPE
from tui.charts.plotting import PlotData
from tui.desk.twins import report_action
from tui.playback.pace import Pace
from tui.screens.ask import AskScreen
from tui.screens.frame import TALL, FramedScreen, Layout
from tui.screens.reading import ReadingScreen
from tui.settings.keys import ARENA, bindings
from tui.shell.subcommand import run_command
from tui.view.arena_day import ArenaDay, Document, arena_moments
from tui.view.snapshot import Place, Snapshot
from tui.widgets import arena_tables
from tui.widgets.border_text import set_subtitle
from tui.widgets.clickable import clickable
from tui.widgets.pane_text import TextPane
from tui.widgets.plot import CurvePlot
from tui.widgets.table import Table, rows_of

PARTS = ("chat", "strategies")
DEFAULT = "paper controls 60 7"
DAYS_A_SECOND = 2
"""The speed that play begins with: a day is more to read than an event."""
NONE = "none yet: ctrl+r plays one"
DEMO = ("paper", "nine", 20, 7)
"""The arena that a demo desk plays where none was played yet: its personas are answered by rules and cost nothing."""


def arena_of_text(text: str) -> tuple[str, str, int, int]:
    """Preset, table, days and seed as they are typed. Raises ValueError that says how."""
    words = text.split()
    if len(words) != 4 or not all(word.isdecimal() for word in words[2:]) or int(words[2]) < 1:
        raise ValueError(f"write preset, table, days and seed, such as: {DEFAULT}")
    return words[0], words[1], int(words[2]), int(words[3])


def day_of_text(text: str, count: int) -> int:
    """The number of a day of so many as it is typed. Raises ValueError that says how."""
    if not text.strip().isdecimal() or int(text) > count:
        raise ValueError(f"{text.strip() or 'nothing'} is no day: write a number from 0, the opening, to {count}")
    return int(text)


class ArenaScreen(FramedScreen):
    """One arena at a moment; < > { } . and \\ go through its rounds and days."""

    MODE = ARENA
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(ARENA)]
    TABLE = "traders"
    PANES = ("quoted", "wealth", "traders", "tape", "orders-open", "chat", "arenas")

    def __init__(self) -> None:
        super().__init__()
        self._moments: Sequence[ArenaDay] = ()
        self._here = 0
        """The moment that is shown."""
        self._stock = 0
        self._part = PARTS[0]
        self._pace = Pace()
        """In days a second."""
        self._listed = False

    @property
    def day(self) -> ArenaDay | None:
        """The moment that is shown; None without an arena."""
        return self._moments[self._here] if self._moments else None

    def compose_body(self) -> ComposeResult:
        """Mount curves, tables and texts."""
        with Horizontal(id="arena"):
            with Vertical(classes="column half"):
                yield CurvePlot(id="quoted", classes="pane", point="day")
                yield CurvePlot(id="wealth", classes="pane", point="day")
                yield Table(arena_tables.AGENTS, title="Agents", empty="no arena yet", id="traders", classes="pane")
            with Vertical(classes="column half"):
                with Container(id="trading", classes="column"):
                    yield Table(TAPE, title="Tape", empty="no trade on this day", id="tape", classes="pane")
                    yield Table(
                        ARENA_ORDERS, title="Open at the close", empty="no order", id="orders-open", classes="pane"
                    )
                yield TextPane(title="Chat", id="chat", classes="pane")
                yield Table(
                    arena_tables.ARENAS,
                    title="Arenas",
                    empty=self._none,
                    id="arenas",
                    classes="pane",
                )

    def on_mount(self) -> None:
        """Focus the list of arenas."""
        self.query_one("#quoted").border_title, self.query_one("#wealth").border_title = "Price", "Wealth"
        self.focus_pane("arenas")

    def has_room_for(self, pane: Widget) -> bool:
        """True for all but the second curves and the book of a low screen, which could not be drawn."""
        return pane.id not in ("wealth", "orders-open") or self.size.height >= TALL

    def show_view(self, view: Snapshot) -> None:
        """Show a snapshot; before its end the arena is the recorded history that is shown."""
        super().show_view(replace(view, place=self._place() or view.place))

    @property
    def _none(self) -> str:
        """The words where no arena was played: with the key that plays one, unless nothing may be changed."""
        return "none yet" if self.desk_app.settings.read_only else NONE

    def _place(self) -> Place | None:
        day = self.day
        if day is None or (self._here == len(self._moments) - 1 and not self._pace.speed):
            return None
        return Place(
            name=day.document["run"],
            number=self._here + 1,
            count=len(self._moments),
            session=None,
            text=day.moment,
            speed=self._pace.speed,
        )

    def show_body(self, view: Snapshot) -> None:
        """List the arenas once the desk is open; go on where it plays."""
        if view.opened is not None and not self._listed and self.form is not Layout.LINE:  # it may play one: unseen
            self._listed = True
            self._list()
        if self.day is not None and (due := self._pace.due(time.monotonic())):
            if self.day.closed + due >= self.day.count:
                self._pace.stop()
            self._go_to_close(self.day.closed + due)

    @work(group="list", exclusive=True, exit_on_error=False)
    async def _list(self) -> None:
        opened = self._view.opened
        assert opened is not None
        names = [run.id for run in await opened.ask.runs(StoredKind.ARENA)]
        self.query_one("#arenas", Table).show(rows_of(arena_tables.ARENAS, names, str), self._none)
        if self.day is not None:
            return
        trouble = ""
        for name in names:
            try:
                self._show(await opened.ask.run(name))
                return
            except PaperdeskError as error:  # one that was left before its end: an earlier one may be there
                trouble = trouble or str(error)
        if opened.is_demo and not self.desk_app.settings.read_only:
            self._play(*DEMO, by_itself=True)
        elif trouble:
            self.notify(trouble, markup=False, severity="error", timeout=5)

    @on(Table.Opened, "#arenas")
    def _opened(self, event: Table.Opened) -> None:
        self._open(event.key)

    @work(exclusive=True, exit_on_error=False)
    async def _open(self, run: str) -> None:
        assert self._view.opened is not None
        try:
            self._show(await self._view.opened.ask.run(run))
        except PaperdeskError as error:
            self.notify(str(error), markup=False, severity="error", timeout=5)

    def _show(self, document: Document) -> None:
        if "agents" not in document:
            self.notify("these are repeats: open one of them", timeout=4)
            return
        self._moments = arena_moments(document)
        self._here = len(self._moments) - 1
        self._stock = 0
        self._pace.stop()
        self._show_day()

    def _go_to(self, place: int) -> None:
        place = max(0, min(len(self._moments) - 1, place))
        if place != self._here:
            self._here = place
            self._show_day()
            self.show_view(self.desk_app.snapshot())

    def _go_to_close(self, number: int) -> None:
        """Go to the close of a day, the first or the last one where it has no such day."""
        day = max(0, min(self._moments[-1].number, number))
        self._go_to(next(n for n, one in enumerate(self._moments) if (one.number, one.round) == (day, None)))

    def _show_day(self) -> None:
        day = self.day
        if day is None:
            return
        agents = day.agents()
        self.query_one("#traders", Table).show(rows_of(arena_tables.AGENTS, agents, lambda one: one.name))
        self.query_one("#tape", Table).show(rows_of(TAPE, day.trades()))
        orders = self.query_one("#orders-open", Table)
        orders.show(rows_of(ARENA_ORDERS, day.book()))
        orders.entitle(f"Open at the close of day {day.closed}")
        labels = [str(number) for number in range(day.count + 1)]
        prices, quoted = day.prices(), self.query_one("#quoted", CurvePlot)
        stocks = [stock["name"] for stock in day.document["stocks"]]
        stock = stocks[self._stock % len(stocks)]
        quoted.show(
            PlotData({name: prices[name] for name in (stock, f"{stock} fundamental") if name in prices}, labels)
        )
        quoted.border_title = f"Price of {stock}  [ ] stock"
        quoted.border_subtitle = day.moment
        grown, leaders = day.wealth(), [one.name for one in agents[:6]]
        self.query_one("#wealth", CurvePlot).show(PlotData({name: grown[name] for name in leaders}, labels))
        self.query_one("#wealth").border_title = "Wealth of the first six"
        traders = self.query_one("#traders", Table)
        traders.entitle(f"Agents  {day.title}")
        set_subtitle(traders, "" if day.round is None else f"wealth at the close of day {day.closed}")
        self._show_text()

    def _show_text(self) -> None:
        pane, day = self.query_one("#chat", TextPane), self.day
        if day is None:
            return
        agent = self.query_one("#traders", Table).cursor_key or day.document["agents"][0]["name"]
        chat = self._part == PARTS[0]
        pane.show(arena_tables.chat(day) if chat else arena_tables.strategies(day, agent))
        pane.border_title = "CHAT  strategies" if chat else "chat  STRATEGIES"
        set_subtitle(pane, clickable(Content("v the other"), "part"))

    @on(Table.Moved, "#traders")
    def _moved(self) -> None:
        self._show_text()

    # Keys

    def action_part(self) -> None:
        """Show the chat, or the strategies of the agent under the cursor."""
        self._part = PARTS[(PARTS.index(self._part) + 1) % len(PARTS)]
        self._show_text()

    def has_record(self) -> bool:
        """True where a day of an arena is shown."""
        return self.day is not None

    def has_decision(self) -> bool:
        """True where a day of an arena is shown."""
        return self.day is not None

    def action_why(self) -> None:
        """Show what led to the orders of the agent under the cursor on the day that is shown."""
        if day := self._day_or_notice():
            agent = self.query_one("#traders", Table).cursor_key or day.document["agents"][0]["name"]
            self.app.push_screen(ReadingScreen(f"Why {agent}, {day.moment}", arena_tables.reasons(day, agent)))

    def action_symbol(self, step: int) -> None:
        """Show the price of the next stock, or of the one before."""
        self._stock += step
        self._show_day()

    def _day_or_notice(self) -> ArenaDay | None:
        """The day that is shown; where there is none, say how there can be one."""
        if self.day is None:
            self.notify("no arena is open: ctrl+r plays one", timeout=3)
        return self.day

    def action_past_step(self, by: int) -> None:
        """Go by one round with trades, or a close; while it plays, faster or slower."""
        if self._pace.speed:
            self._pace.change(by)
        elif self._day_or_notice():
            self._go_to(self._here + by)

    def action_past_session(self, by: int) -> None:
        """Go by one close of a day."""
        if day := self._day_or_notice():
            self._go_to_close(day.closed + by if by > 0 else day.number + by)

    def action_past_play(self) -> None:
        """Play from here, day by day, from the start at the end; again: stop."""
        day = self._day_or_notice()
        if day is None:
            return
        if self._pace.speed:
            self._pace.stop()
            return
        if self._here == len(self._moments) - 1:
            self._go_to(0)
        self._pace.start(time.monotonic(), DAYS_A_SECOND)

    def jump_to_part(self, part: float) -> None:
        """Go to a part of the arena, between 0 and 1."""
        self._go_to(round(part * (len(self._moments) - 1)))

    def action_past_date(self) -> None:
        """Ask for a day, and go to it."""
        day = self._day_or_notice()
        if day is None:
            return

        def answered(text: str | None) -> None:
            if text:
                self._go_to_close(day_of_text(text, day.count))

        check = partial(day_of_text, count=day.count)
        self.app.push_screen(AskScreen("Go to the close of a day", f"0 to {day.count}", check=check), answered)

    def action_present(self) -> None:
        """Go to the last day; the desk to the present."""
        self._pace.stop()
        if self.day is not None:
            self._go_to(len(self._moments) - 1)
        super().action_present()

    def action_start(self) -> None:
        """Ask for an arena, and play it."""

        def answered(text: str | None) -> None:
            if text:
                self._play(*arena_of_text(text))

        self.app.push_screen(
            AskScreen("A new arena: preset, table, days, seed", DEFAULT, text=DEFAULT, check=arena_of_text),
            answered,
        )

    @work(group="play", exclusive=True, exit_on_error=False)
    async def _play(self, preset: str, table: str, days: int, seed: int, *, by_itself: bool = False) -> None:
        arguments = ("arena", "--preset", preset, "--agents", table, "--days", str(days), "--seed", str(seed))
        if by_itself:
            self.notify(f"paperdesk {' '.join(arguments)}", markup=False, timeout=4)
        else:
            report_action(self.app, "an arena is played", *arguments)
        self._say_empty("no arena yet:\none is being played", "one is being played")
        try:
            document = await run_command(self.desk_app.options, *arguments)
        except PaperdeskError as error:
            self._say_empty("no arena yet", self._none)
            self.notify(str(error), markup=False, severity="error", timeout=8)
            return
        self._show(document)
        self._list()

    def _say_empty(self, traders: str, arenas: str) -> None:
        self.query_one("#traders", Table).say_empty(traders)
        self.query_one("#arenas", Table).say_empty(arenas)
