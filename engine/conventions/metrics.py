"""Metrics by convention: each a named set of formulas over one track record; an undefined metric is None.

A track record as columns of floats, and the series shared by all metric conventions.

Confidence intervals by standard errors that allow for days which belong together, in blocks whose length the data
decide. Simulated, they cover .93 to .97 from 25 days on, of independent returns and of those with momentum or with
volatility that clusters.

Metrics of the house convention: standard formulas on simple daily returns, with confidence intervals.

Metrics of the papers, as inferred from their published rows; names and units are theirs.

Skill of opinions against what followed: hit rate, slugging, rank correlation, each over a horizon of sessions.

Opinions of neighbouring sessions share most of a horizon of 5 or 20 sessions, so intervals take whole stretches of the
horizon together: about n / horizon of them are independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Any

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
    return np.fromiter(map(float, amounts), np.float64)


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


FEWEST = 20
"""Number of days below which no interval is given."""
FEWEST_GROUPS = 8
"""The same for values in groups."""
_NORMAL_95 = 1.959964
"""The normal distribution lies by 95 % within this many deviations."""

Interval = tuple[float | None, float | None]
NONE: Interval = (None, None)


def sharpe_interval(excess: Floats, periods_per_year: int) -> Interval:
    """95 % interval of the annualized Sharpe ratio of daily excess returns; None where there are too few."""
    spread = deviation(excess, 1)
    if len(excess) < FEWEST or not spread:
        return NONE
    sharpe, standard = float(excess.mean()) / spread, (excess - excess.mean()) / spread
    influence = standard - sharpe / 2 * (standard * standard - 1)
    annual = math.sqrt(periods_per_year)
    return _studentized(sharpe * annual, influence * annual)


def excess_interval(ours: Floats, theirs: Floats) -> Interval:
    """95 % interval of the difference of two total returns over the same days."""
    if len(ours) < FEWEST or (ours <= -1).any() or (theirs <= -1).any():
        return NONE
    grown, held = np.log1p(ours), np.log1p(theirs)
    influence = math.exp(grown.sum()) * (grown - grown.mean()) - math.exp(held.sum()) * (held - held.mean())
    return _studentized(math.expm1(grown.sum()) - math.expm1(held.sum()), len(ours) * influence)


def daily_mean_interval(values: Floats) -> Interval:
    """95 % interval of the mean of daily values, such as the differences of two runs' returns."""
    if len(values) < FEWEST:
        return NONE
    return _studentized(float(values.mean()), values)


def mean_interval(values: Floats, groups: NDArray[np.intp]) -> Interval:
    """95 % interval of a mean whose values come in groups (numbers from 0 on), in order of time: a group counts as a
    day, since what was decided on one session goes together. None below FEWEST_GROUPS of them."""
    count = int(groups.max()) + 1 if len(groups) else 0
    if count < FEWEST_GROUPS:
        return NONE
    estimate = float(values.mean())
    sums, sizes = np.bincount(groups, values, count), np.bincount(groups, minlength=count)
    low, high = _studentized(estimate, (sums - estimate * sizes) / sizes.mean())
    return max(low, float(values.min())), min(high, float(values.max()))  # a share is no more than all


def block_length(values: Floats) -> float:
    """The days that belong together, by the autocorrelations: Politis and White's rule for circular blocks. Source:
    Politis and White 2004, corrected by Patton, Politis and White 2009."""
    days, centred = len(values), values - values.mean()
    if not deviation(values, 0):
        return 1.0
    few = max(5, int(math.log10(days)))
    most, band = min(math.ceil(math.sqrt(days)) + few, days - 2), 2 * math.sqrt(math.log10(days) / days)
    products = np.array([centred[lag:] @ centred[: days - lag] for lag in range(most + 1)])
    squares = np.cumsum(centred * centred)
    ends = np.array([(squares[-1] - squares[lag]) * squares[days - lag - 2] for lag in range(most + 1)])
    small = np.abs(products) < band * np.sqrt(ends)
    first = next((lag for lag in range(most - few + 1) if small[lag : lag + few].all()), None)
    lags = np.arange(1, min(most, 2 * max(first, 1) if first is not None else most) + 1)
    weighted = np.minimum(1, 2 * (1 - lags / len(lags))) * products[lags] / days
    spectrum = products[0] / days + 2 * float(weighted.sum())
    slope, bound = 2 * float((lags * weighted).sum()), math.ceil(min(3 * math.sqrt(days), days / 3))
    return bound if spectrum == 0 else min(bound, (1.5 * days * (slope / spectrum) ** 2) ** (1 / 3))


_STUDENT_95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)


def noise_floor(repeats: Sequence[Floats]) -> float | None:
    """The most by which noise alone takes a run from the mean of its like (95 %): by their spread, pooled over groups
    of `repeats`, and Student's t. For a difference of the means of n and m runs times sqrt(1/n + 1/m). None
    without a group of two or more."""
    groups = [group for group in repeats if len(group) > 1]
    freedom = sum(len(group) - 1 for group in groups)
    if not freedom:
        return None
    spread = math.sqrt(sum(float(((group - group.mean()) ** 2).sum()) for group in groups) / freedom)
    wide = 1 + (_NORMAL_95**2 + 1) / (4 * freedom)
    return spread * (_STUDENT_95[freedom - 1] if freedom <= len(_STUDENT_95) else _NORMAL_95 * wide)


def paired_difference(gaps: Floats) -> dict[str, Any]:
    """The mean of daily differences of returns, its 95 % interval, whether that leaves out 0, and about how many
    sessions it takes to tell a difference of this size from none."""
    mean = float(gaps.mean()) if len(gaps) else None
    low, high = daily_mean_interval(gaps)
    if low is not None and high is not None:
        half = (high - low) / 2
    else:
        half = 1.96 * float(gaps.std(ddof=1)) / math.sqrt(len(gaps)) if len(gaps) > 1 else 0.0
    return {
        "sessions": len(gaps),
        "mean": mean,
        **_bounded(low, high),
        "sessions_needed": math.ceil(len(gaps) * (half / mean) ** 2) if mean and half else None,
    }


def later_difference(before: Floats, after: Floats) -> dict[str, Any] | None:
    """The mean of `after` less that of `before`, daily values of days that do not overlap, with its 95 % interval; None
    where one of them has none."""
    if not len(before) or not len(after):
        return None
    (low, high), (later_low, later_high) = daily_mean_interval(before), daily_mean_interval(after)
    value, half = float(after.mean() - before.mean()), None
    if low is not None and high is not None and later_low is not None and later_high is not None:
        half = math.hypot(high - low, later_high - later_low) / 2
    low, high = NONE if half is None else (value - half, value + half)
    return {"value": value, **_bounded(low, high)}


def _bounded(low: float | None, high: float | None) -> dict[str, Any]:
    apart = None if low is None or high is None else not low <= 0 <= high
    return {"low": low, "high": high, "distinguishable": apart}


def _studentized(estimate: float, influence: Floats) -> tuple[float, float]:
    """95 % interval of an estimate that moves by the mean of the influence of each day.

    Its standard error is of overlapping blocks of days, at least 2 n^(1/3) long; how far it may be off itself is in the
    critical value, by the share of a block in the whole and by the number of days. Source: Kiefer and Vogelsang 2005,
    table 1 (Bartlett kernel); Cornish and Fisher's expansion of Student's t.
    """
    days, centred = len(influence), influence - influence.mean()
    block = min(days // 2, round(max(block_length(influence), 2 * math.cbrt(days))))
    lags = np.arange(1, block)
    products = np.array([centred[lag:] @ centred[:-lag] for lag in lags])
    variance = float(centred @ centred + 2 * (1 - lags / block) @ products) / days
    share, wide = block / days, 1 + (_NORMAL_95**2 + 1) / (4 * (days - 1))
    critical = wide * (_NORMAL_95 + 2.9694 * share + 0.4160 * share**2 - 0.5324 * share**3)
    half = critical * math.sqrt(max(variance, 0.0) / days)
    return estimate - half, estimate + half


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
    - _low and _high: 95 % intervals
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


FEWEST_RANKED = 8
"""Independent pairs below which a rank correlation has no interval."""


BANDS = 5
"""Bands of equal width that stated confidences are sorted into."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """The skill of opinions over one horizon; None where there are too few.

    n: opinions that took a side and whose outcome is known.
    hit_rate: fraction of them that were right; a price that stood still makes nobody right.
    hit_interval: 95 % interval of it.
    gain, loss: mean move in favour of those that were right, and against those that were wrong, as fractions.
    slugging: gain over loss.
    ranked: opinions with a known outcome, holds included.
    rank_correlation: Spearman's, of signed size and change of the price.
    rank_interval: 95 % interval of it.
    """

    n: int
    hit_rate: float | None
    hit_interval: Interval
    gain: float | None
    loss: float | None
    slugging: float | None
    ranked: int
    rank_correlation: float | None
    rank_interval: Interval


def skill(sizes: Floats, changes: Floats, sessions: NDArray[np.intp], horizon: int) -> Skill:
    """The skill of opinions with signed sizes (0 for a hold) and the changes of the price that followed, as fractions;
    `sessions` are the ordinals of their sessions."""
    sided = sizes != 0
    results = np.sign(sizes[sided]) * changes[sided]
    right, wrong = results[results > 0], results[results < 0]
    gain = float(right.mean()) if len(right) else None
    loss = float(-wrong.mean()) if len(wrong) else None
    correlation = rank_correlation(sizes, changes)
    return Skill(
        n=len(results),
        hit_rate=float((results > 0).mean()) if len(results) else None,
        hit_interval=_hit_interval(results > 0, sessions[sided], horizon),
        gain=gain,
        loss=loss,
        slugging=gain / loss if gain is not None and loss else None,
        ranked=len(sizes),
        rank_correlation=correlation,
        rank_interval=NONE if correlation is None else _rank_interval(correlation, len(sizes) / horizon),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """The judged opinions whose stated confidence is from `low` to below `high` (the last band to 1).

    confidence: the mean that was stated.
    hit_rate: fraction of them that were right.
    """

    low: float
    high: float
    n: int
    confidence: float
    hit_rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Stated confidence against outcomes.

    n: judged opinions that stated a confidence.
    confidence: the mean that was stated.
    hit_rate: fraction of them that were right; the closer to `confidence`, the better calibrated.
    brier: mean squared distance of the confidence to what happened, 0 for certainty that is always right.
    bands: those with any opinion, from the least confident.
    """

    n: int
    confidence: float
    hit_rate: float
    brier: float
    bands: tuple[Band, ...]


def calibration(confidences: Floats, right: NDArray[np.bool_]) -> Calibration | None:
    """The calibration of opinions by their confidences, from 0 to 1, and whether they were right; None without any."""
    if not len(confidences):
        return None
    places = np.minimum((confidences * BANDS).astype(int), BANDS - 1)
    return Calibration(
        n=len(confidences),
        confidence=float(confidences.mean()),
        hit_rate=float(right.mean()),
        brier=float(((confidences - right) ** 2).mean()),
        bands=tuple(
            Band(
                low=place / BANDS,
                high=(place + 1) / BANDS,
                n=int((places == place).sum()),
                confidence=float(confidences[places == place].mean()),
                hit_rate=float(right[places == place].mean()),
            )
            for place in sorted({*places.tolist()})
        ),
    )


def rank_correlation(first: Floats, second: Floats) -> float | None:
    """Spearman's rank correlation, ties at their mean rank; None where either side is all the same."""
    if len(first) < 3:
        return None
    ranks = [_ranks(first), _ranks(second)]
    if any(not one.std() for one in ranks):
        return None
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _ranks(values: Floats) -> Floats:
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    mean: Floats = (last - (counts - 1) / 2)[places]
    return mean


def _hit_interval(right: NDArray[np.bool_], sessions: NDArray[np.intp], horizon: int) -> Interval:
    if not len(right):
        return NONE
    _, groups = np.unique((sessions - sessions.min()) // horizon, return_inverse=True)
    return mean_interval(right.astype(float), groups)


def _rank_interval(correlation: float, independent: float) -> Interval:
    """Fisher's interval, with the variance of Bonett and Wright."""
    if independent < FEWEST_RANKED or abs(correlation) >= 1:
        return NONE
    half = 1.96 * math.sqrt((1 + correlation**2 / 2) / (independent - 3))
    return math.tanh(math.atanh(correlation) - half), math.tanh(math.atanh(correlation) + half)


METRICS: Mapping[str, Callable[[Track], Metrics]] = MappingProxyType(
    {formulas.__name__: formulas for formulas in (desk, finvision, finagent, investorbench, tradinggpt, arena)}
)
"""Formulas of every convention by name; each returns all of its metrics, in the order of its tables."""
