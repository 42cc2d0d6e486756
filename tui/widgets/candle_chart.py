"""The candle chart as a widget: holds data, zoom and cursor, and takes its colours from the theme."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip

from tui.charts.candle_raster import ChartStyle, plot_layout, render_candles
from tui.charts.chart_canvas import candle_glyphs
from tui.charts.chart_data import ChartData, ChartView
from tui.settings.keys import pane_bindings
from tui.widgets.chart_widget import ChartWidget

ZOOMS = ((8, 1), (6, 1), (4, 1), (3, 1), (2, 1), (1, 1), (2, 5), (2, 10), (2, 21), (2, 63))
"""Zoom levels from near to far: columns to a candle, bars to a candle."""
_TWO_COLUMNS, _ONE_COLUMN = 4, 5
_ENOUGH_BARS = 30
"""Least number of bars in view for candles of two columns; with fewer, a candle takes one column."""


class CandleChart(ChartWidget, can_focus=True):
    """Candles, volume, lines and fills of one symbol."""

    BINDINGS: ClassVar[list[BindingType]] = [*pane_bindings("chart")]

    class Viewed(Message):
        """A change of what is in view, or under the cursor."""

    data: reactive[ChartData] = reactive(ChartData())
    view: reactive[ChartView | None] = reactive[ChartView | None](None)

    def __init__(self, *, id: str = "chart", classes: str = "") -> None:
        super().__init__(id=id, classes=classes)
        self._drawn: tuple[ChartData, Size, ChartView | None, ChartStyle] | None = None
        self._strips: list[Strip] = []

    def show(self, data: ChartData) -> None:
        """Show data; of another symbol the newest bars, without a cursor and at the same zoom."""
        if self.view is not None and data.title != self.data.title:
            newest = len(data) - 1 if self.view.cross and len(data) else None
            self.view = replace(self.view, end=None, cursor=newest)
        self.data = data

    def watch_view(self) -> None:
        """Say so to the screen."""
        self.post_message(self.Viewed())

    @property
    def shown_view(self) -> ChartView:
        """The view as drawn: the chosen one, else the default for this width."""
        if self.view is not None:
            return self.view
        wide = self._columns // 2 >= _ENOUGH_BARS
        step, per = ZOOMS[_TWO_COLUMNS if wide else _ONE_COLUMN]
        return ChartView(step, per)

    @property
    def rows_in_view(self) -> range:
        """The rows of the data that are drawn."""
        view = self.shown_view
        end = self._end(view)
        return range(max(0, end - self._bars), end)

    def places(self) -> tuple[tuple[int, ...], int]:
        """The cell of each row in view, that of its candle's wick, and the columns of the plot."""
        view, columns = self.shown_view, self._columns
        rows, middle = self.rows_in_view, candle_glyphs(view.step, self.chart_style().ascii_only).middle // 2
        groups = -(-self._end(view) // view.per)
        shown = min(groups, columns // view.step)
        first = columns - shown * view.step + middle
        return tuple(first + (row // view.per - (groups - shown)) * view.step for row in rows), columns

    @property
    def _columns(self) -> int:
        return plot_layout(self.data, max(1, self.size.width), max(1, self.size.height)).plot_width

    @property
    def _bars(self) -> int:
        """Number of bars that fit into the plot."""
        view = self.shown_view
        return max(1, self._columns // view.step) * view.per

    def _end(self, view: ChartView) -> int:
        """The row after the last bar in view."""
        return len(self.data) if view.end is None else view.end

    def render_line(self, y: int) -> Strip:
        """Return a row of the chart. The chart is drawn again only after a change of data, view, size or style."""
        form = (self.data, self.outer_size, self.view, self.chart_style())
        # A chart is compared by identity: its columns are long.
        if self._drawn is None or self._drawn[0] is not form[0] or self._drawn[1:] != form[1:]:
            self._strips = render_candles(self.data, *self.size, self.shown_view, form[3])
            self._drawn = form
        return self._strips[y] if y < len(self._strips) else Strip.blank(self.size.width, self.rich_style)

    def action_zoom(self, steps: int) -> None:
        """Zoom in (negative) or out until every bar is in view; the newest one in view keeps its place. 0: the default
        zoom and newest bars."""
        if not steps:
            self.view = None
            return
        if steps > 0 and len(self.data) <= self._bars:
            return
        view = self.shown_view
        place = min(range(len(ZOOMS)), key=lambda n: abs(ZOOMS[n][0] / ZOOMS[n][1] - view.step / view.per))
        step, per = ZOOMS[max(0, min(len(ZOOMS) - 1, place + steps))]
        self.view = self._holding_cursor(replace(view, step=step, per=per))

    def action_move(self, bars: int) -> None:
        """Move the cursor, and pan to keep it in view. The first press puts it on the newest bar in view."""
        view, count = self.shown_view, len(self.data)
        if not count:
            return
        cursor = self._end(view) - 1 if view.cursor is None else view.cursor + bars * view.per
        self.put_cursor(max(0, min(count - 1, cursor)))

    def action_crosshair(self) -> None:
        """Show lines through the bar under the cursor, or hide them with the cursor."""
        view = self.shown_view
        if view.cross:
            self.view = replace(view, cross=False, cursor=None)
        elif len(self.data):
            cursor = self._end(view) - 1 if view.cursor is None else view.cursor
            self.view = replace(view, cross=True, cursor=cursor)

    def action_pan(self, pages: int) -> None:
        """Pan by half a screen, earlier (negative) or later."""
        view, count = self.shown_view, len(self.data)
        end = self._end(view) + pages * max(1, self._bars // 2)
        self.view = replace(view, end=None if end >= count else max(end, min(self._bars, count)))

    def action_oldest(self) -> None:
        """Pan to the oldest bars."""
        self.view = replace(self.shown_view, end=min(self._bars, len(self.data)) or None)

    def action_newest(self) -> None:
        """Pan to the newest bars, and remove the cursor; a crosshair goes to the newest bar."""
        view = self.shown_view
        newest = len(self.data) - 1 if view.cross and len(self.data) else None
        self.view = replace(view, end=None, cursor=newest)

    def on_click(self, event: events.Click) -> None:
        """Put the cursor on the clicked candle."""
        self._point(event)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Have a crosshair follow the pointer."""
        if self.shown_view.cross:
            self._point(event)

    def _point(self, event: events.MouseEvent) -> None:
        view, columns = self.shown_view, self._columns
        point = event.get_content_offset(self)
        if point is None or point.x >= columns or not len(self.data):
            return
        groups = -(-self._end(view) // view.per)
        group = groups - 1 - (columns - 1 - point.x) // view.step
        if group >= 0:
            self.put_cursor(min(len(self.data) - 1, group * view.per))

    def put_cursor(self, row: int) -> None:
        """Put the cursor on a bar, and pan to keep it in view."""
        self.view = self._holding_cursor(replace(self.shown_view, cursor=row))

    def _holding_cursor(self, view: ChartView) -> ChartView:
        """Pan the view as little as needed to have its cursor in view."""
        if view.cursor is None:
            return view
        shown = max(1, self._columns // view.step) * view.per
        end = self._end(view)
        if view.cursor >= end:
            end = view.cursor + 1
        elif view.cursor < end - shown:
            end = view.cursor + shown
        return replace(view, end=None if end >= len(self.data) else end)
