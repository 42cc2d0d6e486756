"""Metrics of the papers, as inferred from their published rows; names and units are theirs."""

from __future__ import annotations

import math

import numpy as np

from engine.conventions.metrics.track import (
    Floats,
    Metrics,
    Track,
    deviation,
    max_drawdown,
    mean,
    ratio,
    scaled,
    simple_returns,
    total_return,
)

TRADING_DAYS = 252


def finvision(track: Track) -> Metrics:
    """ARR and MDD in percent, SR; values at the closes alone, risk-free rate 2 % a year.

    Source: FinVision §4.2, Table 2 [V10]; the risk-free rate is not stated there and was found by experiment.
    """
    closes = track.equity[1:]
    returns = _returns(closes)
    excess = returns - 0.02 / TRADING_DAYS
    grown = total_return(closes)
    return {
        "ARR": None if grown is None else 100.0 * grown * TRADING_DAYS / (len(closes) - 1),
        "SR": scaled(ratio(mean(excess), deviation(returns, 1)), math.sqrt(TRADING_DAYS)),
        "MDD": scaled(max_drawdown(closes), 100.0),
    }


def finagent(track: Track) -> Metrics:
    """ARR and MDD in percent, SR, SOR, CR, daily VOL.

    Returns begin with a zero for the reset and the step that pays the commission; T is the number of all of
    them. SR is not annualized but multiplied by sqrt(T), SOR and CR by 252. Source: FinAgent §5.2 [A11].
    """
    daily = _returns(track.equity)
    if not len(daily):
        return dict.fromkeys(("ARR", "SR", "MDD", "SOR", "CR", "VOL"))
    returns = np.concatenate([[0.0], daily])
    count = len(returns)
    levels = np.asarray(np.cumprod(1.0 + returns), dtype=np.float64)
    spread, fall = deviation(returns, 0), max_drawdown(levels)
    annual = scaled(mean(returns), TRADING_DAYS)
    return {
        "ARR": 100.0 * (float(levels[-1]) - 1.0) / count * TRADING_DAYS,
        "SR": scaled(ratio(mean(returns), spread), math.sqrt(count)),
        "MDD": scaled(fall, 100.0),
        "SOR": ratio(annual, deviation(returns[returns < 0], 0)),
        "CR": ratio(annual, fall),
        "VOL": spread,
    }


def investorbench(track: Track) -> Metrics:
    """CR, AV and MDD in percent, SR; log returns of the prices times the position that was decided on.

    SR divides CR by the number of prices in years of 252 days, whatever AV is annualized with. All are None without
    prices and positions: what the books earned is another figure. Source: InvestorBench A.2 [I9].
    """
    earned = _log_returns(track)
    if earned is None or not len(earned):
        return dict.fromkeys(("CR", "SR", "AV", "MDD"))
    total = float(earned.sum())
    volatility = scaled(deviation(earned, 1), math.sqrt(track.periods_per_year))
    return {
        "CR": 100.0 * total,
        "SR": ratio(total / ((len(earned) + 1) / TRADING_DAYS), volatility),
        "AV": scaled(volatility, 100.0),
        "MDD": scaled(max_drawdown(np.cumprod(np.concatenate([[1.0], 1.0 + earned]))), 100.0),
    }


def arena(track: Track) -> Metrics:
    """TR, Mean, Std and WR (days that ended higher) in percent, SR = Mean / Std; nothing is annualized.

    Source: Agent Trading Arena §4.1 [R7].
    """
    returns = _returns(track.equity)
    average, spread = mean(returns), deviation(returns, 1)
    return {
        "TR": scaled(total_return(track.equity), 100.0),
        "Mean": scaled(average, 100.0),
        "Std": scaled(spread, 100.0),
        "WR": scaled(mean((returns > 0).astype(np.float64)), 100.0),
        "SR": ratio(average, spread),
    }


def tradinggpt(track: Track) -> Metrics:
    """CR (cumulative return) and VOL (a year) in percent, SR without a risk-free rate; the paper prints no formulas,
    these are the usual ones on simple daily returns. Source: TradingGPT §5 [G8].
    """
    returns, annual = _returns(track.equity), math.sqrt(track.periods_per_year)
    return {
        "CR": scaled(total_return(track.equity), 100.0),
        "VOL": scaled(deviation(returns, 1), 100.0 * annual),
        "SR": scaled(ratio(mean(returns), deviation(returns, 1)), annual),
    }


def _returns(values: Floats) -> Floats:
    returns = simple_returns(values)
    return np.empty(0) if returns is None else returns


def _log_returns(track: Track) -> Floats | None:
    if track.prices is None or track.positions is None or not (track.prices > 0).all():
        return None
    moves = np.diff(np.log(track.prices))
    return np.asarray(moves * track.positions[: len(moves)])
