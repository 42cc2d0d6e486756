"""A chart as a value: its content, without its looks. The engine computes it, a ChartPainter renders it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

from engine.domain.json_text import to_json

Series = tuple[float | None, ...]
"""One value per session of the chart; None where there is none yet."""


@dataclass(frozen=True, slots=True)
class Candles:
    """Open, high, low, close per session, in the quote currency; equal lengths."""

    open: tuple[float, ...]
    high: tuple[float, ...]
    low: tuple[float, ...]
    close: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """A named line over the chart's sessions; `role` gives the painter its place in the palette.

    Roles: `close`; `short` and `long` (moving averages); `upper`, `middle` and `lower` (a shaded band); `fast` and
    `signal` (an oscillator and its smoothed self, such as MACD); `k`, `d`, `j`; `benchmark`; `line` for any other.
    """

    name: str
    values: Series
    role: str = "line"


@dataclass(frozen=True, slots=True)
class Panel:
    """A strip under the prices with its own scale: lines, optional bars, horizontal guide levels."""

    name: str
    lines: tuple[Line, ...] = ()
    bars: Series = ()
    levels: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Marker:
    """A past trade or signal at a session (by index): side is BUY or SELL."""

    index: int
    side: str
    price: float


@dataclass(frozen=True, kw_only=True)
class ChartSpec:
    """All content of a chart of a market.

    kind: the kind of chart, such as `kline`.
    sessions: ISO dates, oldest first.
    candles: one per session.
    lines: over the prices.
    panels: below the prices, each with a scale of its own.
    markers: past trades or signals.
    """

    kind: str
    title: str
    symbol: str
    sessions: tuple[str, ...]
    candles: Candles | None = None
    lines: tuple[Line, ...] = ()
    panels: tuple[Panel, ...] = ()
    markers: tuple[Marker, ...] = ()

    def fingerprint(self) -> str:
        """SHA-256 over the chart's data: equal charts, equal fingerprints."""
        return self._written[0]

    def text(self) -> str:
        """The chart as JSON, which its fingerprint is made of."""
        return self._written[1]

    @cached_property
    def _written(self) -> tuple[str, str]:
        # A chart is asked for it by the prompt, the model and the journal: thousands of numbers are written once for
        # all.
        text = to_json(self)
        return hashlib.sha256(text.encode()).hexdigest(), text


@dataclass(frozen=True, slots=True)
class IndicatorTable:
    """The figures of the Kline chart over its last sessions, oldest first: a row per session (ISO date), a
    value per column, None where it is not defined. Prices in the quote currency, volume in shares,
    oscillators 0 to 100."""

    columns: tuple[str, ...]
    sessions: tuple[str, ...]
    rows: tuple[tuple[float | None, ...], ...]

    @property
    def text(self) -> str:
        """The table for a reader without eyes: a heading, then a line per session."""
        lines = [" | ".join(("session", *self.columns))]
        for session, row in zip(self.sessions, self.rows, strict=True):
            lines.append(" | ".join((session, *map(_figure, row))))
        return "\n".join(lines)


def chart_text(chart: ChartSpec) -> str:
    """All figures that a chart shows, in one text to look them up in."""
    candles, series = chart.candles, [line.values for line in chart.lines]
    if candles is not None:
        series += [candles.open, candles.high, candles.low, candles.close]
    for panel in chart.panels:
        series += [*(line.values for line in panel.lines), panel.bars]
    return " ".join(f"{value:.4f}" for values in series for value in values if value is not None)


def _figure(value: float | None) -> str:
    """Two digits after the point, four significant ones below 1, whole numbers from a million on."""
    if value is None:
        return "-"
    size = abs(value)
    return f"{value:.0f}" if size >= 1e6 else f"{value:.4g}" if 0 < size < 1 else f"{value:.2f}"


SAMPLE = ChartSpec(
    kind="kline",
    title="Three sessions",
    symbol="ABC",
    sessions=("2024-01-02", "2024-01-03", "2024-01-04"),
    candles=Candles((10.0, 11.0, 12.0), (11.5, 12.5, 13.5), (9.5, 10.5, 11.5), (11.0, 12.0, 13.0)),
)
"""A chart of no market, for a model that is tried."""
