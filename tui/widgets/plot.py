"""Curves on a screen, drawn in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from rich.segment import Segment
from rich.style import Style
from textual import events, work
from textual.message import Message
from textual.strip import Strip

from tui.charts.bars import bar_plot
from tui.charts.candle_raster import ChartStyle
from tui.charts.chart_canvas import Palette
from tui.charts.plotting import PlotData, render_curves
from tui.desk.desk_app import ShowsFailures
from tui.widgets.border_text import set_title
from tui.widgets.chart_widget import ChartWidget


class CurvePlot(ShowsFailures, ChartWidget):
    """A plot that fills its widget. The current drawing remains until the next one is ready; a drawing is dropped when
    newer data or another size arrives before it is ready. `point` is what a point of the curves stands for."""

    @dataclass
    class Picked(Message):
        """A click on a point of the curves that are drawn, by its label."""

        label: str

    def __init__(
        self, *, id: str = "curve", title: str = "", classes: str = "", point: str = "session", empty: str = ""
    ) -> None:
        super().__init__(id=id, classes=classes)
        set_title(self, title)
        self.point = point
        self.empty = empty
        """The text until something is shown, where it does not begin with its first point."""
        self.data = PlotData()
        self._strips: list[Strip] = []
        self._points: Sequence[tuple[int, str]] = ()
        """The column and the label of every point that is drawn."""

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
        self.data, self.empty = data, ""
        self.on_resize()

    def on_resize(self) -> None:
        """Draw again for another size."""
        if self.size.area and self.data.series:
            self._draw()
        else:
            self.refresh()

    def notify_style_update(self) -> None:
        """Draw again after a change of theme or class."""
        super().notify_style_update()
        if self._strips:
            self.on_resize()

    @work(group="plot", exclusive=True, exit_on_error=False)
    async def _draw(self) -> None:
        """Draw in a thread (years of sessions take some 10 ms); a new drawing cancels the one in progress."""
        data, (width, height) = self.data, self.size
        self._strips, columns = await asyncio.to_thread(self._drawn, data, width, height, self.chart_style())
        self._points = list(zip(columns, data.labels, strict=False))
        self.refresh()

    def _drawn(self, data: PlotData, width: int, height: int, style: ChartStyle) -> tuple[list[Strip], Sequence[int]]:
        canvas, columns = render_curves(data, width, height, style, point=self.point)
        return canvas.strips(style.palette or Palette({})), columns

    def render_line(self, y: int) -> Strip:
        """Return a row of the newest drawing, cut or padded to the current size."""
        (width, height), rows = self.size, self._strips
        if self.data.series:
            strip = rows[y] if y < len(rows) else Strip.blank(0, self.rich_style)
        else:
            empty = self.empty or f"begins with the first {self.point}"
            text = f" {empty}" if y == height // 2 else ""
            strip = Strip([Segment(text, self.rich_style + Style(dim=True))])
        return strip.adjust_cell_length(width, self.rich_style)

    def on_click(self, event: events.Click) -> None:
        """Say which session was clicked on."""
        point = event.get_content_offset(self)
        if point is not None and self._points and self.data.series:
            _, label = min(self._points, key=lambda one: abs(one[0] - point.x))
            self.post_message(self.Picked(label))


class BarPlot(CurvePlot):
    """A plot of a single series as bars."""

    def _drawn(self, data: PlotData, width: int, height: int, style: ChartStyle) -> tuple[list[Strip], Sequence[int]]:
        (values,) = data.series.values()
        bars = bar_plot([value or 0.0 for value in values], data.labels, width, height)
        if not bars:
            return super()._drawn(data, width, height, style)
        ink = (style.palette or Palette({})).style("line0")
        return [Strip([Segment(row, ink)]) for row in bars], ()
