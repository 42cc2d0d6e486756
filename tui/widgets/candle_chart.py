"""The candle chart as a widget: holds data, zoom and cursor, and takes its colours from the theme."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from tui.widgets.candle_raster import ChartStyle, plot_layout, render_candles
from tui.widgets.chart_canvas import Palette
from tui.widgets.chart_data import ChartData, ChartView, fitting_view

ZOOMS = ((8, 1), (6, 1), (4, 1), (3, 1), (2, 1), (1, 1), (2, 5), (2, 10), (2, 21), (2, 63))
"""Zoom levels from near to far: columns to a candle, bars to a candle."""
_TWO_COLUMNS, _ONE_COLUMN = 4, 5
_ENOUGH_BARS = 30
"""Least number of bars in view for candles of two columns; with fewer, a candle takes one column."""

_INKS = (
    *("up", "down", "volume-up", "volume-down", "text", "title", "muted", "grid", "buy", "sell", "decision"),
    *("line0", "line1", "line2", "line3", "band", "fill", "paper"),
)


class CandleChart(Widget, can_focus=True):
    """Candles, volume, lines and fills of one symbol.

    `colour_blind` replaces green and red by blue and orange. `hollow` draws rising bodies as outlines. `ascii_only`
    draws with plain characters.
    """

    DEFAULT_CSS = """
    CandleChart {
        width: 1fr;
        height: 1fr;
        & > .chart--up, & > .chart--buy { color: $success; }
        & > .chart--down, & > .chart--sell { color: $error-lighten-1; }
        & > .chart--volume-up { color: $success 45%; }
        & > .chart--volume-down { color: $error-lighten-1 45%; }
        & > .chart--text { color: $foreground 75%; }
        & > .chart--title { color: $foreground; }
        & > .chart--muted { color: $foreground 50%; }
        & > .chart--grid { color: $foreground 18%; }
        & > .chart--decision { color: $foreground; }
        & > .chart--line0 { color: $warning; }
        & > .chart--line1 { color: #5fb3ff; }
        & > .chart--line2 { color: #c792ea; }
        & > .chart--line3 { color: #56d4c8; }
        & > .chart--band { color: $foreground 45%; }
        & > .chart--fill { color: $foreground 4%; }
        & > .chart--paper { color: $background; }
        &.-colour-blind {
            & > .chart--up, & > .chart--buy { color: #4aa8ff; }
            & > .chart--down, & > .chart--sell { color: #f28e2b; }
            & > .chart--volume-up { color: #4aa8ff 45%; }
            & > .chart--volume-down { color: #f28e2b 45%; }
            & > .chart--line0 { color: #f0e442; }
            & > .chart--line1 { color: #d8a0c8; }
        }
        &:ansi {
            & > .chart--volume-up { color: ansi_green; }
            & > .chart--volume-down { color: ansi_red; }
            & > .chart--text, & > .chart--title { color: ansi_default; }
            & > .chart--muted, & > .chart--grid, & > .chart--band { color: ansi_bright_black; }
            & > .chart--line0 { color: ansi_yellow; }
            & > .chart--line1 { color: ansi_cyan; }
            & > .chart--line2 { color: ansi_magenta; }
            & > .chart--line3 { color: ansi_blue; }
            & > .chart--decision { color: ansi_white; }
            & > .chart--paper { color: ansi_black; }
            &:dark > .chart--up, &:dark > .chart--buy { color: ansi_bright_green; }
            &:dark > .chart--down, &:dark > .chart--sell { color: ansi_bright_red; }
            &:light > .chart--down, &:light > .chart--sell { color: ansi_bright_red; }
            &.-colour-blind {
                & > .chart--up, & > .chart--buy { color: ansi_bright_blue; }
                & > .chart--down, & > .chart--sell { color: ansi_yellow; }
                & > .chart--volume-up { color: ansi_blue; }
                & > .chart--volume-down { color: ansi_yellow; }
                & > .chart--line0 { color: ansi_white; }
            }
        }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"chart--{ink}" for ink in _INKS}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("plus,equals_sign", "zoom(-1)", "Zoom in", id="chart.zoom-in", key_display="+"),
        Binding("minus", "zoom(1)", "Zoom out", id="chart.zoom-out", key_display="-"),
        Binding("0", "zoom_reset", "Usual size", id="chart.zoom-reset"),
        Binding("left", "move(-1)", "Bar before", id="chart.left", show=False),
        Binding("right", "move(1)", "Bar after", id="chart.right", show=False),
        Binding("pageup", "pan(-1)", "Earlier", id="chart.earlier", show=False),
        Binding("pagedown", "pan(1)", "Later", id="chart.later", show=False),
        Binding("home", "oldest", "Oldest", id="chart.oldest", show=False),
        Binding("end", "newest", "Newest", id="chart.newest", show=False),
    ]

    data: reactive[ChartData] = reactive(ChartData())
    view: reactive[ChartView | None] = reactive[ChartView | None](None)
    colour_blind: reactive[bool] = reactive(False)
    hollow: reactive[bool] = reactive(False)
    ascii_only: reactive[bool] = reactive(False)

    class CursorMoved(Message):
        """A move of the cursor to another row of the data; None without a cursor."""

        def __init__(self, chart: CandleChart, row: int | None) -> None:
            super().__init__()
            self.chart, self.row = chart, row

        @property
        def control(self) -> CandleChart:
            """The chart that sent the message."""
            return self.chart

    def __init__(
        self,
        data: ChartData | None = None,
        *,
        colour_blind: bool = False,
        hollow: bool = False,
        ascii_only: bool = False,
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self._style_cache: ChartStyle | None = None
        self._drawn_data: ChartData | None = None
        self._drawn_form: tuple[Size, ChartView, ChartStyle] | None = None
        self._strips: list[Strip] = []
        self.set_reactive(CandleChart.data, data or ChartData())
        self.set_reactive(CandleChart.hollow, hollow)
        self.set_reactive(CandleChart.ascii_only, ascii_only)
        self.colour_blind = colour_blind

    def show(self, data: ChartData) -> None:
        """Show another symbol or timeframe: the newest bars, no cursor, the same zoom."""
        if self.view is not None:
            self.view = replace(self.view, end=None, cursor=None)
        self.data = data

    def fit(self) -> None:
        """Zoom so that all bars are in view."""
        self.view = fitting_view(len(self.data), self._columns)

    @property
    def shown_view(self) -> ChartView:
        """The view as drawn: the chosen one, else the default for this width."""
        if self.view is not None:
            return self.view
        wide = self._columns // 2 >= _ENOUGH_BARS
        step, per = ZOOMS[_TWO_COLUMNS if wide else _ONE_COLUMN]
        return ChartView(step, per)

    @property
    def _columns(self) -> int:
        return plot_layout(self.data, max(1, self.size.width), max(1, self.size.height)).plot_width

    @property
    def _bars(self) -> int:
        """Number of bars that fit into the plot."""
        view = self.shown_view
        return max(1, self._columns // view.step) * view.per

    def render_line(self, y: int) -> Strip:
        """Return a row of the chart. The chart is drawn again only after a change of data, view, size or style."""
        style = self._chart_style()
        form = (self.size, self.shown_view, style)
        if self._drawn_data is not self.data or self._drawn_form != form:
            self._strips = render_candles(self.data, *self.size, self.shown_view, style)
            self._drawn_data, self._drawn_form = self.data, form
        return self._strips[y] if y < len(self._strips) else Strip.blank(self.size.width)

    def notify_style_update(self) -> None:
        """Take the colours again after a change of theme or class."""
        self._style_cache = None
        super().notify_style_update()

    def watch_colour_blind(self, chosen: bool) -> None:
        """Set the class that the style sheet takes the colours by."""
        self.set_class(chosen, "-colour-blind")
        self._style_cache = None

    def watch_hollow(self) -> None:
        """Reset the style for the next paint."""
        self._style_cache = None

    def watch_ascii_only(self) -> None:
        """Reset the style for the next paint."""
        self._style_cache = None

    def _chart_style(self) -> ChartStyle:
        if self._style_cache is None:
            palette = None if self.app.no_color else self._palette()
            self._style_cache = ChartStyle(palette, self.hollow, self.ascii_only)
        return self._style_cache

    def _palette(self) -> Palette:
        inks = {}
        for ink in _INKS:
            colour = self.get_component_rich_style(f"chart--{ink}").color
            if colour is not None and not colour.is_default:
                inks[ink.replace("-", "_")] = colour.name
        behind: Style = self.rich_style
        return Palette(inks, None if behind.bgcolor is None else behind.bgcolor.name)

    def action_zoom(self, steps: int) -> None:
        """Zoom in (negative) or out; the newest bar in view keeps its place."""
        view = self.shown_view
        place = min(range(len(ZOOMS)), key=lambda n: abs(ZOOMS[n][0] / ZOOMS[n][1] - view.step / view.per))
        step, per = ZOOMS[max(0, min(len(ZOOMS) - 1, place + steps))]
        self.view = self._holding_cursor(replace(view, step=step, per=per))

    def action_zoom_reset(self) -> None:
        """Return to the default zoom and the newest bars."""
        self.view = None
        self.post_message(self.CursorMoved(self, None))

    def action_move(self, bars: int) -> None:
        """Move the cursor, and pan to keep it in view. The first press puts it on the newest bar in view."""
        view, count = self.shown_view, len(self.data)
        if not count:
            return
        end = count if view.end is None else view.end
        cursor = end - 1 if view.cursor is None else view.cursor + bars * view.per
        self._put_cursor(max(0, min(count - 1, cursor)))

    def action_pan(self, pages: int) -> None:
        """Pan by half a screen, earlier (negative) or later."""
        view, count = self.shown_view, len(self.data)
        end = (count if view.end is None else view.end) + pages * max(1, self._bars // 2)
        self.view = replace(view, end=None if end >= count else max(end, min(self._bars, count)))

    def action_oldest(self) -> None:
        """Pan to the oldest bars."""
        self.view = replace(self.shown_view, end=min(self._bars, len(self.data)) or None)

    def action_newest(self) -> None:
        """Pan to the newest bars and remove the cursor."""
        self.view = replace(self.shown_view, end=None, cursor=None)
        self.post_message(self.CursorMoved(self, None))

    def on_click(self, event: events.Click) -> None:
        """Put the cursor on the clicked candle."""
        view, columns = self.shown_view, self._columns
        point = event.get_content_offset(self)
        if point is None or point.x >= columns or not len(self.data):
            return
        end = len(self.data) if view.end is None else view.end
        groups = -(-end // view.per)
        group = groups - 1 - (columns - 1 - point.x) // view.step
        if group >= 0:
            self._put_cursor(min(len(self.data) - 1, group * view.per))

    def _put_cursor(self, row: int) -> None:
        self.view = self._holding_cursor(replace(self.shown_view, cursor=row))
        self.post_message(self.CursorMoved(self, row))

    def _holding_cursor(self, view: ChartView) -> ChartView:
        """Pan the view as little as needed to have its cursor in view."""
        if view.cursor is None:
            return view
        shown = max(1, self._columns // view.step) * view.per
        end = len(self.data) if view.end is None else view.end
        if view.cursor >= end:
            end = view.cursor + 1
        elif view.cursor < end - shown:
            end = view.cursor + shown
        return replace(view, end=None if end >= len(self.data) else end)
