"""The colours and characters of a chart that is a widget: those of the theme."""

from __future__ import annotations

from typing import ClassVar

from textual.widget import Widget

from tui.charts.candle_raster import ChartStyle
from tui.charts.chart_canvas import Palette
from tui.charts.plotting import CURVES

_INKS = (
    *("up", "down", "volume-up", "volume-down", "text", "title", "muted", "grid", "buy", "sell", "decision"),
    *(f"line{n}" for n in range(CURVES)),
    *("band", "fill", "paper"),
)


class ChartWidget(Widget):
    """A widget that draws on a canvas."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"chart--{ink}" for ink in _INKS}

    def __init__(self, *, id: str, classes: str = "") -> None:
        super().__init__(id=id, classes=classes)
        self._style_cache: ChartStyle | None = None

    def notify_style_update(self) -> None:
        """Take the colours again after a change of theme or class."""
        self._style_cache = None
        super().notify_style_update()

    def chart_style(self) -> ChartStyle:
        """The style of the theme."""
        if self._style_cache is None:
            palette = None if self.app.no_color else self._palette()
            self._style_cache = ChartStyle(palette, self.app.has_class("-plain"))
        return self._style_cache

    def _palette(self) -> Palette:
        inks = {}
        for ink in _INKS:
            colour = self.get_component_rich_style(f"chart--{ink}").color
            if colour is not None and not colour.is_default:
                inks[ink.replace("-", "_")] = colour.name
        behind = self.rich_style.bgcolor
        return Palette(inks, None if behind is None else behind.name)
