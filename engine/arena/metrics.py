"""Figures of an arena: what each agent earned, and what the market did.

Source: Agent Trading Arena §5 [R7]; deviations from the fundamental value after Stöckl, Huber and Kirchler (2010).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from statistics import fmean, stdev

from engine.arena.market import Market

Figures = Mapping[str, float | None]


def agent_figures(wealth: Sequence[Decimal], trend: float | None) -> Figures:
    """Figures of one agent from its wealth at the beginning and at each close.

    The Sharpe ratio is mean over standard deviation of daily returns, with a risk-free rate of 0 and not annualized.
    `difference` is the total return less the average trend of the stocks.
    """
    returns = _returns(wealth)
    total = float(wealth[-1] / wealth[0]) - 1 if wealth[0] else None
    return {
        "total_return": total,
        "win_rate": sum(one > 0 for one in returns) / len(returns) if returns else None,
        "mean_return": fmean(returns) if returns else None,
        "standard_deviation": stdev(returns) if len(returns) > 1 else None,
        "sharpe": _sharpe(returns),
        "difference": None if total is None or trend is None else total - trend,
    }


def market_figures(market: Market) -> Figures:
    """Figures of the market: returns of stocks are those of reference prices, the index weights them equally.

    deviation and relative_deviation: mean absolute and mean difference of closes and fundamental value, in parts of the
    mean fundamental value (RAD and RD); None where a preset has none.
    """
    closes = [listing.closes for listing in market.listings.values()]
    trends = [float(one[-1] / one[0]) - 1 for one in closes]
    index = [fmean(day) for day in zip(*(_returns(one) for one in closes), strict=True)]
    traded = sum(one.quantity for one in market.trades)
    gaps, values = _gaps(market)
    worth = fmean(values) if values else 0.0
    return {
        "average_trend": fmean(trends),
        "index_sharpe": _sharpe(index),
        "volatility": stdev(index) if len(index) > 1 else None,
        "turnover": traded / sum(listing.shares for listing in market.listings.values()),
        "deviation": fmean(map(abs, gaps)) / worth if worth else None,
        "relative_deviation": fmean(gaps) / worth if worth else None,
    }


def most_volatile(market: Market) -> tuple[str, float] | None:
    """The stock whose daily returns have the greatest deviation, with its trend; None before the second day.

    Source: Agent Trading Arena, figure 5 [R7].
    """
    spreads = {
        name: stdev(_returns(one.closes)) for name, one in market.listings.items() if len(_returns(one.closes)) > 1
    }
    if not spreads:
        return None
    name = max(spreads, key=lambda one: spreads[one])
    closes = market.listings[name].closes
    return name, float(closes[-1] / closes[0]) - 1


def _gaps(market: Market) -> tuple[list[float], list[float]]:
    """Differences of closes and fundamental value, and the values, by stock and day."""
    gaps, values = [], []
    for listing in market.listings.values():
        for day, close in enumerate(listing.closes[1:], 1):
            value = market.rules.fundamental_value(listing.rules, day)
            if value is not None:
                gaps.append(float(close - value))
                values.append(float(value))
    return gaps, values


def _returns(values: Sequence[Decimal]) -> list[float]:
    return [float(b / a) - 1 if a else 0.0 for a, b in pairwise(values)]


def _sharpe(returns: Sequence[float]) -> float | None:
    spread = stdev(returns) if len(returns) > 1 else 0.0
    return fmean(returns) / spread if spread > 0 else None
