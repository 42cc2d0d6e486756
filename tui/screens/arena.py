"""The arena, behind the Lab: a closed market by days and their rounds, with prices, wealth, tape, book, chat and
strategies; begun and played here."""

from __future__ import annotations

import re
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
from engine.reports import amounts
from engine.reports.documents.runs import StoredKind
from engine.reports.table import Column, sign_ink
from engine.reports.tables import ARENA_ORDERS, TAPE
from tui.charts.plotting import PlotData
from tui.desk.desk_app import report_action
from tui.playback.playback import PlaybackSpeed
from tui.screens.ask import AskScreen
from tui.screens.frame import TALL, FramedScreen
from tui.screens.reading import ReadingScreen
from tui.settings.keys import ARENA, bindings
from tui.shell.subcommand import run_command
from tui.text.plain_text import one_line, printable
from tui.view.arena_day import ArenaDay, Document, arena_moments
from tui.view.snapshot import Place, Snapshot
from tui.widgets.agent_panes import MUTED
from tui.widgets.border_text import set_subtitle, set_title
from tui.widgets.clickable import clickable
from tui.widgets.plot import CurvePlot
from tui.widgets.table import Table, rows_of
from tui.widgets.text_lines import TextPane

DEFAULT = "paper controls 60 7"
DAYS_A_SECOND = 2
"""The speed that play begins with: a day is more to read than an event."""
DEMO = "paper nine 20 7"
"""The arena that is proposed on a demo desk: its personas are answered by rules and cost nothing."""


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
    TABLES = ("traders",)
    PANES = ("quoted", "wealth", "traders", "tape", "orders-open", "chat", "arenas")

    def __init__(self) -> None:
        super().__init__()
        self._moments: Sequence[ArenaDay] = ()
        self._here = 0
        """The moment that is shown."""
        self._stock = 0
        self._chats = True
        self._playback_speed = PlaybackSpeed()
        """In days a second."""
        self._arenas_listed = False

    @property
    def day(self) -> ArenaDay | None:
        """The moment that is shown; None without an arena."""
        return self._moments[self._here] if self._moments else None

    def compose_body(self) -> ComposeResult:
        """Mount curves, tables and texts."""
        with Horizontal(id="arena", classes="part"):
            with Vertical(classes="column half"):
                yield CurvePlot(id="quoted", title="Price", classes="pane", point="day")
                yield CurvePlot(id="wealth", title="Wealth", classes="pane", point="day")
                yield Table(AGENTS, title="Agents", empty="no arena yet", id="traders", classes="pane")
            with Vertical(classes="column half"):
                with Container(id="trading", classes="column"):
                    yield Table(TAPE, title="Tape", empty="no trade on this day", id="tape", classes="pane")
                    yield Table(
                        ARENA_ORDERS, title="Open at the close", empty="no order", id="orders-open", classes="pane"
                    )
                yield TextPane(title="Chat", id="chat", classes="pane")
                yield Table(ARENAS, title="Arenas", empty=self._none, id="arenas", classes="pane")

    def on_mount(self) -> None:
        """Focus the list."""
        self.focus_pane("arenas")

    def has_room_for(self, pane: Widget) -> bool:
        """True for all but the second curves and the book of a low screen, which could not be drawn."""
        return self.size.height >= TALL or pane.id not in ("wealth", "orders-open")

    def contexts(self) -> dict[str, object]:
        """Those of the day that is shown."""
        return {**super().contexts(), "record": self.day, "decided": self.day}

    def show_view(self, view: Snapshot) -> None:
        """Show a snapshot; before its end the arena is the recorded history that is shown."""
        super().show_view(replace(view, place=self._arena_place() or view.place))

    @property
    def _none(self) -> str:
        """The words where no arena was played: with the key that plays one, unless nothing may be changed."""
        return "none yet" if self.desk_app.settings.read_only else "none yet: ctrl+r plays one"

    def _arena_place(self) -> Place | None:
        day = self.day
        if day is None or (self._here == len(self._moments) - 1 and not self._playback_speed.speed):
            return None
        return Place(
            name=day.document["run"],
            number=self._here + 1,
            count=len(self._moments),
            session=None,
            text=day.moment,
            speed=self._playback_speed.speed,
        )

    def show_body(self, view: Snapshot) -> None:
        """List the arenas once the desk is open; go on where it plays."""
        if view.opened is not None and not self._arenas_listed:
            self._arenas_listed = True
            self._list_arenas()
        if self.day is not None and (due := self._playback_speed.due(time.monotonic())):
            if self.day.closed + due >= self.day.count:
                self._playback_speed.stop()
            self._go_to_close(self.day.closed + due)

    @work(group="arenas", exclusive=True, exit_on_error=False)
    async def _list_arenas(self) -> None:
        opened = self._view.opened
        assert opened is not None
        names = [run.id for run in await opened.ask.runs(StoredKind.ARENA)]
        self.query_one("#arenas", Table).show(rows_of(ARENAS, names, str), self._none)
        if self.day is not None:
            return
        trouble = ""
        for name in names:
            try:
                document = await opened.ask.run(name)
                if self.day is None:  # else another was opened meanwhile
                    self._show_arena(document)
                return
            except PaperdeskError as error:  # one that was left before its end: an earlier one may be there
                trouble = trouble or str(error)
        if trouble:
            self.notify(trouble, markup=False, severity="error", timeout=5)
        elif not self.desk_app.settings.read_only and self.is_active:
            self.action_start()

    @on(Table.Opened, "#arenas")
    @work(group="arena", exclusive=True, exit_on_error=False)
    async def _open_arena(self, event: Table.Opened) -> None:
        assert self._view.opened is not None
        self._show_arena(await self._view.opened.ask.run(event.key))

    def _show_arena(self, document: Document) -> None:
        if "agents" not in document:
            self.notify("these are repeats: open one of them", timeout=4)
            return
        self._moments = arena_moments(document)
        self._here = len(self._moments) - 1
        self._stock = 0
        self._playback_speed.stop()
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
        self.query_one("#traders", Table).show(rows_of(AGENTS, agents, lambda one: one.name))
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
        set_title(quoted, f"Price of {stock}  [ ] stock")
        set_subtitle(quoted, day.moment)
        grown, leaders = day.wealth(), [one.name for one in agents[:6]]
        self.query_one("#wealth", CurvePlot).show(PlotData({name: grown[name] for name in leaders}, labels))
        set_title(self.query_one("#wealth"), "Wealth of the first six")
        traders = self.query_one("#traders", Table)
        traders.entitle(f"Agents  {day.title}")
        set_subtitle(traders, "" if day.round is None else f"wealth at the close of day {day.closed}")
        self._show_text()

    @on(Table.Moved, "#traders")
    def _show_text(self) -> None:
        pane, day = self.query_one("#chat", TextPane), self.day
        if day is None:
            return
        agent = self.query_one("#traders", Table).cursor_key or day.document["agents"][0]["name"]
        pane.show(chat_content(day) if self._chats else strategies_content(day, agent))
        set_title(pane, "CHAT  strategies" if self._chats else "chat  STRATEGIES")
        set_subtitle(pane, clickable(Content("v the other"), "part"))

    # Keys

    def action_part(self) -> None:
        """Show the chat, or the strategies of the agent under the cursor."""
        self._chats = not self._chats
        self._show_text()

    def action_why(self) -> None:
        """Show what led to the orders of the agent under the cursor on the day that is shown."""
        if day := self._day_or_notice():
            agent = self.query_one("#traders", Table).cursor_key or day.document["agents"][0]["name"]
            self.app.push_screen(ReadingScreen(f"Why {agent}, {day.moment}", reasons_content(day, agent)))

    def action_symbol(self, step: int) -> None:
        """Show the price of the next stock, or of the one before."""
        if self._day_or_notice():
            self._stock += step
            self._show_day()

    def _day_or_notice(self) -> ArenaDay | None:
        """The day that is shown; where there is none, say how there can be one."""
        if self.day is None:
            self.notify("no arena is open: ctrl+r plays one", timeout=3)
        return self.day

    def action_past_step(self, by: int) -> None:
        """Go by one round with trades, or a close; while it plays, faster or slower."""
        if self._playback_speed.speed:
            self._playback_speed.change(by)
        elif self._day_or_notice():
            self._go_to(self._here + by)

    def action_past_session(self, by: int) -> None:
        """Go by one close of a day."""
        if day := self._day_or_notice():
            self._go_to_close(day.closed + by if by > 0 else day.number + by)

    def action_past_play(self) -> None:
        """Play from here, day by day, from the start at the end; again: stop."""
        if self._day_or_notice() is None:
            return
        if self._playback_speed.speed:
            self._playback_speed.stop()
            return
        if self._here == len(self._moments) - 1:
            self._go_to(0)
        self._playback_speed.start(time.monotonic(), DAYS_A_SECOND)

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
        self._playback_speed.stop()
        if self.day is not None:
            self._go_to(len(self._moments) - 1)
        super().action_present()

    def action_start(self) -> None:
        """Ask for an arena, and play it."""
        opened = self._view.opened
        text = DEMO if opened is not None and opened.is_demo else DEFAULT

        def answered(text: str | None) -> None:
            if text:
                self._play(*arena_of_text(text))

        self.app.push_screen(
            AskScreen("A new arena: preset, table, days, seed", DEFAULT, text=text, check=arena_of_text),
            answered,
        )

    @work(group="play", exclusive=True, exit_on_error=False)
    async def _play(self, preset: str, table: str, days: int, seed: int) -> None:
        arguments = ("arena", "--preset", preset, "--agents", table, "--days", str(days), "--seed", str(seed))
        report_action(self.app, "the arena has started", *arguments)
        self._say_empty("no arena yet:\none is running", "one is running")
        try:
            document = await run_command(self.desk_app.options, *arguments)
        except PaperdeskError:
            self._say_empty("no arena yet", self._none)
            raise
        self._show_arena(document)
        self._list_arenas()

    def _say_empty(self, traders: str, arenas: str) -> None:
        self.query_one("#traders", Table).say_empty(traders)
        self.query_one("#arenas", Table).say_empty(arenas)


Part = str | tuple[str, str]
AGENTS = (
    Column("#", "place", str, "muted", drop_order=5),
    Column("AGENT", "name", ink="strong", max_width=14),
    Column("WEALTH", "wealth", amounts.money),
    Column("RETURN", "growth", amounts.percent, sign_ink),
    Column("CASH", "cash", amounts.money, drop_order=2),
    Column("SHARES", lambda one: amounts.held(one.shares), ink="muted", max_width=24, drop_order=3),
    Column("KIND", "kind", ink="muted", stretch=True, min_width=8, drop_order=4),
)
LATEST = 40
"""Messages, or decisions, that are shown: laying out a year of them takes seconds."""
_PLAYED = re.compile(r"-(\d{4})(\d{2})(\d{2})-(\d{2})(\d{2})\d{2}-")
"""The time in the id of an arena."""


def _played(name: str) -> str:
    found = _PLAYED.search(name)
    return "{}-{}-{} {}:{}".format(*found.groups()) if found else "-"


ARENAS = (
    Column("ARENA", str, max_width=40),
    Column("PLAYED, UTC", _played, str, "muted", stretch=True, min_width=16, drop_order=1),
)


def chat_content(day: ArenaDay) -> Content:
    """The latest messages; those that are invented are marked, which the agents never see."""
    parts, messages = list[Part](), day.messages()
    for one in messages[:LATEST]:
        truth = {True: "", False: "  invented", None: "  not judged"}[one["truth"]]
        parts += [(f"day {one['day']}  {one['agent']}{truth}  ", MUTED), f"{printable(one['text']).strip()}\n"]
    parts += _earlier(day, len(messages))
    return Content.assemble(*parts) if parts else Content.styled("No messages: rules do not chat.", MUTED)


def strategies_content(day: ArenaDay, agent: str) -> Content:
    """The strategies of an agent so far, each with its score and what it was written from; of a preset or a strategy
    of backtests its decisions."""
    parts: list[Part] = [(f"{agent}\n\n", "bold")]
    for one in day.strategies(agent):
        score = "not used yet" if one["score"] is None else f"score {one['score']:+.2f} %"
        parent = "" if one["parent"] is None else f", written from that of day {one['parent']}"
        parts += [(f"day {one['day']}  {score}{parent}\n", MUTED), f"{printable(one['text']).strip()}\n\n"]
    decisions = day.decisions(agent)
    for one in decisions[:LATEST]:
        parts += _decision(one)
    parts += _earlier(day, len(decisions))
    if len(parts) == 1:
        parts.append((f"{agent} is a rule: it has no strategies or reasons.", MUTED))
    return Content.assemble(*parts)


def reasons_content(day: ArenaDay, agent: str) -> Content:
    """The reasons of an agent on the day: its decisions with the answers that they rest on, whole; of one that has
    strategies the one that it followed. Around them where it is, its trades of the day and its open orders."""
    parts = [*_position(day, agent), ("Reasons\n", MUTED)]
    decided = [one for one in day.decisions(agent) if one["day"] == day.number]
    followed = day.strategies(agent)[:1]
    for one in decided:
        parts += _decision(one, whole=True)
    for one in followed:
        parts += [(f"It followed the strategy of day {one['day']}\n", MUTED), f"{printable(one['text']).strip()}\n\n"]
    if not (decided or followed):
        rule = not (day.decisions(agent) or day.strategies(agent))
        parts.append("none: it is a rule\n\n" if rule and day.number else "none: it decided nothing on this day\n\n")
    traded, placed = list[Part](), list[Part]()
    for one in day.trades():
        if agent in (one["buyer"], one["seller"]):
            side, other = ("bought", one["seller"]) if agent == one["buyer"] else ("sold", one["buyer"])
            traded.append(f"{side} {one['quantity']:,} {one['stock']} at {one['price']}, {other} on the other side\n")
    for one in day.book():
        if one["agent"] == agent:
            placed.append(f"{one['side']} {one['quantity']:,} {one['stock']} at {one['price']}\n")
    return Content.assemble(
        *parts,
        ("Trades of the day so far\n" if day.round is not None else "Trades of the day\n", MUTED),
        *(traded or ["none\n"]),
        (f"\nOpen orders at the close of day {day.closed}\n", MUTED),
        *(placed or ["none\n"]),
    )


def _position(day: ArenaDay, agent: str) -> list[Part]:
    """Rank, wealth, cash and shares of an agent."""
    one = next(one for one in day.agents() if one.name == agent)
    held = amounts.held(one.shares) or "no shares"
    grown = f"{amounts.percent(one.growth)} since the beginning"
    return [
        (f"{agent}", "bold"),
        f"  {one_line(one.kind)}, {one.place} of {len(day.document['agents'])}\n",
        f"wealth {amounts.money(one.wealth)}, {grown}\ncash {amounts.money(one.cash)}, {held}\n\n",
    ]


def _earlier(day: ArenaDay, count: int) -> list[Part]:
    """A line on those that are not shown, where there are any."""
    left = count - LATEST
    return [(f"{left} earlier: paperdesk report --run {day.document['run']}\n", MUTED)] if left > 0 else []


def _decision(one: Document, *, whole: bool = False) -> list[Part]:
    """A decision with what cut it, and the answers that it rests on, each in a line or `whole`."""
    owner = f"  {one['owner']}" if one["owner"] else ""
    traded = f"  {one['shares']:+,d} shares" if one["shares"] else ""
    parts: list[Part] = [
        (f"day {one['day']}  {one['stock']}{owner}  ", MUTED),
        (one["action"], "bold"),
        (f"  {one['size']} %{traded}\n", MUTED),
        f"{printable(one['reason']).strip()}\n",
    ]
    if one["cut"]:
        parts.append((f"cut: {printable(one['cut'])}\n", MUTED))
    for answer in one["answers"]:
        text = printable(answer["text"]).strip() if whole else one_line(answer["text"])
        parts += [(f"  {answer['step']}: ", MUTED), (f"{text}\n", MUTED)]
    return [*parts, "\n"]
