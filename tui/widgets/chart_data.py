"""What a candle chart shows, as plain values: the bars, what is laid over them, and which part is in view."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from engine.domain.chart import Line, Marker
from engine.domain.market import NANO, PriceHistory
from engine.errors import InvariantBroken

LARGEST = 1e15
"""Prices beyond this cannot be labelled sensibly (and would overflow on the way); they count as missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartData:
    """Bars oldest first, as columns of equal length: prices in the quote currency (NaN: no bar), volume in
    shares (empty: no volume pane), `days` as dates, or as datetimes of one time zone for bars within a day.

    `lines` are drawn over the prices; two of role "upper" and "lower" make a band. `markers` carry the row of
    their bar and a side: BUY and SELL are fills, any other word is a decision without an order.
    """

    open: Sequence[float] = ()
    high: Sequence[float] = ()
    low: Sequence[float] = ()
    close: Sequence[float] = ()
    volume: Sequence[float] = ()
    days: Sequence[date] = ()
    lines: tuple[Line, ...] = ()
    markers: tuple[Marker, ...] = ()
    title: str = ""

    def __post_init__(self) -> None:
        columns = {"highs": self.high, "lows": self.low, "closes": self.close, "days": self.days}
        columns |= {"volumes": self.volume} if len(self.volume) else {}
        columns |= {f"values of {line.name}": line.values for line in self.lines}
        for name, values in columns.items():
            if len(values) != len(self.open):
                raise InvariantBroken(f"chart {self.title!r}: {len(self.open)} opens but {len(values)} {name}")

    def __len__(self) -> int:
        return len(self.open)

    @classmethod
    def of_history(
        cls,
        history: PriceHistory,
        *,
        lines: tuple[Line, ...] = (),
        markers: tuple[Marker, ...] = (),
        title: str | None = None,
    ) -> ChartData:
        """The chart of a symbol's daily bars; `lines` have one value per bar."""
        return cls(
            open=[price / NANO for price in history.open],
            high=[price / NANO for price in history.high],
            low=[price / NANO for price in history.low],
            close=[price / NANO for price in history.close],
            volume=history.volume,
            days=[date.fromordinal(day) for day in history.sessions],
            lines=lines,
            markers=markers,
            title=f"{history.symbol} 1D" if title is None else title,
        )


@dataclass(frozen=True, slots=True)
class ChartView:
    """Which part of the data is shown.

    A candle takes `step` columns and stands for `per` bars; `end` is the row after the last bar shown (None:
    the newest), `cursor` the row of the bar under the cursor (None: no cursor).
    """

    step: int = 2
    per: int = 1
    end: int | None = None
    cursor: int | None = None


class Candle(NamedTuple):
    """One candle drawn: rows `first` to `last` of the data taken together, at column `x` of the plot."""

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
        """Whether it closed at or above its open."""
        return self.close >= self.open


def fitting_view(bars: int, columns: int) -> ChartView:
    """The view that shows all bars at once: the widest candles that fit, else several bars to a candle."""
    columns, bars = max(1, columns), max(1, bars)
    steps = [step for step in (8, 6, 4, 3, 2, 1) if step * bars <= columns]
    return ChartView(step=steps[0]) if steps else ChartView(step=2, per=-(-bars // max(1, columns // 2)))


def visible_candles(data: ChartData, view: ChartView, columns: int) -> list[Candle]:
    """The candles that fit into a plot of `columns` cells, the newest against its right edge.

    Groups of `per` bars start at multiples of `per`, so that a candle keeps its shape while one pans. Bars
    without a usable price leave their place empty.
    """
    step, per = max(1, view.step), max(1, view.per)
    end = len(data) if view.end is None else max(0, min(view.end, len(data)))
    groups = -(-end // per)
    shown = min(groups, columns // step)
    candles: list[Candle] = []
    for place, group in enumerate(range(groups - shown, groups)):
        first, stop = group * per, min((group + 1) * per, end)
        candle = _candle(data, first, stop, columns - (shown - place) * step)
        if candle is not None:
            candles.append(candle)
    return candles


def _candle(data: ChartData, first: int, stop: int, x: int) -> Candle | None:
    """The bars of a group as one candle; None where no bar of it has usable prices."""
    rows = [row for row in range(first, stop) if _usable(data, row)]
    if not rows:
        return None
    start, close = data.open[rows[0]], data.close[rows[-1]]
    high = max(*(data.high[row] for row in rows), start, close)
    low = min(*(data.low[row] for row in rows), start, close)
    volumes = [data.volume[row] for row in rows if known(data.volume[row])] if len(data.volume) else []
    return Candle(first, stop - 1, x, start, high, low, close, sum(volumes) if volumes else math.nan)


def _usable(data: ChartData, row: int) -> bool:
    return known(data.open[row]) and known(data.high[row]) and known(data.low[row]) and known(data.close[row])


def known(value: float | None) -> bool:
    """Whether a value is there and can be drawn: not None, NaN, infinite or beyond LARGEST."""
    return value is not None and -LARGEST <= value <= LARGEST
