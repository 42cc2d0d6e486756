"""The first line of every screen: PAPER, then the state of desk, market and cycle, the most important first."""

from __future__ import annotations

from collections.abc import Iterator
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
"""The label of every screen, at any size and in any theme."""

HALTED = " HALTED "
"""The label beside it while the desk is halted, as visible."""

REASON = 28
"""Characters of a halt's reason that fit into the bar."""


@dataclass(frozen=True, slots=True)
class Item:
    """One item of the bar: its name muted, its value in its ink."""

    name: str
    value: str
    ink: str = "value"


def items(view: Snapshot) -> list[Item]:
    """List the items of the bar, the most important first; those that do not fit are left out from the end."""
    return [
        *_control_items(view),
        *_equity_items(view),
        *_cycle_items(view),
        *_cash_items(view),
        *_market_items(view),
        *_desk_items(view),
    ]


def _control_items(view: Snapshot) -> Iterator[Item]:
    """Yield the halt and the number of orders that wait for an approval."""
    if view.controls.halted is not None:
        yield Item("since", _halt_text(view.controls.halted, view), "warn")
    if view.controls.waiting:
        yield Item("", f"{len(view.controls.waiting)} to approve", "warn")


def _equity_items(view: Snapshot) -> Iterator[Item]:
    books = view.desk.books
    if books is None:
        return
    yield Item("Equity", amounts.money(books.value))
    if books.before:
        day = float(books.value / books.before - 1)
        yield Item("", f"{amounts.percent(day)} day", "up" if day >= 0 else "down")


def _cash_items(view: Snapshot) -> Iterator[Item]:
    """Yield the cash and the drawdown from the highest equity."""
    books = view.desk.books
    if books is None:
        return
    yield Item("Cash", amounts.money(books.cash, 0))
    if books.peak:
        fall = float(books.value / books.peak - 1)
        yield Item("DD", amounts.percent(fall, 1) if fall < 0 else "0.0%", "down" if fall < 0 else "value")


def _market_items(view: Snapshot) -> Iterator[Item]:
    """Yield the state of the exchange and of the live feed."""
    if view.market is None or view.market.calendar is None or view.services is None:
        return
    is_open, words = amounts.market_words(view.market.calendar, view.services.clock.now())
    yield Item("Mkt", words, "up" if is_open else "value")
    if view.live is not None:
        yield Item("Feed", *feed_words(view.live, is_open))


def _desk_items(view: Snapshot) -> Iterator[Item]:
    """Yield the cost of the models, and a note while the desk has no cycle to show."""
    if view.desk.run:
        yield Item("Models", amounts.cost(view.desk.cost))
    if view.services is None:
        yield Item("", "the desk could not be opened" if view.trouble else "opening the desk", "name")
    elif view.desk.books is None and not view.desk.running:
        yield Item("", f"desk {view.services.desk}: no cycle yet", "name")


def _halt_text(halted: Halted, view: Snapshot) -> str:
    today = view.services is not None and view.services.clock.now().date() == halted.since.date()
    reason = one_line(halted.reason)
    if len(reason) > REASON:
        reason = f"{reason[: REASON - 3].rstrip()}..."
    return f"{halted.since:{'%H:%M' if today else '%b %d %H:%M'}}" + (f" {reason}" if reason else "")


def _cycle_items(view: Snapshot) -> Iterator[Item]:
    """Yield the progress of the running cycle: symbols decided, the symbol at work and the minutes so far."""
    desk = view.desk
    if not (desk.running or view.busy):
        return
    if view.paused:
        yield Item("Cycle", "PAUSED", "warn")
        return
    symbol = f" {desk.at[0]}" if desk.at else ""
    clock = "" if view.cycle_seconds is None else f" {amounts.minutes(view.cycle_seconds)}"
    yield Item("Cycle", f"{desk.decided}/{len(desk.symbols)}{symbol}{clock}", "cycle")


class StatusBar(Widget):
    """One line, redrawn after a change of one of its items."""

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
        """Show the state of a snapshot."""
        shown, halted = items(view), view.controls.halted is not None
        if (shown, halted) != (self._items, self._halted):
            self._items, self._halted = shown, halted
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return PAPER and as many items as fit."""
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
