"""The first line of every screen: PAPER, and how desk, market and cycle stand, most important first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from tui import amounts
from tui.bridge import Snapshot
from tui.live import feed_words
from tui.plain_text import one_line

if TYPE_CHECKING:
    from engine.execution.controls import Halted

PAPER = " PAPER "
"""The label that cannot be missed: there is no screen, no size and no theme without it."""

HALTED = " HALTED "
"""Beside it where the desk is halted, as hard to miss."""

REASON = 28
"""Characters of a halt's reason that the bar shows."""


@dataclass(frozen=True, slots=True)
class Item:
    """A word of the bar: name muted, value in its ink."""

    name: str
    value: str
    ink: str = "value"


def items(view: Snapshot) -> list[Item]:
    """What the bar says, the most important first; what does not fit falls off at the end."""
    desk, books = view.desk, view.desk.books
    found: list[Item] = []
    if view.controls.halted is not None:
        found.append(Item("since", _halt_words(view.controls.halted, view), "warn"))
    if view.controls.waiting:
        found.append(Item("", f"{len(view.controls.waiting)} to approve", "warn"))
    if books is not None:
        day = None if not books.before else float(books.value / books.before - 1)
        found.append(Item("Equity", amounts.money(books.value)))
        if day is not None:
            found.append(Item("", f"{amounts.percent(day)} day", "up" if day >= 0 else "down"))
    if desk.running or view.busy:
        found.append(_cycle(view))
    if books is not None:
        found.append(Item("Cash", amounts.money(books.cash, 0)))
        if books.peak:
            fall = float(books.value / books.peak - 1)
            found.append(Item("DD", amounts.percent(fall, 1) if fall < 0 else "0.0%", "down" if fall < 0 else "value"))
    if view.market is not None and view.market.calendar is not None and view.services is not None:
        is_open, words = amounts.market_words(view.market.calendar, view.services.clock.now())
        found.append(Item("Mkt", words, "up" if is_open else "value"))
        if view.live is not None:
            found.append(Item("Feed", *feed_words(view.live, is_open)))
    if desk.run:
        found.append(Item("Models", amounts.cost(desk.cost)))
    if view.services is None:
        found.append(Item("", "the desk could not be opened" if view.trouble else "opening the desk", "name"))
    elif books is None and not desk.running:
        found.append(Item("", f"desk {view.services.desk}: no cycle yet", "name"))
    return found


def _halt_words(halted: Halted, view: Snapshot) -> str:
    today = view.services is not None and view.services.clock.now().date() == halted.since.date()
    reason = one_line(halted.reason)
    if len(reason) > REASON:
        reason = f"{reason[: REASON - 3].rstrip()}..."
    return f"{halted.since:{'%H:%M' if today else '%b %d %H:%M'}}" + (f" {reason}" if reason else "")


def _cycle(view: Snapshot) -> Item:
    desk = view.desk
    if view.paused:
        return Item("Cycle", "PAUSED", "warn")
    symbol = f" {desk.at[0]}" if desk.at else ""
    clock = "" if view.cycle_seconds is None else f" {amounts.minutes(view.cycle_seconds)}"
    return Item("Cycle", f"{desk.decided}/{len(desk.symbols)}{symbol}{clock}", "cycle")


class StatusBar(Widget):
    """One line; redrawn when a word of it has changed."""

    DEFAULT_CSS = """
    StatusBar {
        dock: top;
        height: 1;
        background: $surface;
        & > .status--paper { background: $warning; color: $background; text-style: bold; }
        & > .status--halted { background: $error; color: white; text-style: bold; }
        & > .status--name { color: $foreground 55%; }
        & > .status--value { color: $foreground; }
        & > .status--up { color: $success; }
        & > .status--down { color: $error-lighten-1; }
        & > .status--warn { color: $warning; text-style: bold; }
        & > .status--cycle { color: $primary; }
        &:ansi {
            background: ansi_default;
            & > .status--paper { background: ansi_yellow; color: ansi_black; }
            & > .status--halted { background: ansi_red; color: ansi_bright_white; }
            & > .status--name { color: ansi_bright_black; }
            & > .status--value { color: ansi_default; }
        }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"status--{ink}" for ink in ("paper", "halted", "name", "value", "up", "down", "warn", "cycle")
    }

    def __init__(self) -> None:
        super().__init__()
        self._items: list[Item] = []
        self._halted = False

    def show(self, view: Snapshot) -> None:
        """Say how things stand."""
        found, halted = items(view), view.controls.halted is not None
        if (found, halted) != (self._items, self._halted):
            self._items, self._halted = found, halted
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """PAPER and as many items as fit."""
        base = self.rich_style
        segments = [Segment(PAPER, self._ink("paper"))]
        if self._halted:
            segments.append(Segment(HALTED, self._ink("halted")))
        segments.append(Segment(" ", base))
        room = self.size.width - sum(len(segment.text) for segment in segments)
        for item in self._items:
            name = f"{item.name} " if item.name else ""
            if len(name) + len(item.value) + 1 > room:
                break
            room -= len(name) + len(item.value) + 2
            segments += [
                Segment(name, base + self._ink("name")),
                Segment(item.value, base + self._ink(item.ink)),
                Segment("  ", base),
            ]
        return Strip(segments).adjust_cell_length(self.size.width, base)

    def _ink(self, name: str) -> Style:
        return self.get_component_rich_style(f"status--{name}")
