"""Strategies: the two forms that they take, what they are shown, and their registration.

A rule answers signals, from bars alone and for a whole history at once; a strategy with state answers target weights,
session by session. Either may be fitted. Fields of the class are its parameters (see `parameters`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from enum import IntEnum
from typing import ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from engine.domain.market import PriceHistory, Symbol
from engine.market.point_in_time import MarketAsOf

Signals = NDArray[np.int8]
"""One Signal per bar, as int8."""


class Signal(IntEnum):
    """A rule's wish for a symbol after the close of a row. A symbol's share is 1/N for N symbols."""

    OUT = -1
    """Hold none of it."""
    KEEP = 0
    """Change nothing."""
    LONG = 1
    """Buy it with all of its share; where it is held already, with what cash lies idle, if the convention
    adds to positions."""
    ENTER = 2
    """Buy it with all of its share; where it is held already, do nothing."""
    REBALANCE = 3
    """Bring the position to its share of the portfolio's present value, by buying or selling."""


class SignalStrategy(Protocol):
    """A rule on the prices of one symbol, without state: the signal at a row depends on that row and earlier ones, so
    a history that ends there gives the same. The truncation audit compares both."""

    name: ClassVar[str]
    """The name in commands and in the reasons of orders."""

    def signals(self, history: PriceHistory) -> Signals:
        """One signal per bar; element i is for the close of row i, from rows up to i."""
        ...

    def explain(self, history: PriceHistory, row: int) -> str:
        """The signal at a row and why, in one sentence with the figures; negative rows count from the end."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyView:
    """The view of a strategy that answers weights.

    session: the last completed session, whose close was the last to be seen.
    market: the market as it was known one second after that close.
    symbols: all symbols of the run; one that has not begun to trade has no bars yet.
    value: the portfolio's value at that close.
    held: share of the value by symbol, of those that are held; the rest is cash.
    """

    session: date
    market: MarketAsOf
    symbols: Sequence[Symbol]
    value: Decimal
    held: Mapping[Symbol, float]


@runtime_checkable
class WeightStrategy(Protocol):
    """A strategy that is asked after each session, in order, and may keep state in between."""

    name: ClassVar[str]
    """The name in the reasons of orders."""

    def weights(self, view: StrategyView) -> Mapping[Symbol, float] | None:
        """Target shares of the portfolio's value, each from 0 to 1 and at most 1 in sum; the rest is cash. A symbol
        that is left out stays as it is, and everything does for None."""
        ...


Strategy = SignalStrategy | WeightStrategy


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingHistory:
    """The training part of a run: the sessions from `first` to `last`, as they were known after the close of `last`."""

    first: date
    last: date
    symbols: Sequence[Symbol]
    market: MarketAsOf

    def bars(self, symbol: Symbol) -> PriceHistory:
        """A symbol's bars of the training part, on the split basis of the last. Raises MissingData for one that had
        not begun to trade."""
        every = self.market.bars(symbol, self.market.count(symbol))
        return every.slice(every.rows_through(self.first - timedelta(days=1)), len(every))


@runtime_checkable
class Fitted(Protocol):
    """A strategy that learns before it trades. It is fitted once, on the warm-up, which it does not trade."""

    def fit(self, history: TrainingHistory) -> None:
        """Learn from the training part; nothing later can be read through it."""
        ...


REGISTERED: dict[str, type[SignalStrategy]] = {}
"""Every registered strategy by name."""

_Rule = TypeVar("_Rule", bound=SignalStrategy)


def registered(rule: type[_Rule]) -> type[_Rule]:
    """Register a strategy by its name: the decorator of every class of this package that the command line knows."""
    REGISTERED[rule.name] = rule
    return rule


def crossings(first: NDArray[np.float64], second: NDArray[np.float64]) -> Signals:
    """LONG where `first` crosses above `second`, OUT where it crosses below, KEEP elsewhere.

    Time is the last axis. A crossing is a change of sign of the difference; a touch (exactly zero) belongs to
    the side that it came from, so one that goes through zero is not missed and one that returns is not seen.
    """
    side = np.sign(np.nan_to_num(first - second)).astype(np.int8)
    rows = np.arange(side.shape[-1])
    last = np.maximum.accumulate(np.where(side != 0, rows, 0), axis=-1)
    carried = np.take_along_axis(side, last, axis=-1)
    signals = np.zeros_like(side)
    turned = carried[..., 1:] * carried[..., :-1] < 0
    signals[..., 1:] = np.where(turned, carried[..., 1:], 0)
    return signals


def verb(signal: int) -> str:
    """A signal in words."""
    return _VERBS[Signal(signal)]


_VERBS = {
    Signal.OUT: "sell",
    Signal.KEEP: "no signal",
    Signal.LONG: "buy",
    Signal.ENTER: "buy if not held",
    Signal.REBALANCE: "rebalance",
}
