"""Curves on a screen: equity, drawdown, comparisons and indicators, drawn by plotext in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rich.text import Text
from textual import events, work
from textual.strip import Strip
from textual.widget import Widget

from tui.plotting import equity_plot


@dataclass(frozen=True, slots=True)
class PlotData:
    """Curves by name over a common axis, and a label (ISO date) per point of it; None and NaN are gaps."""

    series: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    labels: Sequence[str] = ()


class CurvePlot(Widget):
    """A plot that fills its widget. The current drawing remains until the next one is ready; a drawing is dropped when
    newer data or another size arrives before it is ready."""

    DEFAULT_CSS = "CurvePlot { width: 1fr; height: 1fr; }"

    def __init__(
        self,
        data: PlotData | None = None,
        *,
        ascii_only: bool = False,
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self._data = data or PlotData()
        self._ascii_only = ascii_only
        self._strips: list[Strip] = []

    @property
    def data(self) -> PlotData:
        """The curves of the plot."""
        return self._data

    def show(self, data: PlotData) -> None:
        """Plot other curves."""
        self._data = data
        self._draw()

    def on_resize(self, event: events.Resize) -> None:
        """Draw again for another size."""
        self._draw()

    def _draw(self) -> None:
        if self.size.area:
            self._drawing()

    @work(group="plot", exclusive=True, exit_on_error=False)
    async def _drawing(self) -> None:
        """Draw in a thread (plotext takes 5 to 30 ms); a new drawing cancels the one in progress."""
        width, height = self.size
        colour = not self.app.no_color
        drawn = await asyncio.to_thread(
            equity_plot,
            self._data.series,
            self._data.labels,
            width,
            height,
            colour=colour,
            ascii_only=self._ascii_only,
        )
        console = self.app.console
        base = self.rich_style
        lines = [Text.from_ansi(line, style=base, end="") for line in drawn.split("\n")]
        self._strips = [Strip(line.render(console), width) for line in lines]
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return a row of the newest drawing, cut or padded to the current size."""
        strip = self._strips[y] if y < len(self._strips) else Strip.blank(0)
        return strip.adjust_cell_length(self.size.width, self.rich_style)
