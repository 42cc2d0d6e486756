"""The chart of the Desk: one symbol by minute, day, week or month, beside another from 100, trades and decisions on the
bars; with room an indicator under it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, cast

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content

from engine.errors import PaperdeskError
from engine.reports import amounts
from tui.charts.chart_axes import compact, day_text
from tui.charts.chart_data import DAYS, INDICATORS, MINUTES, NO_CHART, SymbolChart
from tui.charts.plotting import PlotData
from tui.desk.desk_app import ShowsFailures
from tui.screens.frame import TALL
from tui.text.plain_text import cut, one_line
from tui.view.market_view import MarketView
from tui.view.snapshot import Snapshot
from tui.view.state import action_text
from tui.widgets.agent_panes import MUTED
from tui.widgets.border_text import set_subtitle, set_title
from tui.widgets.candle_chart import CandleChart
from tui.widgets.clickable import clickable_keys
from tui.widgets.newest_reading import READING
from tui.widgets.plot import CurvePlot
from tui.widgets.text_lines import TextPane

if TYPE_CHECKING:
    from engine.domain.decision import Decision
    from engine.reports.documents.decisions import ClosesOf
    from engine.reports.documents.records import Records
    from tui.charts.chart_data import ChartData
    from tui.screens.frame import FramedScreen

LOW = 16
"""Rows of a screen from which an indicator has room under the candles."""
LEVELS = {"RSI": (30.0, 70.0), "KDJ": (20.0, 80.0), "MACD": (0.0,)}
"""Values of an indicator across which a line is drawn."""


class ChartPane(ShowsFailures, Vertical):
    """The candles of one symbol; with room, or under a cursor, an indicator and what is known of one bar."""

    def __init__(self, *, id: str = "chart") -> None:
        super().__init__(id=id)
        self._view = Snapshot()
        self._symbol = ""
        self._daily = NO_CHART
        self._roomy = False
        self._timeframe = DAYS
        self._indicator = INDICATORS[0]
        self._beside = ""
        self._chart = SymbolChart()
        self._built_from: tuple[object, ...] = ()
        self._plotted: tuple[object, ...] = ()

    def compose(self) -> ComposeResult:
        """Mount the candles and the panes under them."""
        yield CandleChart(id="candles", classes="pane")
        yield TextPane(title="Bar", id="bar", classes="pane")
        yield CurvePlot(id="indicator", classes="pane", point="bar")

    @property
    def candles(self) -> CandleChart:
        """The candles."""
        return self.query_one(CandleChart)

    def show(self, view: Snapshot, symbol: str, daily: ChartData) -> None:
        """Show a symbol: at once its daily bars, then what is read for it where more than those is shown."""
        self._view, self._symbol, self._daily = view, symbol, daily
        self._follow()

    def give_room(self, roomy: bool) -> None:
        """Show an indicator under the candles, and the bar under a cursor: on a low screen one of both."""
        self._roomy = roomy
        self._place()
        self._follow()

    def _place(self) -> None:
        told = self._roomy and self.candles.shown_view.cursor is not None
        under = self._roomy and self.screen.size.height >= (TALL if told else LOW)
        for name, shown in (("#bar", told), ("#indicator", under)):
            cast("FramedScreen", self.screen).set_display(self.query_one(name), shown)

    @on(CandleChart.Viewed)
    def _follow(self) -> None:
        """Build the chart again where prices, trades or what is asked for have changed."""
        view = self._view
        asked = self._roomy or self._timeframe != DAYS or self._other or self.candles.shown_view.cursor is not None
        if not asked or view.market is None or not len(self._daily):
            self._built_from = ()
            self._take(SymbolChart(data=self._daily))
            return
        minute = view.now if view.now is None else view.now.replace(second=0, microsecond=0)
        # A minute that begins is a reason to build only where minutes are shown.
        of = (self._symbol, self._timeframe, self._other, minute if self._timeframe == MINUTES else None)
        built_from = (view.market, view.sources[:1], *of)
        if built_from != self._built_from:
            self._built_from = built_from
            if self._timeframe == DAYS and self._chart.data.title != self._daily.title:
                self._take(SymbolChart(data=self._daily))
            self._build(built_from, view, self._symbol, self._other)
        self._plot()

    def _take(self, chart: SymbolChart) -> None:
        self._chart = chart
        self.candles.show(chart.data, chart.beside)
        self._plot()

    @property
    def _other(self) -> str:
        """The symbol that is laid over the candles; empty for none."""
        return self._beside if self._beside != self._symbol else ""

    def _others(self) -> list[str]:
        """The symbols to compare with: the benchmark first, then the desk's others."""
        view = self._view
        benchmark = None if view.opened is None else view.opened.benchmark
        desk = [] if view.market is None else [quote.symbol for quote in view.market.quotes]
        return [one for one in dict.fromkeys((benchmark, *desk)) if one and one != self._symbol]

    @work(group=f"{READING} chart", exclusive=True, exit_on_error=False, description="chart")
    async def _build(self, built_from: tuple[object, ...], view: Snapshot, symbol: str, beside: str) -> None:
        minutes = self._timeframe == MINUTES
        try:
            chart = await (self._of_minutes(view, symbol) if minutes else self._of_days(view, symbol, beside))
        except PaperdeskError as error:
            self.notify(f"{symbol}: {error}", markup=False, timeout=4)
            if minutes:
                self._timeframe = DAYS
                self._follow()
        else:
            if built_from is self._built_from:  # else nobody asks for it any more
                self._take(chart)

    async def _of_minutes(self, view: Snapshot, symbol: str) -> SymbolChart:
        from tui.charts.symbol_chart import minute_chart

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

    async def _of_days(self, view: Snapshot, symbol: str, beside: str) -> SymbolChart:
        from tui.charts.symbol_chart import symbol_chart

        assert view.market is not None and view.market.as_of is not None and view.opened is not None
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

    def _plot(self) -> None:
        """Draw the indicator over the bars that are in view, and tell of the one under the cursor."""
        self._place()
        chart, plot, data = self.candles, self.query_one(CurvePlot), self._chart.data
        self._show_comparison(chart)
        rows, cursor = chart.rows_in_view, chart.pointed
        if cursor is not None and cursor < len(data):
            pane = self.query_one("#bar", TextPane)
            pane.show(bar_text(self._chart, cursor, max(20, chart.size.width - 2), chart.drawn))
            set_title(pane, f"Bar of {data.title}")
        plotted = (data, rows, self._indicator, chart.places(), cursor)
        panes = self._chart.panes
        being_read = not panes and len(data)
        if being_read or (self._plotted and self._plotted[0] is plotted[0] and self._plotted == plotted):
            return
        self._plotted = plotted
        days = [str(day) for day in data.days[rows.start : rows.stop]]
        curves = {name: values[rows.start : rows.stop] for name, values in panes.get(self._indicator, {}).items()}
        crossed = cursor - rows.start if cursor is not None and cursor in rows else None
        levels = LEVELS.get(self._indicator, ())
        plot.show(PlotData(curves, days, columns=chart.places(), cursor=crossed, levels=levels))
        set_title(plot, "  ".join(name.upper() if name == self._indicator else name.lower() for name in INDICATORS))
        set_subtitle(plot, clickable_keys((("i next", "indicator"),)))

    def _show_comparison(self, chart: CandleChart) -> None:
        text, first = "", chart.drawn.hundred
        if self._other:
            day = "" if first is None else day_text(chart.drawn.days[first])
            text = f"from 100 on {day}" if day else f"no bar in common with {self._other} in view"
        set_subtitle(chart, text)

    @on(CurvePlot.Picked)
    def _bar_picked(self, event: CurvePlot.Picked) -> None:
        event.stop()  # the sessions of this pane are its bars
        days = [str(day) for day in self._chart.data.days]
        if event.label in days:
            self.candles.put_cursor(days.index(event.label))

    def go_timeframe(self, step: int) -> None:
        """Go to a longer timeframe, or a shorter one."""
        from tui.charts.symbol_chart import TIMEFRAMES

        names = (MINUTES, *TIMEFRAMES)
        place = names.index(self._timeframe) + step
        if 0 <= place < len(names):
            self._timeframe = names[place]
            self._follow()
        else:
            self.notify(f"no {'longer' if step > 0 else 'shorter'} bars", timeout=2)

    def next_indicator(self) -> None:
        """Show the next indicator."""
        self._indicator = INDICATORS[(INDICATORS.index(self._indicator) + 1) % len(INDICATORS)]
        self._plot()

    def compare_next(self) -> None:
        """Lay the next symbol over the candles; after the last one none."""
        names = ["", *self._others()]
        if len(names) == 1:
            self.notify("no other symbol to compare with", timeout=3)
        self._beside = names[(names.index(self._beside) + 1) % len(names) if self._beside in names else 0]
        self._follow()

    def decision(self) -> Decision | None:
        """The decision under the cursor, else the latest in view."""
        cursor, decided = self.candles.shown_view.cursor, self._chart.decided
        rows = reversed(self.candles.rows_in_view) if cursor is None else (cursor,)
        return next((decided[row][-1] for row in rows if row in decided), None)


def bar_text(chart: SymbolChart, row: int, width: int, drawn: ChartData) -> Content:
    """The bar of a row, its figures in lines of at most `width`; a line for every decision and every trade. Compared
    closes are those that are `drawn`."""
    figures = [*_prices(chart.data, row), *_indicators(chart, row), *_compared(drawn, row)]
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
    for curves in chart.panes.values():
        for name, values in curves.items():
            if (value := values[row]) is not None:
                yield name, f"{value:,.2f}"


def _compared(drawn: ChartData, row: int) -> Iterator[tuple[str, str]]:
    if drawn.hundred is None or row < drawn.hundred:
        return
    (other,) = drawn.lines
    for name, value in ((drawn.title.split()[0], drawn.close[row]), (other.name, other.values[row])):
        if value is not None:
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
