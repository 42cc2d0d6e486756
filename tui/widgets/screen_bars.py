"""The bars of a screen: the status on its first line, the tabs, the newest events, the error bar, the key hints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import ClassVar, NamedTuple

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.content import Content
from textual.events import Click
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

from tui import amounts
from tui.keys import SCREENS, hints
from tui.live import feed_text
from tui.plain_text import cut, one_line
from tui.snapshot import Place, Snapshot
from tui.state import Books, Line

PAPER = " PAPER "
"""The label of every screen, at any size and in any theme."""
HALTED = " HALTED "
"""The label beside it while the desk is halted, as visible."""
REASON = 28
"""Characters of a halt's reason that fit into the bar."""
PLAYING, DONE, TO_COME = ">>", "=", "-"
"""Marks of the time bar; plain ones, which every terminal has."""
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
        yield Item("Equity", amounts.money(books.value))
        if books.before:
            day = float(books.value / books.before - 1)
            yield Item("", f"{amounts.percent(day)} {_since(view, books)}", "up" if day >= 0 else "down")
    yield from _cycle_items(view)
    if books is not None:
        yield Item("Cash", amounts.money(books.cash, 0))
        if books.peak:
            fall = float(books.value / books.peak - 1)
            yield Item("DD", amounts.percent(fall, 1) if fall < 0 else "0.0%", "down" if fall < 0 else "value")
    yield from _market_items(view)
    yield from _desk_items(view)


def _since(view: Snapshot, books: Books) -> str:
    """The beginning of the change: the day's, or where the desk has not run for longer the close of its books."""
    calendar = None if view.market is None else view.market.calendar
    if books.live is None or calendar is None or len(calendar.sessions(books.session, books.live)) <= 2:
        return "day"
    return f"since {books.session:%b %d}"


def _control_items(view: Snapshot) -> Iterator[Item]:
    """Yield the halt and the number of orders that wait for an approval."""
    halted, waiting = view.controls.halted, view.controls.waiting
    if halted is not None:
        today = view.now is not None and view.now.date() == halted.since.date()
        since = f"{halted.since:{'%H:%M' if today else '%b %d %H:%M'}}"
        yield Item("since", f"{since} {cut(one_line(halted.reason), REASON)}".rstrip(), "warn")
    if waiting:
        yield Item("", f"{len(waiting)} to approve", "warn")


def _cycle_items(view: Snapshot) -> Iterator[Item]:
    """Yield the progress of the running cycle: symbols decided, the symbol at work and the minutes so far."""
    desk = view.desk
    if not (desk.running or view.busy):
        return
    if view.paused:
        yield Item("Cycle", "PAUSED", "warn")
        return
    minutes = "" if view.cycle_seconds is None else amounts.minutes(view.cycle_seconds)
    parts = ("starting", minutes) if view.starting else (f"{desk.decided}/{len(desk.symbols)}", desk.at, minutes)
    yield Item("Cycle", " ".join(part for part in parts if part), "cycle")


def _market_items(view: Snapshot) -> Iterator[Item]:
    """Yield the state of the exchange and of the live feed."""
    if view.market is None or view.market.calendar is None or view.now is None:
        return
    is_open, hours = amounts.market_words(view.market.calendar, view.now)
    yield Item("Mkt", hours, "up" if is_open else "value")
    if view.live is not None:
        yield Item("Feed", *feed_text(view.live, is_open))


def _desk_items(view: Snapshot) -> Iterator[Item]:
    """Yield the cost of the models, a note while the desk has no cycle to show, and the costs in effect."""
    if view.desk.run:
        yield Item("Models", amounts.cost(view.desk.cost))
    if view.services is None:
        yield Item("", "the desk could not be opened" if view.trouble else "opening the desk", "name")
    elif view.desk.books is None and not (view.desk.running or view.busy):
        yield Item("", f"desk {view.services.desk}: no cycle yet", "name")
    if view.services is not None and view.place is None:
        yield Item("Fills", view.services.costs, "name")


class StatusBar(Widget):
    """One line, redrawn after a change of one of its items."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"status--{ink}" for ink in ("paper", "halted", "name", "value", "up", "down", "warn", "cycle")
    }

    def __init__(self) -> None:
        super().__init__()
        self._items: list[Item] = []
        self._halted = False

    def show(self, view: Snapshot) -> None:
        """Show the state of a snapshot."""
        shown, halted = list(items(view)), view.controls.halted is not None
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


class Tabs(Static):
    """The screens of the app, with the current one underlined."""

    def __init__(self, current: str) -> None:
        tabs = [
            Content.styled(f"{key} {name}", "bold underline $primary" if mode == current else "")
            for mode, (key, name, _) in SCREENS.items()
        ]
        super().__init__(Content.styled(" | ", "$foreground 30%").join(tabs), markup=False)


class TimeBar(Static):
    """The place in a recorded history, and the way back; hidden in the present. A click goes to that part of it."""

    class Chosen(Message):
        """A place was clicked: a part of the whole, between 0 and 1."""

        def __init__(self, part: float) -> None:
            super().__init__()
            self.part = part

    def __init__(self) -> None:
        super().__init__("", markup=False)
        self.place: Place | None = None
        self._track = (0, 0)
        """First column and width of the track."""

    def show(self, place: Place | None) -> None:
        """Show a place; None hides the bar."""
        if place != self.place:
            self.place = place
            self.display = place is not None
            self.on_resize()

    def on_resize(self) -> None:
        """Write the place, and a track over the room that is left."""
        place = self.place
        if place is None:
            return
        played = f"  {PLAYING} {place.speed}x" if place.speed else ""
        count = f"{place.number:,}/{place.count:,}"
        session = "" if place.session is None else f"{place.session}  "
        head = f" PAST {place.name}  {session}{count}{played}  "
        back = "  \\ present "
        text = one_line(place.text)
        room = self.size.width - len(head) - len(back)
        track = max(0, min(40, room - len(text) - 2))
        done = round(track * (place.number - 1) / max(1, place.count - 1)) if track else 0
        self._track = (len(head), track)
        self.update(
            Content.assemble(
                (head, "bold"),
                (DONE * done, "$primary"),
                (TO_COME * (track - done), "$foreground 40%"),
                (f"  {cut(text, max(1, room - track - 2))}" if room > track + 4 else "", "$foreground 75%"),
                (back, "bold $primary"),
            )
        )

    def on_click(self, event: Click) -> None:
        """Go to the place of the track that was clicked, or back to the present."""
        first, width = self._track
        if width and first <= event.x < first + width:
            self.post_message(self.Chosen((event.x - first) / max(1, width - 1)))


class EventLog(Static):
    """The newest events of the desk: on one line side by side, newest first, or a line each."""

    def __init__(self, *, id: str) -> None:
        super().__init__("", markup=False, id=id)
        self._lines: tuple[Line, ...] = ()

    def show(self, lines: Sequence[Line]) -> None:
        """Show the newest of these lines (oldest first)."""
        newest = tuple(reversed(lines[-NEWEST:]))
        if newest != self._lines:
            self._lines = newest
            self.on_resize()

    def on_resize(self) -> None:
        """Write a line each, or all that fit on one where the widget has only one row."""
        events = [
            Content.assemble(
                (f" {line.time:%H:%M:%S} ", "$foreground 40%"), (line.text, LEVEL_INKS.get(line.level, ""))
            )
            for line in self._lines
        ]
        one_row = self.size.height == 1
        ends = accumulate(event.cell_length + 3 for event in events)
        fitting = [event for event, end in zip(events, ends, strict=True) if end - 3 <= self.size.width]
        shown = (fitting or events[:1]) if one_row else events[: self.size.height]
        empty = Content.styled("" if one_row else " nothing has happened yet", "$foreground 40%")
        self.update(Content("   " if one_row else "\n").join(shown) if shown else empty)

    def as_text(self) -> str:
        """Join the lines, newest first."""
        return "\n".join(f"{line.time:%Y-%m-%d %H:%M:%S} {line.level}: {line.text}" for line in self._lines)


class Hints(Static):
    """The most useful keys of a screen, as many as fit."""

    def __init__(self, screen: str) -> None:
        super().__init__("", markup=False)
        self._pairs = [*hints(screen), ("^p", "commands")]

    def on_resize(self) -> None:
        """Write the hints that fit into the new width; help and quit are always among them."""
        needed = [pair for pair in self._pairs if pair[1] in ("help", "quit")]
        room = self.size.width - sum(map(_cells, needed))
        parts: list[tuple[str, str]] = []
        for pair in self._pairs:
            if pair not in needed and _cells(pair) > room:
                continue
            room -= 0 if pair in needed else _cells(pair)
            key, hint = pair
            parts += [(f"{key} " if key else "", "bold $primary"), (f"{hint}  ", "")]
        self.update(Content.assemble(*parts))


def _cells(pair: tuple[str, str]) -> int:
    return len(pair[0]) + len(pair[1]) + 3


class ErrorBar(Static):
    """The current error and the keys that deal with it; hidden without an error."""

    def __init__(self) -> None:
        super().__init__("", markup=False)
        self.text = ""

    def show(self, text: str) -> None:
        """Show an error; an empty text hides the bar."""
        if text == self.text:
            return
        self.text = text
        self.display = bool(text)
        keys = Text("  ctrl+t try again   y copy   esc dismiss", style="bold")
        self.update(Text.assemble(("! ", "bold"), text, keys))
