"""The candle chart as a widget: holds data, zoom and cursor, and takes its colours from the theme. The mouse drags it,
its wheel zooms, and the bar under the pointer is crossed."""

from __future__ import annotations

from bisect import bisect_left
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
from tui.charts.chart_data import NO_CHART, ChartData, ChartView, Compared
from tui.settings.keys import pane_bindings
from tui.widgets.chart_widget import ChartWidget

ZOOMS = ((8, 1), (6, 1), (4, 1), (3, 1), (2, 1), (1, 1), (2, 5), (2, 10), (2, 21), (2, 63))
"""Zoom levels from near to far: columns to a candle, bars to a candle."""
_TWO_COLUMNS, _ONE_COLUMN = 4, 5
_ENOUGH_BARS = 30
"""Least number of bars in view for candles of two columns; with fewer, a candle takes one column."""


class CandleChart(ChartWidget, can_focus=True):
    """Candles, volume, lines and fills of one symbol, or beside another both from 100."""

    BINDINGS: ClassVar[list[BindingType]] = [*pane_bindings("chart")]

    class Viewed(Message):
        """A change of what is in view, or under the cursor."""

    data: reactive[ChartData] = reactive(NO_CHART)
    beside: reactive[Compared | None] = reactive[Compared | None](None)
    view: reactive[ChartView | None] = reactive[ChartView | None](None)
    under_pointer: reactive[int | None] = reactive[int | None](None)
    """The row of the bar under the pointer; None where that is elsewhere."""

    def __init__(self, *, id: str = "chart", classes: str = "") -> None:
        super().__init__(id=id, classes=classes)
        self._painted: tuple[ChartData, Size, ChartView, ChartStyle] | None = None
        self._strips: list[Strip] = []
        self._compared: tuple[object, object, range, ChartData] | None = None
        self._dragged: tuple[int, int] | None = None
        """The column where the mouse was pressed, and the row after the last bar in view then."""
        self._was_dragged = False

    def show(self, data: ChartData, beside: Compared | None = None) -> None:
        """Show data, with those of another symbol beside; of another symbol the newest bars, at the same zoom, of the
        same one those that were in view: a session that comes may take the place of the oldest."""
        before, view = self.data, self.view
        self.data, self.beside = data, beside
        if data.title != before.title:
            self.under_pointer = None
            if view is not None:
                newest = len(data) - 1 if view.cursor is not None and len(data) else None
                self.view = replace(view, end=None, cursor=newest)
        elif view is not None and len(data) and len(before):
            gone = bisect_left(before.days, data.days[0]) - bisect_left(data.days, before.days[0])
            end, cursor = (None if row is None else row - gone for row in (view.end, view.cursor))
            self.view = replace(view, end=end, cursor=cursor)

    def watch_view(self) -> None:
        """Say so to the screen."""
        self.post_message(self.Viewed())

    watch_under_pointer = watch_view

    @property
    def drawn(self) -> ChartData:
        """The data as drawn: from 100 at the first bar in view that the symbol beside has too."""
        if self.beside is None:
            return self.data
        rows, known = self.rows_in_view, self._compared
        if known is None or known[0] is not self.data or known[1] is not self.beside or known[2] != rows:
            known = self._compared = (self.data, self.beside, rows, self.data.from_hundred(self.beside, rows))
        return known[3]

    @property
    def pointed(self) -> int | None:
        """The row of the bar that is crossed: under the pointer, else under the cursor."""
        return self.shown_view.cursor if self.under_pointer is None else self.under_pointer

    @property
    def shown_view(self) -> ChartView:
        """The view as drawn: the chosen one as far as there are bars, else the default for this width."""
        if (view := self.view) is None:
            wide = self._columns // 2 >= _ENOUGH_BARS
            step, per = ZOOMS[_TWO_COLUMNS if wide else _ONE_COLUMN]
            return ChartView(step, per)
        count, end, cursor = len(self.data), view.end, view.cursor
        if end is not None:
            end = max(end, self._shown(view) * view.per)
        if cursor is not None:
            cursor = max(0, min(cursor, count - 1)) if count else None
        return replace(view, end=None if end is None or end >= count else end, cursor=cursor)

    @property
    def rows_in_view(self) -> range:
        """The rows of the data that are drawn."""
        view = self.shown_view
        end = self._end(view)
        return range(max(0, -(-end // view.per) - self._columns // view.step) * view.per, end)

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

    def _shown(self, view: ChartView) -> int:
        """Number of candles that fit into the plot."""
        return max(1, self._columns // view.step)

    def _end(self, view: ChartView) -> int:
        """The row after the last bar in view."""
        return len(self.data) if view.end is None else view.end

    def render_line(self, y: int) -> Strip:
        """Return a row of the chart. The chart is drawn again only after a change of data, view, size or style."""
        form = (self.drawn, self.outer_size, replace(self.shown_view, cursor=self.pointed), self.chart_style())
        # A chart is compared by identity: its columns are long.
        if self._painted is None or self._painted[0] is not form[0] or self._painted[1:] != form[1:]:
            layout = plot_layout(self.data, *self.size) if self.size.area else None
            self._strips = render_candles(form[0], *self.size, form[2], form[3], layout=layout)
            self._painted = form
        return self._strips[y] if y < len(self._strips) else Strip.blank(self.size.width, self.rich_style)

    def action_zoom(self, steps: int) -> None:
        """Zoom in (negative) or out until every bar is in view; the newest one in view keeps its place. 0: the default
        zoom and newest bars."""
        if not steps:
            self.view = None
            return
        view, count = self.shown_view, len(self.data)
        if steps > 0 and count <= self._shown(view) * view.per:
            return
        place = min(range(len(ZOOMS)), key=lambda n: abs(ZOOMS[n][0] / ZOOMS[n][1] - view.step / view.per))
        step, per = ZOOMS[max(0, min(len(ZOOMS) - 1, place + steps))]
        if per > 1:  # no more bars to a candle than it takes for all to be in view
            per = min(per, -(-count // max(1, self._columns // step)))
        self.view = self._holding_cursor(replace(view, step=step, per=per))

    def action_move(self, bars: int) -> None:
        """Move the cursor, and pan to keep it in view. The first press puts it on the newest bar in view."""
        view, count = self.shown_view, len(self.data)
        if not count:
            return
        cursor = self._end(view) - 1 if view.cursor is None else view.cursor + bars * view.per
        self.put_cursor(max(0, min(count - 1, cursor)))

    def action_pan(self, pages: int) -> None:
        """Pan by half a screen, earlier (negative) or later."""
        view = self.shown_view
        self._go_to(self._end(view) + pages * max(1, self._shown(view) * view.per // 2))

    def _go_to(self, end: int) -> None:
        """Pan until a row is the one after the last bar in view, as far as there are bars."""
        self.view = replace(self.shown_view, end=None if end >= len(self.data) else end)

    def action_oldest(self) -> None:
        """Pan to the oldest bars."""
        self._go_to(0)

    def action_newest(self) -> None:
        """Pan to the newest bars, and remove the cursor."""
        self.view = replace(self.shown_view, end=None, cursor=None)

    def remove_cursor(self) -> None:
        """Remove the cursor, and stay with the bars in view."""
        self.view = replace(self.shown_view, cursor=None)

    def on_click(self, event: events.Click) -> None:
        """Put the cursor on the clicked candle, unless the chart was dragged there."""
        row = self._row_at(event)
        if row is not None and not self._was_dragged:
            self.put_cursor(row)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Begin to drag."""
        self._dragged, self._was_dragged = (event.screen_x, self._end(self.shown_view)), False
        self.capture_mouse()

    def on_mouse_up(self) -> None:
        """End dragging."""
        self._dragged = None
        self.release_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Drag the bars with the pointer, or cross the one under it."""
        if self._dragged is None:
            self.under_pointer = self._row_at(event)
            return
        view, (column, end) = self.shown_view, self._dragged
        if moved := int((event.screen_x - column) / view.step):
            self._was_dragged, self.under_pointer = True, None
            self._go_to(end - moved * view.per)

    def on_leave(self) -> None:
        """Cross no bar any more."""
        self.under_pointer = None

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Zoom in."""
        event.stop()
        self.action_zoom(-1)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Zoom out."""
        event.stop()
        self.action_zoom(1)

    def _row_at(self, event: events.MouseEvent) -> int | None:
        """The row of the bar at the pointer; None where there is none."""
        view, columns = self.shown_view, self._columns
        point = event.get_content_offset(self)
        if point is None or point.x >= columns or not len(self.data):
            return None
        groups = -(-self._end(view) // view.per)
        row = (groups - 1 - (columns - 1 - point.x) // view.step) * view.per
        return row if row in self.rows_in_view else None

    def put_cursor(self, row: int) -> None:
        """Put the cursor on a bar, and pan to keep it in view."""
        self.view = self._holding_cursor(replace(self.shown_view, cursor=row))

    def _holding_cursor(self, view: ChartView) -> ChartView:
        """Pan the view as little as needed to have its cursor in view."""
        if view.cursor is None:
            return view
        shown, group, end = self._shown(view), view.cursor // view.per, self._end(view)
        if view.cursor >= end:
            end = view.cursor + 1
        elif group < -(-end // view.per) - shown:
            end = (group + shown) * view.per
        return replace(view, end=None if end >= len(self.data) else end)
