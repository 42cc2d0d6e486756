"""The share of luck in a track record: its Sharpe ratio against none and against the best of many trials, and its
return against random traders and against the market.

Sources: Bailey and López de Prado 2012 (probabilistic Sharpe ratio, minimum track record) and 2014 (deflated Sharpe
ratio). Sharpe ratios here are per session unless they are called yearly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from engine.conventions.metrics import FEWEST, NONE, Floats, Interval, Track, daily_mean_interval, deviation, ratio

DISPERSION = 0.5
"""Assumed standard deviation of the yearly Sharpe ratios of trials without skill, as sharpebench assumes it."""
TRADERS = 1000
CONFIDENCE = 0.95
_EVEN = 0.001
"""Growth within this of ours counts half as below: that of a trader who did the same up to costs and rounding."""
_NORMAL = NormalDist()


def probabilistic_sharpe(excess: Floats, against: float = 0.0) -> float | None:
    """One less the p-value of the hypothesis that the Sharpe ratio is not above `against`, by length, skewness and
    kurtosis of the record; None of a flat one."""
    sharpe, spread = _sharpe(excess)
    if sharpe is None or spread is None:
        return None
    return _NORMAL.cdf((sharpe - against) * math.sqrt(len(excess) - 1) / spread)


def minimum_track_record(excess: Floats) -> float | None:
    """Sessions that it takes to tell a Sharpe ratio like this one from none, at 95 %; None where it is not above 0."""
    sharpe, spread = _sharpe(excess)
    if sharpe is None or spread is None or sharpe <= 0:
        return None
    return 1.0 + (spread * _NORMAL.inv_cdf(CONFIDENCE) / sharpe) ** 2


def best_by_chance(trials: int) -> float:
    """The yearly Sharpe ratio that the best of a number of trials without skill is expected to have."""
    if trials < 2:
        return 0.0
    first, second = (_NORMAL.inv_cdf(1 - 1 / (trials * one)) for one in (1.0, math.e))
    return DISPERSION * ((1 - np.euler_gamma) * first + np.euler_gamma * second)


def deflated_sharpe(excess: Floats, trials: int, periods_per_year: int) -> float | None:
    """The probabilistic Sharpe ratio against the best of so many trials without skill."""
    return probabilistic_sharpe(excess, best_by_chance(trials) / math.sqrt(periods_per_year))


def _sharpe(excess: Floats) -> tuple[float | None, float | None]:
    """The Sharpe ratio, and its standard error x sqrt(sessions - 1)."""
    spread = deviation(excess, 1)
    if not spread:
        return None, None
    sharpe = float(excess.mean()) / spread
    standard = (excess - excess.mean()) / excess.std()
    skewness, kurtosis = float((standard**3).mean()), float((standard**4).mean())
    variance = 1 - skewness * sharpe + (kurtosis - 1) / 4 * sharpe * sharpe
    return sharpe, math.sqrt(variance) if variance > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Against:
    """A run against the market that it trades in; None where one is not defined.

    beta: of its daily returns to buy and hold's.
    alpha: a year, what it earned beyond beta times buy and hold's excess return, not compounded.
    information_ratio: mean over deviation of the daily difference to buy and hold, a year.
    excess, excess_interval: logarithmic growth a year over buy and hold with the same mean exposure.
    """

    beta: float | None
    alpha: float | None
    information_ratio: float | None
    excess: float | None
    excess_interval: Interval


def against_market(
    returns: Floats, market: Floats, exposure: float | None, periods_per_year: int, risk_free: float = 0.0
) -> Against:
    """Daily returns held against buy and hold's of the same sessions; `risk_free` is a yearly rate."""
    daily, gaps = risk_free / periods_per_year, returns - market
    beta = alpha = excess = None
    interval = NONE
    if deviation(market, 1):
        beta = float(np.cov(returns, market)[0, 1] / market.var(ddof=1))
        alpha = float(returns.mean() - daily - beta * (market.mean() - daily)) * periods_per_year
    if exposure is not None and len(returns) and returns.min() > -1 and (exposure * market).min() > -1:
        grown = np.log1p(returns) - np.log1p(exposure * market)
        excess = float(grown.mean()) * periods_per_year
        low, high = daily_mean_interval(grown)
        interval = (None, None) if low is None or high is None else (low * periods_per_year, high * periods_per_year)
    information = ratio(float(gaps.mean()), deviation(gaps, 1)) if len(gaps) else None
    return Against(
        beta=beta,
        alpha=alpha,
        information_ratio=None if information is None else information * math.sqrt(periods_per_year),
        excess=excess,
        excess_interval=interval,
    )


def value_at_risk(returns: Floats) -> float | None:
    """The loss, as a positive fraction, that one session in twenty exceeds; None of too few sessions."""
    return float(0 - np.percentile(returns, 5)) if len(returns) >= FEWEST else None


Draws = tuple[NDArray[np.int32], NDArray[np.int8]]
"""All traders' days of one symbol in a row: where stretches begin, with each trader's first day and where one draws
anew, and the number of what is held in each."""
_FEW = 50
"""Symbols whose draws, a megabyte each, are kept for the record of one trader."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RandomTraders:
    """TRADERS random traders.

    Each has an equal share of its money for every symbol, is in it whole or out of it, and draws anew at random
    sessions: as often as gives the turnover, and in with the probability that gives the exposure, both on average.

    prices: daily returns of each symbol, held.
    long, short: mean share of the money that is held long and short.
    turnover: the amount traded in the whole window, as a multiple of the money.
    cost: of a trade, as a fraction of its amount.
    """

    prices: Sequence[Floats]
    long: float
    short: float
    turnover: float
    cost: float
    seed: int = 0

    def returns(self) -> Floats:
        """The total return of each."""
        days, worth = len(self.prices[0]), np.zeros(TRADERS)
        for moves, (starts, states) in zip(self.prices, self._draws(), strict=True):
            first, day = np.searchsorted(starts, np.arange(0, TRADERS * days, days, dtype=np.int32)), starts % days
            until = np.append(day[1:], 0)
            until[until == 0] = days
            traded = np.abs(np.diff(self._held[states], prepend=0.0))
            traded[first] = np.abs(self._held[states[first]])
            grown = np.cumsum(_growth(np.outer(self._held, np.pad(moves, (1, 0)))), axis=1)
            row = states.astype(np.intp) * grown.shape[1]
            stretches = grown.take(row + until) - grown.take(row + day)
            paid = traded * math.log1p(-self.cost)
            worth += np.exp(np.add.reduceat(stretches + paid, first)) / len(self.prices)
        return worth - 1

    def record(self, trader: int, beside: Track) -> tuple[Track, int]:
        """The record of one with the money, and against the benchmark, of another record, and how often it traded."""
        days, invested, traded, trades = len(self.prices[0]), np.zeros(len(self.prices[0])), 0.0, 0
        equity = np.zeros(days + 1)
        for moves, (starts, states) in zip(self.prices, self._draws(), strict=True):
            own = slice(*np.searchsorted(starts, (trader * days, (trader + 1) * days)))
            lengths = np.diff(np.append(starts[own] - trader * days, days))
            held = np.repeat(self._held[states[own]], lengths)
            changes = np.abs(np.diff(held, prepend=0.0))
            grown = np.cumsum(_growth(held * moves) + changes * math.log1p(-self.cost))
            worth = np.exp(np.append(0.0, grown)) * float(beside.equity[0]) / len(self.prices)
            equity += worth
            invested += np.abs(held) * worth[1:]
            traded, trades = traded + float(changes @ worth[:-1]), trades + int(np.count_nonzero(changes))
        record = replace(beside, equity=equity, invested=invested, traded=traded, prices=None, positions=None)
        return record, trades

    @property
    def _held(self) -> Floats:
        """The shares that a trader may hold of a symbol: nothing, all that it is long in, or short."""
        size = max(1.0, self.long + self.short)
        return np.array([0.0, size, -size])

    def _draws(self) -> Iterable[Draws]:
        """By symbol, where traders draw what."""
        return self._kept if len(self.prices) <= _FEW else self._drawn()

    @cached_property
    def _kept(self) -> Sequence[Draws]:
        return [*self._drawn()]

    def _drawn(self) -> Iterator[Draws]:
        size, days = self._held[1], len(self.prices[0])
        chances = np.array([1 - (self.long + self.short) / size, self.long / size, self.short / size])
        bounds = np.cumsum(chances)
        change = float(chances @ np.abs(self._held[:, None] - self._held) @ chances)
        often = (self.turnover - self.long - self.short) / ((days - 1) * change) if days > 1 and change > 0 else 0.0
        anew = -math.log1p(-min(max(often, 0.0), 0.99)) * TRADERS * days  # two may fall on one session
        random, begun = np.random.default_rng(self.seed), np.arange(0, TRADERS * days, days)
        for _ in self.prices:
            begins = np.concatenate([begun, random.integers(0, TRADERS * days, round(anew))]).astype(np.int32)
            begins.sort()
            starts = begins[np.append(True, begins[1:] != begins[:-1])]
            draw = random.random(len(starts))
            yield starts, (draw > bounds[0]).astype(np.int8) + (draw > bounds[1])


def _growth(moves: Floats) -> Floats:
    """Logarithms of growth. What has lost everything has none: a hundred-millionth of it is as little."""
    return np.asarray(np.log(np.maximum(1 + moves, 1e-8)))


def percentile(grown: float, others: Floats) -> float:
    """The share of others below a total return, in percent; equals count half."""
    below, even = others < grown - _EVEN, np.abs(others - grown) <= _EVEN
    return 100 * float(below.mean() + even.mean() / 2)


BLOCKS = 16
"""Blocks of days of which half are in sample and half out of sample, in every combination."""


def overfitting(returns: Floats) -> float | None:
    """The probability that the best of some trials in sample is no better than their median out of sample, by
    combinatorially symmetric cross-validation; None of fewer than two trials and 32 days, and of trials that are all
    the same, of which none is best. `returns` is days x trials. Source: Bailey, Borwein, López de Prado and Zhu 2017.
    """
    days, trials = returns.shape
    if trials < 2 or days < 2 * BLOCKS or (returns == returns[:, :1]).all():
        return None
    parts = np.array_split(returns, BLOCKS)
    sizes = np.array([len(part) for part in parts])
    sums, squares = (np.array([(part**power).sum(axis=0) for part in parts]) for power in (1, 2))
    chosen = np.array(list(combinations(range(BLOCKS), BLOCKS // 2)))
    inside = np.zeros((len(chosen), BLOCKS))
    np.put_along_axis(inside, chosen, 1, axis=1)

    def sharpes(weights: Floats) -> Floats:
        count = (weights @ sizes)[:, None]
        means = weights @ sums / count
        deviations = np.sqrt(np.maximum(weights @ squares / count - means * means, 0))
        # One that never moved is between gains and losses.
        return np.asarray(np.divide(means, deviations, out=np.zeros_like(means), where=deviations > 1e-12))

    best, after = sharpes(inside).argmax(axis=1), sharpes(1 - inside)
    ranks = 1 + (after < np.take_along_axis(after, best[:, None], axis=1)).sum(axis=1)
    return float((ranks / (trials + 1) <= 0.5).mean())
