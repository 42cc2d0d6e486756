"""Charts of a result's document for its page: value, drawdown, exposure, rolling figures, prices with trades;
and the series that they draw."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain, cycle
from statistics import fmean, stdev
from typing import Any

from engine.domain.decision import HORIZON_TYPES, RetrievalType
from engine.domain.text import counted, cut_between_words
from engine.reports.documents.backtest import growth_of, returns_of, sessions_of
from engine.reports.performance import BENCHMARK
from engine.reports.summary import drawdowns, name_of
from engine.reports.svg_charts import Cloud, Curve, Mark, scatter, svg

Document = Mapping[str, Any]
KINDS = tuple(f"kind{number}" for number in range(8))
"""Styles by which kinds of curves or points are told apart; of more than these the colours come again."""
UNHELD = "Closes are those that the books knew: a desk has none of a symbol that it does not hold."


@dataclass(frozen=True, slots=True)
class Chart:
    """A titled chart; `legend` has a style and a name for each kind of curve or mark, `note` what else is to be
    known."""

    title: str
    drawing: str
    legend: tuple[tuple[str, str], ...]
    note: str = ""


def charts(document: Document) -> list[Chart]:
    """Every chart that there are sessions for."""
    made = (*_values(document), _exposure(document), *_rolling(document), *_prices(document))
    return [chart for chart in made if chart.drawing]


def growth_charts(document: Document) -> Iterator[Chart]:
    """The cumulative returns of all rows of a bench, a chart for each symbol of a table. Source: FinAgent figure 4
    [A11]."""
    for one in document["curves"]:
        yield growth_chart(f"{one['table']}, {one['symbol']}: cumulative return", one["sessions"], one["rows"])


def growth_chart(title: str, sessions: Sequence[str], rows: Mapping[str, Sequence[float | None]]) -> Chart:
    """Cumulative returns by session over each other, each told apart."""
    others = (name for name in rows if name != BENCHMARK)
    styles = {BENCHMARK: "held", **dict(zip(others, chain(("own",), cycle(KINDS)), strict=False))}
    curves = [Curve(name, rows[name], styles[name]) for name in reversed([*rows])]
    return Chart(title, svg(curves, sessions, 320, title, percent=True), tuple((styles[name], name) for name in rows))


FAMILIES = {
    "horizon": HORIZON_TYPES,
    "move of the price": (RetrievalType.PRICE_UP, RetrievalType.PRICE_DOWN),
    "trend": (RetrievalType.BULLISH_TREND, RetrievalType.BEARISH_TREND),
    "source": (RetrievalType.NEWS, RetrievalType.REPORTS),
}
"""Retrieval types that exclude each other, of which a memory seldom has several."""


def memory_charts(document: Document) -> Iterator[Chart]:
    """The memories of a map by retrieval type. Source: FinAgent figure 5b [A2]."""
    for family, types in FAMILIES.items():
        clouds = []
        for style, kind in (("other", None), *zip(KINDS, types, strict=False)):
            points = [
                (
                    one["x"],
                    one["y"],
                    f"{one['session']} {one['symbol']} {one['kind']}, {cut_between_words(one['text'], 120)}",
                )
                for one in document["memories"]
                if (kind in one["types"] if kind else not set(types).intersection(one["types"]))
            ]
            clouds.append(Cloud(kind or "none of these", points, style))
        title = f"Memories by {family}"
        yield Chart(title, scatter(clouds, 420, title), tuple((one.style, one.name) for one in clouds if one.points))


def _values(document: Document) -> Iterator[Chart]:
    """Value and drawdown by session, from the money that the run began with."""
    name, points, sessions = name_of(document), document["equity"], sessions_of(document)
    own = [float(point["value"]) for point in points]
    beside = {n: [float(v) for v in b["equity"]] for n, b in document["baselines"].items() if n != name}
    held = beside.pop(BENCHMARK, None)
    curves = [Curve(other, values, "other") for other, values in beside.items()]
    front = [Curve(name, own, "own")] if held is None else [Curve(BENCHMARK, held, "held"), Curve(name, own, "own")]
    benchmark = () if held is None else (("held", BENCHMARK),)
    others = (("other", f"other rules: {', '.join(beside)}"),) if beside else ()
    drawing = svg([*curves, *front], sessions, 320, "value by session")
    yield Chart("Value by session", drawing, (("own", name), *benchmark, *others))
    initial = float(document["initial_value"])
    falls = [Curve(name, drawdowns(growth_of(document))[1:], "fall")]
    if held is not None:
        falls.insert(0, Curve(BENCHMARK, drawdowns([initial, *held])[1:], "held"))
    drawing = svg(falls, sessions, 160, "drawdown by session", percent=True)
    yield Chart("Below the highest value so far", drawing, (("fall", name), *benchmark))


def _exposure(document: Document) -> Chart:
    curve = Curve("exposure", exposures(document), "share")
    drawing = svg([curve], sessions_of(document), 140, "exposure by session", percent=True)
    return Chart("Exposure: share of the portfolio that is not cash", drawing, ())


def _rolling(document: Document) -> Iterator[Chart]:
    sessions = sessions_of(document)
    window = rolling_window(len(sessions))
    if not window:
        return
    sharpes, volatilities = rolling(document, window)
    for title, values, percent in (("Sharpe ratio", sharpes, False), ("Annualized volatility", volatilities, True)):
        drawing = svg([Curve(title, values, "own")], sessions, 140, f"rolling {title}", percent=percent)
        yield Chart(f"{title} over the last {window} sessions", drawing, ())


WINDOW = 60
"""Sessions of a rolling figure; a third of the run where that is less."""
FEWEST = 10
"""Sessions that a rolling figure takes at least."""


def rolling_window(count: int) -> int:
    """The number of sessions that rolling figures of a run of `count` sessions are over, 0 where it is too short."""
    window = min(WINDOW, count // 3)
    return window if window >= FEWEST else 0


def rolling(document: Document, window: int) -> tuple[Series, Series]:
    """Sharpe ratio without a risk-free rate and volatility, both a year, over the last `window` sessions at each close;
    None before that, and a Sharpe ratio of what did not move."""
    # A backtest has it among its settings.
    returns, periods = returns_of(document), {**document["settings"], **document}["periods_per_year"]
    sharpes: Series = [None] * len(returns)
    volatilities: Series = [None] * len(returns)
    for last in range(window, len(returns) + 1):
        part = returns[last - window : last]
        spread = stdev(part)
        volatilities[last - 1] = spread * math.sqrt(periods)
        sharpes[last - 1] = fmean(part) / spread * math.sqrt(periods) if spread > 1e-12 else None
    return sharpes, volatilities


def _prices(document: Document) -> Iterator[Chart]:
    """The closes of each symbol with its trades, at the prices that they were filled at."""
    sessions, name = sessions_of(document), name_of(document)
    for symbol in document["symbols"]:
        marks = [
            Mark(number, float(trade["price"]), trade["side"] == "BUY", _told(trade))
            for number, trade in trades_of(document, symbol)
        ]
        kinds = {mark.buy for mark in marks}
        legend = [("close", "close as traded"), *([("buy", "bought")] if True in kinds else [])]
        legend += [("sell", "sold")] if False in kinds else []
        closes = closes_of(document, symbol)
        drawing = svg(
            [Curve(symbol, closes, "close")], sessions, 220, f"price of {symbol} with trades of {name}", marks=marks
        )
        count = counted(len(marks), "trade")
        note = UNHELD if None in closes else ""
        yield Chart(f"{symbol}: price and {count}", drawing, tuple(legend), note)


def _told(trade: Mapping[str, Any]) -> str:
    return f"{trade['session']} {trade['side']} {Decimal(trade['quantity']):,.4f} at {Decimal(trade['price']):,.4f}"


Series = list[float | None]


def exposures(document: Document) -> Series:
    """The share of the portfolio that is not cash at each close; None where it is worth nothing."""
    found: Series = []
    for point in document["equity"]:
        value, cash = Decimal(point["value"]), Decimal(point["cash"])
        found.append(float((value - cash) / value) if value > 0 else None)
    return found


def closes_of(document: Document, symbol: str) -> Series:
    """Closes of a symbol as traded."""
    return [None if close is None else float(close) for close in document["closes"][symbol]]


def trades_of(document: Document, symbol: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The trades of a symbol, each with the number of its session."""
    numbers = {session: number for number, session in enumerate(sessions_of(document))}
    for trade in document["trades"]:
        if trade["symbol"] == symbol and trade["session"] in numbers:
            yield numbers[trade["session"]], trade


def symbol_costs(document: Document) -> Iterator[Sequence[Decimal | int | str]]:
    """By symbol: trades, the amount traded, fees, and what slippage took at the rate that is set."""
    rate = Decimal(document["settings"].get("slippage_bp") or 0) / 10_000
    for symbol in document["symbols"]:
        own = [trade for trade in document["trades"] if trade["symbol"] == symbol]
        traded = sum((Decimal(one["quantity"]) * Decimal(one["price"]) for one in own), Decimal(0))
        fees = sum((Decimal(one["fee"]) for one in own), Decimal(0))
        yield symbol, len(own), traded, fees, traded * rate
