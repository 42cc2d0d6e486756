"""The newest events of the desk: on one line side by side, newest first, or a line each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from tui.state import Line

_INKS = {"info": "text", "warning": "warn", "error": "bad", "decision": "strong", "trade": "trade"}


class EventLog(Widget):
    """The newest events, without a history of its own."""

    DEFAULT_CSS = """
    EventLog {
        height: 1;
        & > .events--time { color: $foreground 40%; }
        & > .events--text { color: $foreground 75%; }
        & > .events--strong { color: $foreground; text-style: bold; }
        & > .events--trade { color: $primary; }
        & > .events--warn { color: $warning; }
        & > .events--bad { color: $error-lighten-1; }
        &:ansi > .events--time { color: ansi_bright_black; }
        &:ansi > .events--text { color: ansi_default; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"events--{ink}" for ink in ("time", "text", "strong", "trade", "warn", "bad")
    }

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._lines: tuple[Line, ...] = ()

    def show(self, lines: Sequence[Line]) -> None:
        """Show the newest of these lines (oldest first)."""
        newest = tuple(reversed(lines[-60:]))
        if newest != self._lines:
            self._lines = newest
            self.refresh()

    def as_text(self) -> str:
        """Join the lines, newest first."""
        return "\n".join(f"{line.time:%Y-%m-%d %H:%M:%S} {line.level}: {line.text}" for line in self._lines)

    def render_line(self, y: int) -> Strip:
        """Return a line, or all lines on one where the widget has only one row."""
        width, base = self.size.width, self.rich_style
        if self.size.height == 1:
            return self._side_by_side(width, base)
        if y >= len(self._lines):
            empty = " nothing has happened yet" if y == 0 else ""
            return Strip([Segment(set_cell_size(empty, width), base + self._ink("time"))], width)
        return Strip(self._segments(self._lines[y], base)).adjust_cell_length(width, base)

    def _side_by_side(self, width: int, base: Style) -> Strip:
        segments: list[Segment] = []
        used = 0
        for line in self._lines:
            parts = self._segments(line, base)
            cells = sum(cell_len(part.text) for part in parts)
            if used and used + cells > width:
                break
            segments += [*parts, Segment("   ", base)]
            used += cells + 3
        return Strip(segments).adjust_cell_length(width, base)

    def _segments(self, line: Line, base: Style) -> list[Segment]:
        ink = self._ink(_INKS.get(line.level, "text"))
        return [
            Segment(f" {line.time:%H:%M:%S} ", base + self._ink("time")),
            Segment(line.text, base + ink),
        ]

    def _ink(self, name: str) -> Style:
        style = self.get_component_rich_style(f"events--{name}")
        return Style(color=style.color, bold=style.bold)
