"""Chart: one symbol by day, week or month, an indicator or a comparison under it, trades and decisions on the bars."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical

from engine.errors import PaperdeskError
from tui.keys import CHART, bindings
from tui.market_view import MarketView
from tui.screens.frame import FramedScreen
from tui.screens.reading import TrailScreen
from tui.snapshot import Snapshot, Source
from tui.symbol_chart import INDICATORS, TIMEFRAMES, SymbolChart, symbol_chart
from tui.widgets.candle_chart import CandleChart
from tui.widgets.plot import CurvePlot, PlotData

if TYPE_CHECKING:
    from engine.domain.decision import Decision
    from engine.reports.documents.records import Records


class ChartScreen(FramedScreen):
    """The chart; left and right move its cursor, enter opens the decision under it."""

    MODE = CHART
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(CHART)]
    SHOWS_ANY_SYMBOL = True
    PANES = ("candles", "indicator")

    def __init__(self) -> None:
        super().__init__()
        self.symbol = ""
        self._timeframe = next(iter(TIMEFRAMES))
        self._indicator = INDICATORS[0]
        self._beside = 0
        self._chart = SymbolChart()
        self._built_from: tuple[object, ...] = ()
        self._plotted: tuple[object, ...] = ()

    def compose_body(self) -> ComposeResult:
        """Mount the candles and the pane under them."""
        with Vertical(id="charted", classes="column"):
            yield CandleChart(id="candles", classes="pane")
            yield CurvePlot(id="indicator", classes="pane")

    def on_mount(self) -> None:
        """Focus the candles."""
        self.focus_pane("candles")

    def show_body(self, view: Snapshot) -> None:
        """Build the chart again where prices, trades or what is asked for have changed."""
        if view.market is None or not view.market.quotes:
            return
        if not self.symbol:
            self.symbol = view.market.quotes[0].symbol
        built_from = (view.market, view.sources[:1], self.symbol, self._timeframe, self._other(view))
        if built_from != self._built_from:
            self._built_from = built_from
            self._build(view, self.symbol)
        self._plot()

    def _other(self, view: Snapshot) -> str:
        """The symbol of the comparison: the benchmark first, then the desk's others."""
        benchmark = None if view.services is None else view.services.benchmark
        desk = [] if view.market is None else [quote.symbol for quote in view.market.quotes]
        names = [one for one in dict.fromkeys((benchmark, *desk)) if one and one != self.symbol]
        return names[self._beside % len(names)] if names else ""

    @work(exclusive=True, exit_on_error=False, description="chart")
    async def _build(self, view: Snapshot, symbol: str) -> None:
        assert view.market is not None and view.market.as_of is not None and view.now is not None
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

        def read(records: Records) -> SymbolChart:
            reader = records.reader
            fills = [] if reader is None else [one for one in reader.fills(records.world) if one.symbol == symbol]
            made = () if reader is None else reader.decisions(records.run, symbol)
            return build(fills=fills, decisions=made)

        try:
            self._chart = await asyncio.to_thread(view.sources[0].read, read)
        except PaperdeskError as error:
            self._chart = SymbolChart()
            self.notify(f"{symbol}: {error}", markup=False, timeout=4)
        self.query_one(CandleChart).show(self._chart.data)
        self._plot()

    async def _beyond(self, view: Snapshot, *symbols: str) -> MarketView:
        """The prices of those symbols that the desk does not trade."""
        assert view.market is not None and view.now is not None
        desk = {quote.symbol for quote in view.market.quotes}
        beyond = [symbol for symbol in symbols if symbol and symbol not in desk]
        return await self.desk_app.bridge.looked_up(beyond, view.now) if beyond else MarketView()

    def _plot(self) -> None:
        """Draw the indicator over the bars that are in view."""
        rows, plot = self.query_one(CandleChart).rows_in_view, self.query_one(CurvePlot)
        plotted = (self._chart.data, rows, self._indicator)
        if not len(self._chart.data) or (self._plotted and self._plotted[0] is plotted[0] and self._plotted == plotted):
            return
        self._plotted = plotted
        curves = {name: values[rows.start : rows.stop] for name, values in self._chart.panes[self._indicator].items()}
        days = [str(day) for day in self._chart.data.days[rows.start : rows.stop]]
        plot.show(PlotData(curves, days))
        names = "  ".join(name.upper() if name == self._indicator else name.lower() for name in INDICATORS)
        plot.border_title = names
        plot.border_subtitle = "i next   c compare with another"

    # Keys

    def action_timeframe(self, step: int) -> None:
        """Go to a longer timeframe, or a shorter one."""
        names = list(TIMEFRAMES)
        place = names.index(self._timeframe) + step
        if not 0 <= place < len(names):
            self.notify("bars within a day need live data of their own, which no feed here keeps", timeout=3)
            return
        self._timeframe = names[place]
        chart = self.query_one(CandleChart)
        chart.view = None if chart.view is None else replace(chart.view, end=None, cursor=None)
        self.show_view(self._view)

    def action_indicator(self) -> None:
        """Show the next indicator."""
        self._indicator = INDICATORS[(INDICATORS.index(self._indicator) + 1) % len(INDICATORS)]
        self._plot()

    def action_compare(self) -> None:
        """Compare with the next symbol."""
        self._beside += self._indicator == "compare"
        self._indicator = "compare"
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
        cursor = chart.shown_view.cursor
        if cursor is not None:
            return self._chart.decided.get(cursor)
        return next(
            (self._chart.decided[row] for row in reversed(chart.rows_in_view) if row in self._chart.decided), None
        )

    def action_why(self) -> None:
        """Open the trail of the decision under the cursor."""
        decision = self._chosen()
        if decision is None:
            self.notify("nothing was decided on this bar", timeout=3)
        elif self._view.sources:
            self.app.push_screen(TrailScreen(self._view.sources[0], decision))

    def action_image(self) -> None:
        """Show the chart that the model was shown for the decision under the cursor."""
        decision = self._chosen()
        if decision is None or not self._view.sources:
            self.notify("nothing was decided on this bar", timeout=3)
        else:
            self._paint(self._view.sources[0], decision)

    @work(group="picture", exclusive=True, exit_on_error=False)
    async def _paint(self, source: Source, decision: Decision) -> None:
        from engine.reports.documents.questions import charts_read
        from tui.screens.chart_image import ChartImageScreen

        services, session = self._view.services, decision.key.session
        assert services is not None
        self.notify(f"painting what was seen for {session}", timeout=2)
        try:
            read = await asyncio.to_thread(source.read, lambda records: charts_read(records, decision))
            if not read:
                self.notify(f"no agent was shown a chart for {self.symbol} on {session}", timeout=4)
                return
            chart, reading = read[0]
            image = await asyncio.to_thread(services.paint, chart)
            path = await asyncio.to_thread(self.desk_app.keep_image, f"{self.symbol}-{session}.png", image)
        except (PaperdeskError, OSError) as error:
            self.notify(str(error), markup=False, severity="error", timeout=6)
            return
        self.app.push_screen(ChartImageScreen(chart.title, path, reading))
