"""The market as the Desk shows it: last prices for the watchlist and a chart per symbol, made beside the screen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from engine.domain.chart import Marker
from engine.domain.exchanges import AROUND_THE_CLOCK
from engine.domain.market import ActionKind, is_crypto
from tui.chart_data import ChartData
from tui.symbol_chart import price_lines

if TYPE_CHECKING:
    from engine.domain.market import PriceHistory, Symbol
    from engine.domain.order import Fill
    from engine.market.as_of import Market
    from engine.market.point_in_time import MarketAsOf
    from engine.ports import Calendar

CHART_BARS = 520
"""Bars of a chart: two years, and what its averages need."""


@dataclass(frozen=True, slots=True)
class Quote:
    """A symbol's last close and its change from the close before, as a fraction, and the session of that close; None
    where there is no bar."""

    symbol: str
    last: Decimal | None
    change: float | None
    session: date | None = None

    def at(self, price: Decimal | None, opened: date) -> Quote:
        """The quote at a live price, where the session `opened` is later than the last close, else as it is."""
        if price is None or self.last is None or self.session is None or opened <= self.session:
            return self
        return Quote(self.symbol, price, float(price / self.last - 1), opened)


@dataclass(frozen=True, slots=True)
class MarketView:
    """The market at a moment, for screens; `calendar` is the exchange's where any symbol trades on one."""

    quotes: tuple[Quote, ...] = ()
    charts: Mapping[str, ChartData] = field(default_factory=dict)
    calendar: Calendar | None = None
    as_of: MarketAsOf | None = None
    """The data that these were made from."""
    splits: Mapping[str, tuple[date, ...]] = field(default_factory=dict)
    """The days from which shares are counted anew."""


def at_prices(view: MarketView, prices: Mapping[Symbol, Decimal], now: datetime) -> MarketView:
    """The market at live prices, as far as these belong to a session after the last close: in the quotes, and as a last
    bar of the charts."""
    from engine.market.as_of import last_opened

    exchange = now.date() if view.calendar is None else last_opened(view.calendar, now)
    quotes, moved = [], dict[str, Quote]()
    for closed in view.quotes:
        symbol = closed.symbol
        quote = closed.at(prices.get(symbol), now.date() if is_crypto(symbol) else exchange)
        quotes.append(quote)
        if quote is not closed:
            moved[symbol] = quote
    return replace(view, quotes=tuple(quotes), charts=_LiveCharts(view.charts, moved))


class _LiveCharts(Mapping[str, ChartData]):
    """Charts at live prices, each made when it is first asked for: of many symbols one is shown."""

    def __init__(self, closed: Mapping[str, ChartData], moved: Mapping[str, Quote]) -> None:
        self._closed, self._moved = closed, moved
        self._made: dict[str, ChartData] = {}

    def __getitem__(self, symbol: str) -> ChartData:
        if symbol not in self._made:
            chart, quote = self._closed[symbol], self._moved.get(symbol)
            if quote is not None and quote.last is not None and quote.session is not None:
                chart = chart.forming(float(quote.last), quote.session)
            self._made[symbol] = chart
        return self._made[symbol]

    def __iter__(self) -> Iterator[str]:
        return iter(self._closed)

    def __len__(self) -> int:
        return len(self._closed)


def market_view(market: Market, symbols: Sequence[Symbol], now: datetime, fills: Sequence[Fill] = ()) -> MarketView:
    """Quotes and charts of what is known at `now` (UTC); fills become marks on the charts. Takes tens of
    milliseconds: never on a screen's loop."""
    known = market.at(now)
    quotes: list[Quote] = []
    charts: dict[str, ChartData] = {}
    for symbol in symbols:
        if symbol not in market.histories or not known.count(symbol):
            quotes.append(Quote(symbol, None, None))
            charts[symbol] = ChartData(title=f"{symbol} 1D")
            continue
        bars = known.bars(symbol, CHART_BARS)
        change = bars.close[-1] / bars.close[-2] - 1 if len(bars) > 1 else None
        quotes.append(Quote(symbol, known.close(symbol), change, bars.session(-1)))
        markers = _markers(bars, (fill for fill in fills if fill.symbol == symbol))
        daily = ChartData.of_history(bars, lines=(), markers=markers)
        charts[symbol] = replace(daily, lines=price_lines(daily))
    splits = {
        symbol: tuple(action.ex_date for action in actions or () if action.kind is ActionKind.SPLIT)
        for symbol, actions in market.actions.items()
    }
    calendars = [market.calendars[symbol] for symbol in symbols if symbol in market.calendars]
    return MarketView(tuple(quotes), charts, exchange_of(calendars), known, splits)


def exchange_of(calendars: Sequence[Calendar]) -> Calendar | None:
    """The calendar that a desk's sessions go by: the exchange's where any symbol trades on one; None without any."""
    return next((one for one in calendars if one.name != AROUND_THE_CLOCK), calendars[0] if calendars else None)


def _markers(bars: PriceHistory, fills: Iterable[Fill]) -> tuple[Marker, ...]:
    placed = ((bars.index(fill.session), fill) for fill in fills)
    return tuple(Marker(row, fill.side.value, float(fill.price)) for row, fill in placed if row is not None)


def last_to_decide(calendar: Calendar, symbols: Iterable[Symbol], now: datetime) -> date:
    """The session that a run at a moment decides for."""
    from engine.market.trading_hours import session_to_decide

    return session_to_decide(calendar, symbols, None, now)
