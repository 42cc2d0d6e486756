"""Samples of learned baselines: features of bars as they were known, what holding earned next, and the split by time.

Source: FinAgent §5.3, appendix B [A13], which prints none of this; the features are ratios of one stock's own bars.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from engine.domain.market import PriceHistory
from engine.domain.run import FillAt
from engine.errors import UsageError
from engine.market.indicators import Floats, prices, sma
from engine.strategies.strategy import TrainingHistory

AVERAGES = (5, 10, 15, 20, 25, 30)
LOOKBACK = max(AVERAGES)
"""Bars that the ratios of one session take."""
RATIOS = 5 + len(AVERAGES)
HELD_OUT = 0.2
"""The part of the training at its end on which thresholds are chosen and training is stopped."""
FEWEST = 20
"""Sessions of which something can be learned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Decisions of the past, in order, of symbols that all traded then.

    seen: what was known, decisions x symbols x sessions x RATIOS.
    overnight: the return from the close that was decided on to the fill, earned by what was held before; as a fraction,
        decisions x symbols.
    held: the return from the fill to the next close.
    label: the return from the fill to the fill of the next decision.
    """

    seen: Floats
    overnight: Floats
    held: Floats
    label: Floats

    def __len__(self) -> int:
        return len(self.label)

    def rows(self, rows: slice | NDArray[np.int64]) -> Samples:
        """Some of the decisions, in the order given."""
        return Samples(seen=self.seen[rows], **{name: getattr(self, name)[rows] for name in _OUTCOMES})

    def permuted(self, seed: int) -> Samples:
        """The same decisions with the outcomes of others: nothing can be learned of them."""
        order = np.random.default_rng(seed).permutation(len(self))
        return replace(self.rows(order), seen=self.seen)

    def split(self, horizon: int) -> tuple[Samples, Samples]:
        """The part to train on and the part held out. Between them lies a gap of the label's `horizon` in sessions, so
        that no label of the first reaches into the second."""
        cut = round(len(self) * (1 - HELD_OUT))
        return self.rows(slice(cut - horizon)), self.rows(slice(cut, None))


_OUTCOMES = ("overnight", "held", "label")


def horizon_of(fill_at: FillAt) -> int:
    """Sessions after the decision that a label reaches into: the next fill is at the close of the next, or at the open
    of the one after it."""
    return 1 if fill_at is FillAt.SAME_CLOSE else 2


def features(bars: PriceHistory, sessions: int) -> Floats:
    """Rows x sessions x RATIOS of a symbol, each row from bars up to its own; NaN where there are too few. Adjusted
    closes are as they were known at the row, whatever of them is known at the last bar; where they are not known at
    all, as the closes."""
    close = prices(bars.close)
    before = np.concatenate([[np.nan], close[:-1]])
    columns = [prices(column) / close - 1 for column in (bars.open, bars.high, bars.low)]
    columns += [close / before - 1, *(sma(close, count) / close - 1 for count in AVERAGES)]
    found = np.full((len(close), sessions, RATIOS), np.nan)
    if len(close) >= sessions:
        window = sliding_window_view(np.stack(columns, axis=1), sessions, axis=0)
        growth = sliding_window_view(_adjustment(bars), sessions)
        found[sessions - 1 :, :, :-1] = window.transpose(0, 2, 1)
        # An action after the row moves all of its window alike, and the last value is its own close.
        found[sessions - 1 :, :, -1] = growth / growth[:, -1:] - 1
    return found


def _adjustment(bars: PriceHistory) -> Floats:
    """Adjusted close over close; 1 where that is not known."""
    quotient = prices(bars.adj_close) / prices(bars.close)
    return np.where(np.isnan(quotient), 1.0, quotient)


def _outcomes(bars: PriceHistory, fill_at: FillAt) -> tuple[Floats, Floats, Floats]:
    """`overnight`, `held` and `label` by row, dividends included; NaN where the bars end before."""
    adjusted = prices(bars.close) * _adjustment(bars)
    whole = np.full(len(bars), np.nan)
    whole[:-1] = adjusted[1:] / adjusted[:-1] - 1
    if fill_at is FillAt.SAME_CLOSE:
        return np.zeros(len(bars)), whole, whole
    held = np.full(len(bars), np.nan)
    held[:-1] = (prices(bars.close) / prices(bars.open))[1:] - 1
    overnight = (1 + whole) / (1 + held) - 1
    label = np.full(len(bars), np.nan)
    label[:-1] = (1 + held[:-1]) * (1 + overnight[1:]) - 1
    return overnight, held, label


def samples_of(history: TrainingHistory, sessions: int) -> Samples:
    """The decisions of a training history in which every symbol traded. Raises UsageError where they are too few."""
    by_symbol = []
    for symbol in history.symbols:
        bars = history.market.bars(symbol, history.market.count(symbol))
        known = features(bars, sessions), *_outcomes(bars, history.fill_at)
        finite = np.all([np.isfinite(one).reshape(len(bars), -1).all(axis=1) for one in known], axis=0)
        finite &= np.asarray(bars.sessions) >= history.first.toordinal()
        days = np.asarray(bars.sessions)[finite]
        by_symbol.append((days, [one[finite] for one in known]))
    shared = by_symbol[0][0]
    for days, _ in by_symbol[1:]:
        shared = np.intersect1d(shared, days)
    if len(shared) < FEWEST:
        raise UsageError(
            f"{len(shared)} sessions from {history.first} to {history.last} can be learned from, and {FEWEST} are "
            "needed: --warm-up-from names an earlier session"
        )
    stacked = [
        np.stack([known[place][np.isin(days, shared)] for days, known in by_symbol], axis=1) for place in range(4)
    ]
    return Samples(seen=stacked[0], **dict(zip(_OUTCOMES, stacked[1:], strict=True)))


class Thresholds(NamedTuple):
    """A symbol is bought from a prediction of `enter` on, and sold below `leave`, which is at most that."""

    enter: float
    leave: float

    def position(self, predicted: Floats, before: Floats) -> Floats:
        """1 where a symbol is held after a decision, else 0; by symbol, as what was held before."""
        return np.where(predicted >= self.enter, 1.0, np.where(predicted < self.leave, 0.0, before))

    def positions(self, predicted: Floats) -> Floats:
        """The positions of consecutive decisions, decisions x symbols."""
        held, found = np.zeros(predicted.shape[1:]), np.empty_like(predicted)
        for number, row in enumerate(predicted):
            found[number] = held = self.position(row, held)
        return found


def growth(positions: Floats, samples: Samples, cost: float) -> float:
    """The log growth of a capital that is shared equally among the symbols, net of `cost`, a fraction of what is
    traded. Source: the reward of FinAgent's environment [A10]."""
    before = np.concatenate([np.zeros_like(positions[:1]), positions[:-1]])
    return float(np.mean(np.sum(log_growth(before, positions, samples, cost), axis=0)))


def log_growth(before: Floats, after: Floats, samples: Samples, cost: float) -> Floats:
    """The log change of a symbol's capital by decision: what it held before to the fill, the trade, and what it holds
    after it to the close."""
    traded = np.log1p(-cost * np.abs(after - before))
    return np.log1p(before * samples.overnight) + traded + np.log1p(after * samples.held)


STEPS = 11
"""Quantiles of the held-out predictions that a threshold may be."""


def best_thresholds(predicted: Floats, samples: Samples, cost: float) -> Thresholds:
    """The thresholds of the greatest growth over some decisions, the lowest of several; never to buy is among them."""
    levels: Sequence[float] = [*dict.fromkeys(np.quantile(predicted, np.linspace(0, 1, STEPS)).tolist()), np.inf]
    pairs = [Thresholds(enter, leave) for place, enter in enumerate(levels) for leave in levels[: place + 1]]
    return max(pairs, key=lambda pair: growth(pair.positions(predicted), samples, cost))
