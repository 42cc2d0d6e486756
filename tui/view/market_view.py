"""The market at a moment, as the Desk shows it: last prices for the watchlist, and a chart per symbol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from tui.charts.chart_data import ChartData

if TYPE_CHECKING:
    from engine.domain.market import Symbol
    from engine.market.as_of import MarketAsOf
    from engine.ports import Calendar

DAYS = 30
"""Sessions whose closes a quote has."""


@dataclass(frozen=True, slots=True)
class Quote:
    """A symbol's last close and its change from the close before, as a fraction, and the session of that close; None
    where there is no bar. `live` where it is a price of a session that has not closed. `closes` are the latest, up to
    DAYS, the last of them included; `low` and `high` are of its session, None where they are not known."""

    symbol: str
    last: Decimal | None
    change: float | None
    session: date | None = None
    live: bool = False
    closes: tuple[float, ...] = ()
    low: Decimal | None = None
    high: Decimal | None = None

    def at(self, price: Decimal | None, opened: date) -> Quote:
        """The quote at a live price, where the session `opened` is later than the last close, else as it is."""
        if price is None or self.last is None or self.session is None or opened <= self.session:
            return self
        closes = (*self.closes, float(price))[-DAYS:]
        return Quote(self.symbol, price, float(price / self.last - 1), opened, live=True, closes=closes)


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
    from engine.domain.market import is_crypto
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
