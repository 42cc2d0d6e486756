"""A track record as columns of floats, and the series shared by all metric conventions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Metrics = dict[str, float | None]
"""Metrics by name; None where one is not defined (a flat series, a single day), never NaN or infinite."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Track:
    """Track record of a run. Amounts are in the quote currency; some fields serve some conventions only.

    equity: before the first session, then at each session's close.
    risk_free: per year, as a fraction.
    invested: value of all positions at each session's close.
    traded: sum of the amounts of all trades.
    benchmark: buy and hold's equity, as long as `equity`.
    model_cost: of all calls, None where it is not known.
    prices: the price at each session's close (InvestorBench).
    positions: decided on at each close, until the next: -1, 0, 1 of agents, the weight of a strategy; the last one
        earns nothing (InvestorBench).
    """

    equity: Floats
    periods_per_year: int = 252
    risk_free: float = 0.0
    invested: Floats | None = None
    traded: float = 0.0
    benchmark: Floats | None = None
    model_cost: float | None = 0.0
    prices: Floats | None = None
    positions: Floats | None = None


def floats(amounts: Iterable[Decimal | float]) -> Floats:
    """Amounts of money as float64."""
    return np.array([float(amount) for amount in amounts], dtype=np.float64)


def simple_returns(equity: Floats) -> Floats | None:
    """Change from one value to the next as a fraction; None where a value to divide by is not positive."""
    if len(equity) and (not np.isfinite(equity).all() or (equity[:-1] <= 0).any()):
        return None
    return np.asarray(equity[1:] / equity[:-1] - 1.0)


def total_return(equity: Floats) -> float | None:
    """Last value over first, less one."""
    return None if len(equity) < 2 else ratio(float(equity[-1] - equity[0]), float(equity[0]))


def max_drawdown(levels: Floats) -> float | None:
    """Deepest fall from a peak, as a positive fraction of it; the first level is a peak."""
    if not len(levels) or levels[0] <= 0:
        return None
    peaks = np.maximum.accumulate(levels)
    return finite(float(np.max(1.0 - levels / peaks)))


def mean(values: Floats) -> float | None:
    """The arithmetic mean; None of nothing."""
    return finite(float(values.mean())) if len(values) else None


def deviation(values: Floats, ddof: int) -> float | None:
    """Standard deviation; None with too few values. Rounding differences of equal values count as zero."""
    if len(values) <= ddof:
        return None
    spread = float(values.std(ddof=ddof))
    return 0.0 if spread <= 1e-12 * float(np.abs(values).max()) else finite(spread)


def ratio(part: float | None, whole: float | None) -> float | None:
    """part / whole; None where either is not defined or the whole is zero."""
    if part is None or whole is None or whole == 0.0:
        return None
    return finite(part / whole)


def scaled(value: float | None, factor: float) -> float | None:
    """value x factor; None stays None."""
    return None if value is None else finite(value * factor)


def finite(value: float) -> float | None:
    """The value, or None where it is NaN or infinite."""
    return value if np.isfinite(value) else None
