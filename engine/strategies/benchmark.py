"""Benchmarks of every other strategy: buy and hold, equal weight, cash, and a random trader."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from datetime import date
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from engine.domain.market import PriceHistory, is_crypto
from engine.market.indicators import Floats
from engine.strategies.strategy import Signal, Signals, check, number, registered, verb


@registered
@dataclass(frozen=True, slots=True)
class BuyAndHold:
    """Buy at the first chance and never sell."""

    name: ClassVar[str] = "buy-and-hold"

    def signals(self, history: PriceHistory) -> Signals:
        return np.full(len(history), Signal.ENTER, np.int8)

    def explain(self, history: PriceHistory, row: int) -> str:
        return "Buy and hold: bought at the first chance and held, whatever the price does."


@registered
@dataclass(frozen=True, slots=True)
class EqualWeight:
    """Hold every symbol with the same share of the portfolio, restored as months begin."""

    name: ClassVar[str] = "equal-weight"

    months: int = number(1, "months from one rebalancing to the next", 1, 12)

    def __post_init__(self) -> None:
        check(self)

    def signals(self, history: PriceHistory) -> Signals:
        signals = np.full(len(history), Signal.ENTER, np.int8)
        month = _months(history)
        # By the calendar, not by counting rows: the schedule is the same wherever the data begins.
        begins = np.concatenate([[False], month[1:] != month[:-1]])[: len(month)]
        signals[begins & (month % self.months == 0)] = Signal.REBALANCE
        return signals

    def explain(self, history: PriceHistory, row: int) -> str:
        due = self.signals(history)[row] == Signal.REBALANCE
        often = "month" if self.months == 1 else f"{self.months} months"
        when = "today" if due else "not today"
        return f"Equal weight: every symbol has the same share, put right every {often}: {when}."


@registered
@dataclass(frozen=True, slots=True)
class Cash:
    """Hold nothing."""

    name: ClassVar[str] = "cash"

    def signals(self, history: PriceHistory) -> Signals:
        return np.full(len(history), Signal.OUT, np.int8)

    def explain(self, history: PriceHistory, row: int) -> str:
        return "Cash: nothing is held."


@registered
@dataclass(frozen=True, slots=True)
class RandomTrader:
    """Go all in or all out at random, as often as gives a wanted turnover on average.

    The draw depends on seed, symbol and date alone, so a session's is the same whatever other data there is.
    """

    name: ClassVar[str] = "random"

    turnover: float = number(12.0, "value traded in a year, as a multiple of the equity", 0.0, 120.0)
    seed: int = number(0, "which random trader it is", 0, 2**31 - 1, tuned=False)

    def __post_init__(self) -> None:
        check(self)

    def signals(self, history: PriceHistory) -> Signals:
        first, second = _uniform(self.seed, history)
        a_year = 365 if is_crypto(history.symbol) else 252
        # A draw changes the position half of the time, and a change trades the whole of it.
        drawn = first < min(1.0, 2.0 * self.turnover / a_year)
        return np.where(drawn, np.where(second < 0.5, Signal.OUT, Signal.ENTER), Signal.KEEP).astype(np.int8)

    def explain(self, history: PriceHistory, row: int) -> str:
        signal = verb(int(self.signals(history)[row]))
        return f"Random trader {self.seed} with a turnover of {self.turnover:g} a year: {signal}."


def _months(history: PriceHistory) -> NDArray[np.int64]:
    """Months since the epoch, by session."""
    days = np.asarray(history.sessions, np.int64) - date(1970, 1, 1).toordinal()
    return days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)


def _uniform(seed: int, history: PriceHistory) -> tuple[Floats, Floats]:
    """Two uniform numbers in [0, 1) per session, by hashing (SplitMix64) seed, symbol and date."""
    days = np.asarray(history.sessions, np.uint64)
    key = np.uint64((seed << 32) | zlib.crc32(history.symbol.encode()))
    state = _mixed(days + _mixed(np.full(len(days), key)))
    return state / 2.0**64, _mixed(state) / 2.0**64


def _mixed(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    with np.errstate(over="ignore"):
        z = state + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
