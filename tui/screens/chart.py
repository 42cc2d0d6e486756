"""Chart: one symbol by minute, day, week or month, an indicator under it, trades and decisions on the bars."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widget import Widget

from engine.errors import PaperdeskError
from engine.reports import amounts
from tui.charts.chart_axes import compact, day_text
from tui.charts.plotting import PlotData
from tui.charts.symbol_chart import (
    COMPARE,
    INDICATORS,
    MINUTES,
    TIMEFRAMES,
    SymbolChart,
    from_hundred,
    minute_chart,
    symbol_chart,
)
from tui.screens.frame import TALL
from tui.screens.newest_reading import READING
from tui.screens.order_actions import OwnOrderKeys
from tui.settings.keys import CHART, bindings
from tui.text.plain_text import cut, one_line
from tui.view.desk_port import Source
from tui.view.market_view import MarketView
from tui.view.snapshot import Snapshot
from tui.view.state import action_text
from tui.widgets.border_text import set_subtitle
from tui.widgets.candle_chart import CandleChart
from tui.widgets.clickable import clickable_keys
from tui.widgets.plot import CurvePlot
from tui.widgets.text_lines import TextPane

if TYPE_CHECKING:
    from engine.domain.decision import Decision
    from engine.reports.documents.decisions import ClosesOf
    from engine.reports.documents.records import Records
    from tui.charts.chart_data import ChartData

DAYS = next(iter(TIMEFRAMES))
LEVELS = {"RSI": (30.0, 70.0), "KDJ": (20.0, 80.0), "MACD": (0.0,), COMPARE: (100.0,)}
"""Values of an indicator across which a line is drawn."""


class ChartScreen(OwnOrderKeys):
    """The chart; left and right move its cursor, enter opens the decision under it. With the crosshair everything that
    is known of one bar stands under the candles."""

    MODE = CHART
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(CHART)]
    SHOWS_ANY_SYMBOL = True
    PANES = ("candles", "bar", "indicator")

    def __init__(self) -> None:
        super().__init__()
        self.symbol = ""
        self._timeframe = DAYS
        self._indicator = INDICATORS[0]
        self._beside = 0
        self._chart = SymbolChart()
        self._built_from: tuple[object, ...] = ()
        self._plotted: tuple[object, ...] = ()

    def chosen_symbol(self) -> str:
        """The symbol of the chart."""
        return self.symbol

    def compose_body(self) -> ComposeResult:
        """Mount the candles and the pane under them."""
        with Vertical(id="charted", classes="column"):
            yield CandleChart(id="candles", classes="pane")
            yield TextPane(title="Bar", id="bar", classes="pane")
            yield CurvePlot(id="indicator", classes="pane", point="bar")

    def on_mount(self) -> None:
        """Focus the candles."""
        self.focus_pane("candles")

    def has_room_for(self, pane: Widget) -> bool:
        """True for the bar under the crosshair where that is shown, in place of the indicator of a low screen."""
        crossed = self.query_one(CandleChart).shown_view.cross
        return {"bar": crossed, "indicator": not crossed or self.size.height >= TALL}.get(str(pane.id), True)

    def show_body(self, view: Snapshot) -> None:
        """Build the chart again where prices, trades or what is asked for have changed."""
        if view.market is None or not view.market.quotes:
            return
        if not self.symbol:
            self.symbol = view.market.quotes[0].symbol
        minute = view.now if view.now is None else view.now.replace(second=0, microsecond=0)
        # A minute that begins is a reason to build only where minutes are shown.
        of = (self.symbol, self._timeframe, self._other(view), minute if self._timeframe == MINUTES else None)
        built_from = (view.market, view.sources[:1], *of)
        if built_from != self._built_from:
            self._built_from = built_from
            self._build(view, self.symbol)
        self._plot()

    def _other(self, view: Snapshot) -> str:
        """The symbol of the comparison: the benchmark first, then the desk's others."""
        benchmark = None if view.opened is None else view.opened.benchmark
        desk = [] if view.market is None else [quote.symbol for quote in view.market.quotes]
        names = [one for one in dict.fromkeys((benchmark, *desk)) if one and one != self.symbol]
        return names[self._beside % len(names)] if names else ""

    @work(group=f"{READING} chart", exclusive=True, exit_on_error=False, description="chart")
    async def _build(self, view: Snapshot, symbol: str) -> None:
        minutes = self._timeframe == MINUTES
        try:
            self._chart = await (self._of_minutes(view, symbol) if minutes else self._of_days(view, symbol))
        except PaperdeskError as error:
            self.notify(f"{symbol}: {error}", markup=False, timeout=4)
            if minutes:
                self._timeframe = DAYS
                return
            self._chart = SymbolChart()
        self.query_one(CandleChart).show(self._chart.data)
        self._plot()

    async def _of_minutes(self, view: Snapshot, symbol: str) -> SymbolChart:
        assert view.now is not None and view.opened is not None
        bars = await view.opened.ask.minutes(symbol, view.now)

        def read(records: Records, _: ClosesOf) -> SymbolChart:
            reader = records.reader
            if reader is None:
                return minute_chart(symbol, bars, fills=(), decisions=())
            began = {run.id: run.started for run in reader.runs()}
            made = [(began[one.key.run], one) for one in reader.decisions(records.run, symbol)]
            return minute_chart(symbol, bars, fills=reader.dated_fills(symbol), decisions=made)

        return await view.opened.ask.read(view.sources[0], read)

    async def _of_days(self, view: Snapshot, symbol: str) -> SymbolChart:
        assert view.market is not None and view.market.as_of is not None and view.opened is not None
        beside = self._other(view)
        looked = await self._beyond(view, symbol, beside)
        quotes = {quote.symbol: quote for quote in (*looked.quotes, *view.market.quotes)}
        session, price = quotes[symbol].session, quotes[symbol].last
        markets = dict.fromkeys(looked.charts, looked.as_of)
        build = partial(
            symbol_chart,
            markets.get(symbol) or view.market.as_of,
            symbol,
            self._timeframe,
            last=None if session is None or price is None else (session, float(price)),
            beside=(beside, markets.get(beside) or view.market.as_of),
        )

        def read(records: Records, _: ClosesOf) -> SymbolChart:
            reader = records.reader
            fills = [] if reader is None else [one for one in reader.fills(records.world) if one.symbol == symbol]
            made = () if reader is None else reader.decisions(records.run, symbol)
            return build(fills=fills, decisions=made)

        return await view.opened.ask.read(view.sources[0], read)

    async def _beyond(self, view: Snapshot, *symbols: str) -> MarketView:
        """The prices of those symbols that the desk does not trade."""
        assert view.market is not None and view.now is not None and view.opened is not None
        desk = {quote.symbol for quote in view.market.quotes}
        beyond = [symbol for symbol in symbols if symbol and symbol not in desk]
        return (await view.opened.ask.prices(beyond, view.now) if beyond else None) or MarketView()

    @on(CandleChart.Viewed)
    def _plot(self) -> None:
        """Draw the indicator over the bars that are in view, and tell of the one under the crosshair."""
        self._show_bar()
        chart, plot = self.query_one(CandleChart), self.query_one(CurvePlot)
        rows, cursor = chart.rows_in_view, chart.shown_view.cursor
        plotted = (self._chart.data, rows, self._indicator, chart.places(), cursor)
        if not len(self._chart.data) or (self._plotted and self._plotted[0] is plotted[0] and self._plotted == plotted):
            return
        self._plotted = plotted
        days = [str(day) for day in self._chart.data.days[rows.start : rows.stop]]
        curves = {name: values[rows.start : rows.stop] for name, values in self._chart.panes[self._indicator].items()}
        hundred = ""
        if self._indicator == COMPARE:
            first, curves = from_hundred(curves)
            hundred = "no bar in common in view   " if first is None else f"100 on {days[first]}   "
        crossed = cursor - rows.start if cursor is not None and cursor in rows else None
        levels = LEVELS.get(self._indicator, ())
        plot.show(PlotData(curves, days, columns=chart.places(), cursor=crossed, levels=levels))
        names = "  ".join(name.upper() if name == self._indicator else name.lower() for name in INDICATORS)
        plot.border_title = names
        keys = clickable_keys((("i next", "indicator"), ("c compare with another", "compare")))
        set_subtitle(plot, Content.assemble(hundred, keys))

    @on(CurvePlot.Picked)
    def _bar_picked(self, event: CurvePlot.Picked) -> None:
        event.prevent_default()  # the sessions of this screen are its bars
        chart = self.query_one(CandleChart)
        chart.put_cursor(chart.rows_in_view[event.place])

    def _show_bar(self) -> None:
        chart, pane = self.query_one(CandleChart), self.query_one("#bar", TextPane)
        view = chart.shown_view
        if view.cross and view.cursor is not None and view.cursor < len(self._chart.data):
            pane.show(bar_text(self._chart, view.cursor, max(20, chart.size.width - 2), chart.rows_in_view))
            pane.border_title = f"Bar of {self._chart.data.title}"

    # Keys

    def action_timeframe(self, step: int) -> None:
        """Go to a longer timeframe, or a shorter one."""
        names = (MINUTES, *TIMEFRAMES)
        place = names.index(self._timeframe) + step
        if 0 <= place < len(names):
            self._timeframe = names[place]
            self.show_view(self._view)
        else:
            self.notify(f"no {'longer' if step > 0 else 'shorter'} bars", timeout=2)

    def action_crosshair(self) -> None:
        """Show what is known of one bar, or hide it."""
        self.query_one(CandleChart).action_crosshair()
        self.focus_pane("candles")

    def action_indicator(self) -> None:
        """Show the next indicator."""
        self._indicator = INDICATORS[(INDICATORS.index(self._indicator) + 1) % len(INDICATORS)]
        self._plot()

    def action_compare(self) -> None:
        """Compare with the next symbol."""
        self._beside += self._indicator == COMPARE
        self._indicator = COMPARE
        self.show_view(self._view)

    def show_symbol(self, symbol: str) -> None:
        """Show a symbol, also one that the desk does not trade."""
        self.symbol = symbol
        self.show_view(self._view)

    def action_symbol(self, step: int) -> None:
        """Go to the next symbol, or the one before."""
        market = self._view.market
        desk = [] if market is None else [quote.symbol for quote in market.quotes]
        if desk:
            symbols = list(dict.fromkeys((*desk, self.symbol)))
            self.symbol = symbols[(symbols.index(self.symbol) + step) % len(symbols)]
            self.show_view(self._view)

    def action_zoom(self, step: int) -> None:
        """Zoom the candles, or reset them (0)."""
        self.query_one(CandleChart).action_zoom(step)

    def _chosen(self) -> Decision | None:
        """The decision under the cursor, else the latest in view."""
        chart = self.query_one(CandleChart)
        cursor, decided = chart.shown_view.cursor, self._chart.decided
        rows = reversed(chart.rows_in_view) if cursor is None else (cursor,)
        return next((decided[row][-1] for row in rows if row in decided), None)

    def has_decision(self) -> bool:
        """True where a decision stands under the cursor, or without one in view."""
        return self._chosen() is not None

    def action_why(self) -> None:
        """Open the trail of the decision under the cursor."""
        decision = self._chosen()
        if decision is None:
            self.notify("no decision on this bar", timeout=3)
        else:
            self.open_trail(decision)

    def action_image(self) -> None:
        """Show the chart that the model was shown for the decision under the cursor."""
        decision = self._chosen()
        if decision is None or not self._view.sources:
            self.notify("no decision on this bar", timeout=3)
        else:
            self._paint(self._view.sources[0], decision)

    @work(group="picture", exclusive=True, exit_on_error=False)
    async def _paint(self, source: Source, decision: Decision) -> None:
        from tui.screens.chart_image import show_image

        await show_image(self, source, decision)


MUTED = "$foreground 55%"


def bar_text(chart: SymbolChart, row: int, width: int, in_view: range) -> Content:
    """The bar of a row, its figures in lines of at most `width`; a line for every decision and every trade. Compared
    closes are from 100 at the same bar of those `in_view` as the pane's curves."""
    figures = [*_prices(chart.data, row), *_indicators(chart, row), *_compared(chart, row, in_view)]
    lines = [*_flowing(figures, width), *_events(chart, row, width)]
    return Content("\n").join(lines)


def _prices(data: ChartData, row: int) -> Iterator[tuple[str, str]]:
    day = data.days[row]
    yield "", f"{day_text(day)} {day:%a}"
    for name, column in (("O", data.open), ("H", data.high), ("L", data.low), ("C", data.close)):
        yield name, f"{column[row]:,.2f}"
    before = data.close[row - 1] if row else 0.0
    if before:
        yield "change", amounts.percent(data.close[row] / before - 1)
    if len(data.volume) and not math.isnan(data.volume[row]):
        yield "V", compact(data.volume[row])


def _indicators(chart: SymbolChart, row: int) -> Iterator[tuple[str, str]]:
    bands = {line.role: line.values[row] for line in chart.data.lines if line.role in ("upper", "lower")}
    for line in chart.data.lines:
        value = line.values[row]
        if line.role not in bands and value is not None:
            yield line.name, f"{value:,.2f}"
    low, high = bands.get("lower"), bands.get("upper")
    if low is not None and high is not None:
        yield "BB", f"{low:,.2f} to {high:,.2f}"
    for pane, curves in chart.panes.items():
        for name, values in curves.items():
            if pane != COMPARE and (value := values[row]) is not None:
                yield name, f"{value:,.2f}"


def _compared(chart: SymbolChart, row: int, in_view: range) -> Iterator[tuple[str, str]]:
    curves = {name: values[in_view.start : in_view.stop] for name, values in chart.panes.get(COMPARE, {}).items()}
    first, rebased = from_hundred(curves)
    if first is None or row not in in_view:
        return
    for name, values in rebased.items():
        if (value := values[row - in_view.start]) is not None:
            yield f"{name} from 100", f"{value:,.2f}"


def _events(chart: SymbolChart, row: int, width: int) -> Iterator[Content]:
    room = max(12, width - 19)
    for decision in chart.decided.get(row, ()):
        yield Content.assemble((f"{decision.key.session} decided ", MUTED), cut(_decided(decision), room))
    for fill in chart.fills.get(row, ()):
        amount = f"{fill.side.value} {amounts.quantity(fill.quantity)} at {amounts.price(fill.price)}"
        reason = f"  {one_line(fill.reason)}" if fill.reason else ""
        yield Content.assemble((f"{fill.session} filled  ", MUTED), cut(amount + reason, room))


def _decided(decision: Decision) -> str:
    cut_by = f" (cut: {decision.cut})" if decision.cut else ""
    return one_line(f"{action_text(decision)}{cut_by}: {decision.reason}")


def _flowing(figures: list[tuple[str, str]], width: int) -> Iterator[Content]:
    """Names with their figures, as many in a line as fit."""
    line: list[Content] = []
    used = 0
    for name, text in figures:
        one = Content.assemble((f"{name} ", MUTED), text) if name else Content.styled(text, "bold")
        if line and used + one.cell_length > width:
            yield Content("   ").join(line)
            line, used = [], 0
        line.append(one)
        used += one.cell_length + 3
    if line:
        yield Content("   ").join(line)
