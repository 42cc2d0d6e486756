"""The bars of a screen that show the desk: the status on its first line, the newest events, the error bar."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, zip_longest
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.content import Content
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

from engine.domain.run import TradingMode
from engine.reports import amounts
from tui.text.plain_text import cut, one_line
from tui.view.live_view import feed_text
from tui.view.snapshot import OPENING
from tui.widgets.agent_panes import OFFLINE
from tui.widgets.clickable import clickable

if TYPE_CHECKING:
    from decimal import Decimal

    from tui.view.snapshot import Snapshot
    from tui.view.state import Books, Line

PAPER = " PAPER "
"""The label of every screen, at any size and in any theme."""
READ_ONLY = " READ-ONLY "
"""The label beside it in an app in which nothing can be changed."""
HALTED = " HALTED "
"""The label beside it while the desk is halted, as visible."""
PAUSED = " PAUSED "
"""The label while it is paused."""
REASON = 28
"""Characters of a halt's reason that fit into the bar."""
NEWEST = 60
"""Events that the log at the foot can show."""
LEVEL_INKS = {
    "info": "$foreground 75%",
    "warning": "$warning",
    "error": "$error-lighten-1",
    "decision": "bold",
    "trade": "$primary",
}


class Item(NamedTuple):
    """One item of the status bar: its name muted, its value in its ink."""

    name: str
    value: str
    ink: str = "value"


def items(view: Snapshot) -> Iterator[Item]:
    """List the items of the status bar, the most important first; those that do not fit are left out from the end."""
    books = view.desk.books
    yield from _control_items(view)
    if books is not None:
        yield Item("Equity", amounts.money(books.point.value))
        if books.before:
            day = float(books.point.value / books.before - 1)
            yield Item("", f"{amounts.percent(day)} {_since(view, books)}", "up" if day >= 0 else "down")
    if not view.controls.waiting and _mode(view) is TradingMode.ASK:
        yield Item("", "asks before orders", "name")
    yield from _cycle_items(view)
    if books is not None:
        yield Item("Cash", amounts.money(books.point.portfolio.cash, 0))
        if books.peak:
            fall = float(books.point.value / books.peak - 1)
            digits = 1 if fall <= -0.0005 or round(fall, 4) == 0 else 2
            yield Item("DD", amounts.percent(fall, digits), "down" if fall < 0 else "value")
    yield from _market_items(view)
    yield from _desk_items(view)


def _since(view: Snapshot, books: Books) -> str:
    """The day of the change, by its date where there are newer prices, or where the desk has not run for longer the
    close of its books that it is since."""
    if view.newer_close is not None:
        return f"{books.session:%b %d}"
    calendar = None if view.market is None else view.market.calendar
    if books.live is None or calendar is None or len(calendar.sessions(books.session, books.live)) <= 2:
        return "day"
    return f"since {books.session:%b %d}"


def _mode(view: Snapshot) -> TradingMode | None:
    """The desk's mode; None in the past and before it is open."""
    return None if view.opened is None or view.place is not None else view.opened.mode


def _control_items(view: Snapshot) -> Iterator[Item]:
    """Yield the halt, or else the pause, a mode that keeps orders back, the number of orders that wait for an approval,
    those of the operator that can be taken back, and a rehearsal that is missing or missed."""
    mode = _mode(view)
    stop, waiting = view.controls.halted or view.controls.paused, view.controls.waiting
    if view.place is not None and view.note:
        yield Item("", view.note, "warn")
    if stop is not None:
        today = view.now is not None and view.now.date() == stop.since.date()
        since = f"{stop.since:{'%H:%M' if today else '%b %d %H:%M'}}"
        yield Item("since", f"{since} {cut(one_line(stop.reason), REASON)}".rstrip(), "warn")
    if mode is TradingMode.OBSERVE:
        yield Item("", "observe mode: no orders are sent", "warn")
    if waiting:
        yield Item("", f"{len(waiting)} to approve", "warn")
    if view.own_orders:
        yield Item("", f"{len(view.own_orders)} of yours to be sent: u", "warn")
    if view.opened is not None and view.opened.unrehearsed:
        yield Item("", "not rehearsed: paperdesk rehearse", "warn")


def _cycle_items(view: Snapshot) -> Iterator[Item]:
    """Yield the progress of the running cycle: symbols decided, the symbol at work and the minutes so far."""
    desk = view.desk
    if not (desk.running or view.busy):
        return
    if view.controls.paused is not None:
        yield Item("Cycle", f"{desk.decided}/{len(desk.symbols)} waits", "warn")
        return
    minutes = "" if view.cycle_seconds is None else amounts.minutes(view.cycle_seconds)
    progress = f"{desk.decided}/{len(desk.symbols)}", desk.at, f"{desk.answered:.0%}"
    parts = ("starting", minutes) if view.starting else (*progress, minutes)
    yield Item("Cycle", " ".join(part for part in parts if part), "cycle")


def _market_items(view: Snapshot) -> Iterator[Item]:
    """Yield the state of the exchange and of the live feed."""
    if view.market is None or view.market.calendar is None or view.now is None:
        return
    is_open, hours = amounts.market_words(view.market.calendar, view.now)
    yield Item("Mkt", hours, "up" if is_open else "value")
    if view.live is not None:
        yield Item("Feed", *feed_text(view.live, is_open))


def asks_models(view: Snapshot) -> bool:
    """True where the desk asks models that may cost something."""
    return view.opened is not None and view.opened.label != OFFLINE


def model_cost(view: Snapshot, dollars: Decimal | None) -> str:
    """The cost of the desk's models so far: `free` for rules alone, and unknown from the start on where the price of a
    model is."""
    if dollars == 0 and view.opened is not None and asks_models(view):
        return "$0.00" if view.opened.knows_prices else amounts.cost(None)
    return amounts.cost(dollars)


def _desk_items(view: Snapshot) -> Iterator[Item]:
    """Yield the cost of the models, a note while the desk has no cycle to show, and the costs in effect."""
    if view.desk.run:
        yield Item("Models", model_cost(view, view.desk.cost))
    if view.opened is None:
        yield Item("", "the desk could not be opened" if view.trouble else OPENING, "name")
    elif view.desk.books is None and not (view.desk.running or view.busy):
        yield Item("", f"desk {view.opened.name}: no cycle yet", "name")
    if view.note and view.place is None:
        yield Item("", view.note, "cycle")
    if view.opened is not None and view.place is None:
        for name, part in zip_longest(("Fills",), view.opened.costs.split(", "), fillvalue=""):
            yield Item(name, part, "name")


class StatusBar(Widget):
    """One line, redrawn after a change of one of its items."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"status--{ink}" for ink in ("paper", "halted", "name", "value", "up", "down", "warn", "cycle")
    }

    def __init__(self, *, read_only: bool) -> None:
        super().__init__()
        self._always = PAPER + READ_ONLY if read_only else PAPER
        self._items: list[Item] = []
        self._labels: list[str] = []

    def show(self, view: Snapshot) -> None:
        """Show the state of a snapshot."""
        stops = {HALTED: view.controls.halted, PAUSED: view.controls.paused}
        shown, labels = list(items(view)), [label for label, stop in stops.items() if stop is not None]
        if (shown, labels) != (self._items, self._labels):
            self._items, self._labels = shown, labels
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return the labels and as many items as fit."""
        base = self.rich_style
        segments = [Segment(self._always, self._ink("paper"))]
        segments += [Segment(label, self._ink("halted")) for label in self._labels]
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


class EventLog(Static):
    """The newest events of the desk: on one line side by side, newest first, or a line each."""

    def __init__(self, *, id: str) -> None:
        super().__init__("", markup=False, id=id)
        self._lines: tuple[Line, ...] = ()
        self._empty = ""

    def show(self, lines: Sequence[Line], empty: str) -> None:
        """Show the newest of these lines (oldest first), or the text `empty` where there is none."""
        shown = tuple(reversed(lines[-NEWEST:])), empty
        if shown != (self._lines, self._empty):
            self._lines, self._empty = shown
            self.on_resize()

    def on_resize(self) -> None:
        """Write a line each, or all that fit on one where the widget has only one row."""
        events = [
            Content.assemble(
                (f" {line.time:%m-%d %H:%M:%S} ", "$foreground 40%"), (line.text, LEVEL_INKS.get(line.level, ""))
            )
            for line in self._lines
        ]
        one_row = self.size.height == 1
        ends = accumulate(event.cell_length + 3 for event in events)
        fitting = [event for event, end in zip(events, ends, strict=True) if end - 3 <= self.size.width]
        shown = (fitting or events[:1]) if one_row else events[: self.size.height]
        empty = Content.styled("" if one_row else f" {self._empty}", "$foreground 40%")
        # Its height is fixed by the screen.
        self.update(Content("   " if one_row else "\n").join(shown) if shown else empty, layout=False)

    def as_text(self) -> str:
        """Join the lines, newest first."""
        return "\n".join(f"{line.time:%Y-%m-%d %H:%M:%S} {line.level}: {line.text}" for line in self._lines)


class ErrorBar(Static):
    """The current error and the keys that deal with it, which can be clicked; hidden without an error."""

    def __init__(self) -> None:
        super().__init__("", markup=False)
        self.text = ""
        self._shown = "", "", ""

    def show(self, text: str, *, mends: str, again: str) -> None:
        """Show an error, with the entry of the palette that `mends` it, and beside the key that repeats what failed
        what it does `again`, each empty for none; an empty text hides the bar."""
        if (shown := (text, mends, again)) == self._shown:
            return
        self.text, self._shown = text, shown
        self.display = bool(text)
        keys = [(f"  ctrl+p {mends}", "app.command_palette")] if mends else []
        keys += [(f"  ctrl+t {again}", "retry")] if again else []
        keys += [("   y copy", "copy"), ("   esc dismiss", "back")]
        parts = [clickable(Content.styled(key, "bold"), action) for key, action in keys]
        self.update(Content.assemble(("! ", "bold"), text, *parts))
