"""Series over the sessions of a result's document: returns, exposure, rolling figures, closes and trades by symbol."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import accumulate, pairwise
from operator import mul
from statistics import fmean, stdev
from typing import Any

Document = Mapping[str, Any]
Series = list[float | None]
WINDOW = 60
"""Sessions of a rolling figure; a third of the run where that is less."""
FEWEST = 10
"""Sessions that a rolling figure takes at least."""


def sessions_of(document: Document) -> list[str]:
    """The sessions that were valued."""
    return [point["session"] for point in document["equity"]]


def returns_of(document: Document) -> list[float]:
    """Returns from close to close as fractions, the first from the initial value; of a desk time-weighted."""
    points = document["equity"]
    if points and "change" in points[0]:
        return [point["change"] or 0.0 for point in points]
    values = [float(document["initial_value"]), *(float(point["value"]) for point in points)]
    return [after / before - 1 if before > 0 else 0.0 for before, after in pairwise(values)]


def growth_of(document: Document) -> list[float]:
    """The worth of one unit of money at each close, 1 before the first session."""
    return list(accumulate((1 + change for change in returns_of(document)), mul, initial=1.0))


def exposures(document: Document) -> Series:
    """The share of the portfolio that is not cash at each close; None where it is worth nothing."""
    found: Series = []
    for point in document["equity"]:
        value, cash = Decimal(point["value"]), Decimal(point["cash"])
        found.append(float((value - cash) / value) if value > 0 else None)
    return found


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
