"""Curves on a screen, drawn by plotext in a thread."""

from __future__ import annotations

import asyncio

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import work
from textual.strip import Strip
from textual.widget import Widget

from tui.charts.plotting import PlotData, equity_plot
from tui.desk.desk_app import ShowsFailures


class CurvePlot(ShowsFailures, Widget):
    """A plot that fills its widget. The current drawing remains until the next one is ready; a drawing is dropped when
    newer data or another size arrives before it is ready. `point` is what a point of the curves stands for."""

    def __init__(self, *, id: str = "curve", classes: str = "", point: str = "session") -> None:
        super().__init__(id=id, classes=classes)
        self.point = point
        self.data = PlotData()
        self._strips: list[Strip] = []
        self._behind: Style | None = None

    @property
    def drawing(self) -> bool:
        """True while a drawing is under way; the next one would end it."""
        return any(worker.node is self and not worker.is_finished for worker in self.workers)

    @property
    def drawn(self) -> bool:
        """True where the drawing is that of the newest data."""
        return bool(self._strips) and not self.drawing

    def show(self, data: PlotData) -> None:
        """Plot other curves."""
        self.data = data
        self.on_resize()

    def on_resize(self) -> None:
        """Draw again for another size."""
        if self.size.area and self.data.series:
            self._draw()

    @work(group="plot", exclusive=True, exit_on_error=False)
    async def _draw(self) -> None:
        """Draw in a thread (plotext takes 5 to 30 ms); a new drawing cancels the one in progress."""
        width, height = self.size
        drawn = await asyncio.to_thread(
            equity_plot,
            self.data.series,
            self.data.labels,
            width,
            height,
            point=self.point,
            colour=not self.app.no_color,
            ascii_only=self.app.has_class("-plain"),
        )
        lines = [Text.from_ansi(line, end="").render(self.app.console) for line in drawn.split("\n")]
        # A text without any colour of its own renders without its base style too.
        self._strips = [Strip(Segment.apply_style(line, self.rich_style), width) for line in lines]
        self.refresh()

    def notify_style_update(self) -> None:
        """Take the style behind the curves again after a change of theme or class."""
        self._behind = None
        super().notify_style_update()

    def render_line(self, y: int) -> Strip:
        """Return a row of the newest drawing, cut or padded to the current size."""
        width, height = self.size
        style = self._behind = self._behind or self.rich_style
        if self.data.series:
            strip = self._strips[y] if y < len(self._strips) else Strip.blank(0, style)
        else:
            text = f" begins with the first {self.point}" if y == height // 2 else ""
            strip = Strip([Segment(text, style + Style(dim=True))])
        return strip.adjust_cell_length(width, style)
