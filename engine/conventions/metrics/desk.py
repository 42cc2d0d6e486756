"""Metrics of the house convention: standard formulas on simple daily returns, with confidence intervals."""

from __future__ import annotations

import math

import numpy as np

from engine.conventions.metrics.bootstrap import excess_interval, sharpe_interval
from engine.conventions.metrics.track import (
    Floats,
    Metrics,
    Track,
    deviation,
    finite,
    max_drawdown,
    mean,
    ratio,
    scaled,
    simple_returns,
    total_return,
)


def desk(track: Track) -> Metrics:
    """The metrics of convention `desk`; fractions, not percent.

    - total_return: last equity over first, less one; cagr: the same compounded to a year
    - volatility: sample deviation of daily returns x sqrt(periods)
    - sharpe, sortino: mean daily return over the risk-free one, divided by its sample deviation or by the
      root mean square of its losses over all days; x sqrt(periods)
    - max_drawdown: a positive fraction, from the starting equity; calmar: cagr over it
    - win_rate: sessions that ended higher over all sessions
    - turnover: value traded in a year over mean equity (to buy in and hold for a year is about 1)
    - exposure: mean share of the equity that is invested
    - excess_return: total return less buy and hold's
    - net_of_model_cost: total return with the models' cost taken from the final equity
    - _low and _high: 95 % intervals by block bootstrap
    """
    returns = simple_returns(track.equity)
    if returns is None:
        returns = np.empty(0)
    periods = track.periods_per_year
    excess = returns - track.risk_free / periods
    annual = math.sqrt(periods)
    grown = total_return(track.equity)
    growth = _cagr(grown, len(returns), periods)
    fall = max_drawdown(track.equity)
    held = None if track.benchmark is None else total_return(track.benchmark)
    sharpe_low, sharpe_high = sharpe_interval(excess, periods)
    excess_low, excess_high = _excess_interval(returns, track.benchmark)
    return {
        "total_return": grown,
        "cagr": growth,
        "volatility": scaled(deviation(returns, 1), annual),
        "sharpe": scaled(ratio(mean(excess), deviation(excess, 1)), annual),
        "sharpe_low": sharpe_low,
        "sharpe_high": sharpe_high,
        "sortino": scaled(ratio(mean(excess), _downside(excess)), annual),
        "calmar": ratio(growth, fall),
        "max_drawdown": fall if len(track.equity) > 1 else None,
        "win_rate": mean((returns > 0).astype(np.float64)),
        "turnover": _turnover(track, len(returns)),
        "exposure": _exposure(track),
        "excess_return": None if grown is None or held is None else grown - held,
        "excess_low": excess_low,
        "excess_high": excess_high,
        "net_of_model_cost": _net(track),
    }


def _cagr(grown: float | None, sessions: int, periods: int) -> float | None:
    if grown is None or sessions == 0 or grown < -1.0:
        return None
    try:
        return finite((1.0 + grown) ** (periods / sessions) - 1.0)
    except OverflowError:
        return None


def _downside(excess: Floats) -> float | None:
    if not len(excess):
        return None
    losses = np.minimum(excess, 0.0)
    return finite(math.sqrt(float(np.mean(losses * losses))))


def _turnover(track: Track, sessions: int) -> float | None:
    return None if sessions == 0 else ratio(track.traded * track.periods_per_year / sessions, mean(track.equity[1:]))


def _exposure(track: Track) -> float | None:
    if track.invested is None or not len(track.invested) or (track.equity[1:] <= 0).any():
        return None
    return mean(np.abs(track.invested) / track.equity[1:])


def _excess_interval(returns: Floats, benchmark: Floats | None) -> tuple[float | None, float | None]:
    theirs = None if benchmark is None else simple_returns(benchmark)
    if theirs is None or len(theirs) != len(returns):
        return None, None
    return excess_interval(returns, theirs)


def _net(track: Track) -> float | None:
    if len(track.equity) < 2 or track.model_cost is None:
        return None
    return ratio(float(track.equity[-1]) - track.model_cost - float(track.equity[0]), float(track.equity[0]))
