"""The data of a candle chart as plain values: the bars, the lines and markers over them, and the part in view."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TYPE_CHECKING, NamedTuple

from engine.domain.chart import Line
from engine.errors import InvariantBroken

if TYPE_CHECKING:
    from engine.domain.chart import Marker
    from engine.domain.decision import Decision
    from engine.domain.order import Fill

DAYS, MINUTES = "1D", "1min"
"""The timeframe of daily bars, and that of the present session, before it."""
INDICATORS = ("RSI", "MACD", "KDJ")

Series = Sequence[float | None]
Compared = tuple[str, Series]
"""A symbol that another is compared with, and its close at each bar of that one; None where it has none."""

LARGEST = 1e15
"""Limit of prices that can be labelled; those beyond count as missing, also because they would overflow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartData:
    """Bars, oldest first, as columns of equal length, with the lines and markers over them.

    open: prices in the quote currency; NaN without a bar
    high: as `open`
    low: as `open`
    close: as `open`
    volume: shares; empty without a volume pane
    days: dates, or datetimes of one time zone for bars within a day
    lines: lines over the prices; two of role "upper" and "lower" make a band
    markers: fills, each with the row of its bar and its side, BUY or SELL
    decided: what was decided on the close of a bar, by its row: BUY, SELL, HOLD, ABSTAIN, or CUT where a limit left no
        order of it
    title: the name at the left of the top row
    hundred: the row whose close all prices are counted from, as 100; None for prices in the quote currency
    """

    open: Sequence[float] = ()
    high: Sequence[float] = ()
    low: Sequence[float] = ()
    close: Sequence[float] = ()
    volume: Sequence[float] = ()
    days: Sequence[date] = ()
    lines: tuple[Line, ...] = ()
    markers: tuple[Marker, ...] = ()
    decided: Mapping[int, str] = field(default_factory=dict)
    title: str = ""
    hundred: int | None = None

    def __post_init__(self) -> None:
        columns = {"highs": self.high, "lows": self.low, "closes": self.close, "days": self.days}
        columns |= {"volumes": self.volume} if len(self.volume) else {}
        columns |= {f"values of {line.name}": line.values for line in self.lines}
        for name, values in columns.items():
            if len(values) != len(self.open):
                raise InvariantBroken(f"chart {self.title!r}: {len(self.open)} opens but {len(values)} {name}")

    def __len__(self) -> int:
        return len(self.open)

    def forming(self, price: float, day: date) -> ChartData:
        """The chart with a bar for a session that has not closed, of which one price is known."""
        return replace(
            self,
            open=(*self.open, price),
            high=(*self.high, price),
            low=(*self.low, price),
            close=(*self.close, price),
            volume=(*self.volume, math.nan) if len(self.volume) else (),
            days=(*self.days, day),
            lines=tuple(replace(line, values=(*line.values, None)) for line in self.lines),
        )

    def from_hundred(self, beside: Compared, rows: range) -> ChartData:
        """The chart with the closes of another symbol as its only line, both from 100 at the first of some rows that
        both have; without such a row as it is."""
        name, closes = beside
        pairs = ((row, self.close[row], closes[row]) for row in rows)
        first = next(((row, own, other) for row, own, other in pairs if own and other and is_drawable(own)), None)
        if first is None:
            return self
        row, own, other = first
        opens, highs, lows, own_closes = (
            [100 * price / own for price in column] for column in (self.open, self.high, self.low, self.close)
        )
        values = [None if close is None else 100 * close / other for close in closes[row:]]
        line = Line(name, (*[None] * row, *values), "benchmark")
        return replace(self, open=opens, high=highs, low=lows, close=own_closes, lines=(line,), hundred=row)


NO_CHART = ChartData()


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolChart:
    """A symbol's chart with what can be drawn under it.

    panes: curves by indicator and name, a value per bar.
    beside: the symbol that it is compared with, and that one's closes, a value per bar; None for none.
    decided: the decisions on closes within each bar, the latest last, by its row.
    fills: the trades within each bar, by its row.
    """

    data: ChartData = field(default_factory=ChartData)
    panes: Mapping[str, Mapping[str, Series]] = field(default_factory=dict)
    beside: Compared | None = None
    decided: Mapping[int, Sequence[Decision]] = field(default_factory=dict)
    fills: Mapping[int, Sequence[Fill]] = field(default_factory=dict)


CUT = "CUT"


def decided_as(decisions: Iterable[Decision]) -> str:
    """The decision on a bar, by one owner or several: an order comes first, then what a limit cut, then a HOLD."""
    found = {CUT if one.cuts and not one.size else one.action.value for one in decisions}
    return next((name for name in ("BUY", "SELL", CUT, "HOLD") if name in found), "ABSTAIN")


@dataclass(frozen=True, slots=True)
class ChartView:
    """The part of the data in view.

    step: columns to a candle
    per: bars to a candle
    end: the row after the last bar in view; None for the newest
    cursor: the row of the bar under the cursor; None without a cursor
    """

    step: int = 2
    per: int = 1
    end: int | None = None
    cursor: int | None = None


class Candle(NamedTuple):
    """One candle as drawn.

    first, last: the rows of the data that are taken together
    x: its column in the plot
    open, high, low, close: prices in the quote currency
    volume: shares; NaN without
    """

    first: int
    last: int
    x: int
    open: float
    high: float
    low: float
    close: float
    volume: float

    @property
    def up(self) -> bool:
        """True for a close at or above the open."""
        return self.close >= self.open


def visible_candles(data: ChartData, view: ChartView, columns: int) -> list[Candle]:
    """List the candles that fit into a plot of `columns` cells, the newest at its right edge.

    Groups of `per` bars start at multiples of `per`, so that a candle keeps its shape while the user pans. Bars without
    a usable price leave their place empty.
    """
    step, per = max(1, view.step), max(1, view.per)
    end = len(data) if view.end is None else max(0, min(view.end, len(data)))
    groups = -(-end // per)
    shown = min(groups, columns // step)
    candles: list[Candle] = []
    for place, group in enumerate(range(groups - shown, groups)):
        first, stop = group * per, min((group + 1) * per, end)
        candle = candle_of(data, first, stop, columns - (shown - place) * step)
        if candle is not None:
            candles.append(candle)
    return candles


def candle_of(data: ChartData, first: int, stop: int, x: int) -> Candle | None:
    """Merge the bars of a group into one candle; None where no bar of it has usable prices."""
    rows = [row for row in range(first, stop) if _usable(data, row)]
    if not rows:
        return None
    start, close = data.open[rows[0]], data.close[rows[-1]]
    high = max(*(data.high[row] for row in rows), start, close)
    low = min(*(data.low[row] for row in rows), start, close)
    volumes = [data.volume[row] for row in rows if is_drawable(data.volume[row])] if len(data.volume) else []
    return Candle(first, stop - 1, x, start, high, low, close, sum(volumes) if volumes else math.nan)


def _usable(data: ChartData, row: int) -> bool:
    return all(is_drawable(column[row]) for column in (data.open, data.high, data.low, data.close))


def is_drawable(value: float | None) -> bool:
    """True for a value that is not None, NaN, infinite or beyond LARGEST."""
    return value is not None and -LARGEST <= value <= LARGEST
