"""Target weights by decision: of rules through one adapter from their signals, of strategies with state as they answer.

Signals of a whole history are computed at once (a rule is causal), so a session touches only the symbols whose target
changes in it; a strategy with state is asked at every decision.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import NamedTuple, Protocol

import numpy as np

from engine.domain.market import PriceHistory, Symbol, from_nano
from engine.domain.portfolio import EXACT, Portfolio
from engine.errors import MalformedData
from engine.market.as_of import Market
from engine.market.trading_hours import decision_time
from engine.ports import Calendar
from engine.strategies.catalog import in_file
from engine.strategies.strategy import Signal, Signals, SignalStrategy, StrategyView, WeightStrategy


class Reach(Enum):
    """The way to a target; the value names it in the reason of an order."""

    WEIGHT = "rebalance"
    """By buying or selling, at the portfolio's present value."""
    ENTER = "buy if not held"
    """By buying with the symbol's own cash, where nothing of it is held."""
    ADD = "buy"
    """By buying with the symbol's own cash, beside what is held."""


class Target(NamedTuple):
    """The share of the portfolio that a symbol is to have, exact; 0 sells all of it."""

    weight: Fraction
    reach: Reach = Reach.WEIGHT

    @property
    def verb(self) -> str:
        """The target in the words of an order's reason."""
        return self.reach.value if self.weight else "sell"


Targets = Sequence[tuple[Symbol, Target]]


class TargetSource(Protocol):
    """Targets by the number of the decision."""

    def at(self, number: int, portfolio: Portfolio) -> Targets:
        """The targets that change at a decision, given the books before it. Decisions come in order."""
        ...


@dataclass(frozen=True, slots=True)
class VisibleCloses:
    """The closes that each decision may see: `histories` are what the books are valued at, `visible` the ordinal of the
    last visible session by symbol and number of the decision."""

    histories: Mapping[Symbol, PriceHistory]
    visible: Mapping[Symbol, Sequence[int]]

    def close(self, symbol: Symbol, number: int) -> Decimal | None:
        """The last visible close, or None where the symbol has not traded yet."""
        history = self.histories[symbol]
        rows = history.rows_through(date.fromordinal(self.visible[symbol][number]))
        return from_nano(history.close[rows - 1]) if rows else None

    def closes(self, number: int, portfolio: Portfolio) -> dict[Symbol, Decimal]:
        """The last visible close of every symbol that is held."""
        closes = {symbol: self.close(symbol, number) for symbol in portfolio.positions}
        return {symbol: close for symbol, close in closes.items() if close is not None}


class SignalTargets:
    """The adapter from a rule's signals: each symbol has the same share, and its last signal since the decision before
    is its target. Signals that only repeat what is wanted already are left out."""

    def __init__(
        self,
        rule: SignalStrategy,
        histories: Mapping[Symbol, PriceHistory],
        visible: Mapping[Symbol, Sequence[int]],
        *,
        adds_to_positions: bool,
    ) -> None:
        share = Fraction(1, len(histories))
        targets = {
            Signal.OUT: Target(Fraction(0)),
            Signal.LONG: Target(share, Reach.ADD),
            Signal.ENTER: Target(share, Reach.ENTER),
            Signal.REBALANCE: Target(share),
        }
        self._targets: dict[int, list[tuple[Symbol, Target]]] = {}
        for symbol, history in histories.items():
            numbers, signals = _changes(signals_of(rule, history), history, visible[symbol], adds_to_positions)
            for number, signal in zip(numbers, signals, strict=True):
                self._targets.setdefault(number, []).append((symbol, targets[Signal(signal)]))

    def at(self, number: int, portfolio: Portfolio) -> Targets:
        """The targets computed for the decision, whatever the books are."""
        return self._targets.get(number, ())


def signals_of(rule: SignalStrategy, history: PriceHistory) -> Signals:
    """A rule's signals. Raises MalformedData where they are not one valid signal per bar, naming file and line where
    the rule is a user's own."""
    with in_file(type(rule)):
        signals = np.asarray(rule.signals(history))
    fits = signals.shape == (len(history),) and signals.dtype.kind in "iu"
    if not fits or (len(signals) and not (min(Signal) <= signals.min() and signals.max() <= max(Signal))):
        raise MalformedData(
            f"strategy {rule.name}: signals has to return one whole number from {min(Signal):d} to {max(Signal):d} for "
            f"each of the {len(history)} bars of {history.symbol}"
        )
    return signals


def _changes(
    signals: Signals, history: PriceHistory, visible: Sequence[int], adds_to_positions: bool
) -> tuple[list[int], list[int]]:
    """The numbers of the decisions at which something new is wanted, and the signals."""
    seen = np.searchsorted(np.asarray(history.sessions), np.asarray(visible), side="right")
    start, stop = max(int(seen[0]) - 1, 0), int(seen[-1])
    rows = np.flatnonzero(signals[start:stop]) + start
    wanted = signals[rows]
    if not adds_to_positions:
        wanted = np.where(wanted == Signal.LONG, Signal.ENTER, wanted)
    numbers = np.searchsorted(seen, rows, side="right")
    latest = np.append(numbers[1:] != numbers[:-1], np.ones(min(len(rows), 1), bool))
    numbers, wanted = numbers[latest], wanted[latest]
    repeats = np.zeros(len(wanted), bool)
    repeats[1:] = (wanted[1:] == wanted[:-1]) & np.isin(wanted[1:], (Signal.OUT, Signal.ENTER))
    return numbers[~repeats].tolist(), wanted[~repeats].tolist()


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightTargets:
    """The answers of a strategy with state, each as of the close of the session in `decided`.

    market: what its view is taken from.
    calendar: the one that decisions follow.
    closes: what the books are valued at for the view.
    answers: every weight that it gave so far, by session and symbol.
    """

    strategy: WeightStrategy
    market: Market
    calendar: Calendar
    decided: Sequence[date]
    closes: VisibleCloses
    answers: dict[tuple[date, Symbol], Fraction] = field(default_factory=dict)

    def at(self, number: int, portfolio: Portfolio) -> Targets:
        """Ask the strategy. Raises MalformedData for weights that no portfolio without short positions and credit can
        have, and, naming file and line, where the strategy of a user fails."""
        session = self.decided[number]
        with in_file(type(self.strategy)):
            answer = self.strategy.weights(self._view(number, session, portfolio)) or {}
            weights = {symbol: _exact(weight) for symbol, weight in answer.items()}
        self._check(session, weights)
        self.answers.update({(session, symbol): weight for symbol, weight in weights.items()})
        return [(symbol, Target(weight)) for symbol, weight in weights.items()]

    def _view(self, number: int, session: date, portfolio: Portfolio) -> StrategyView:
        closes = self.closes.closes(number, portfolio)
        value = portfolio.value(closes)
        worth = {symbol: EXACT.multiply(portfolio.quantity(symbol), close) for symbol, close in closes.items()}
        return StrategyView(
            session=session,
            market=self.market.at(decision_time(self.calendar, session)),
            symbols=tuple(self.closes.histories),
            value=value,
            held={symbol: float(amount / value) for symbol, amount in worth.items()} if value else {},
        )

    def _check(self, session: date, weights: Mapping[Symbol, Fraction]) -> None:
        problem = ""
        unknown = [symbol for symbol in weights if symbol not in self.closes.histories]
        if unknown:
            problem = f"{unknown[0]} is not among the symbols of the run"
        elif any(weight < 0 for weight in weights.values()):
            problem = f"a weight is below 0 ({float(min(weights.values())):g})"
        elif sum(weights.values()) > 1 + _ROUNDING:
            problem = f"they are more than 1 in sum ({float(sum(weights.values())):g})"
        if problem:
            raise MalformedData(f"strategy {self.strategy.name}: its weights after {session} mean nothing: {problem}")


_ROUNDING = Fraction(1, 10**9)
"""The error that a sum of floats may have."""


def _exact(weight: float) -> Fraction:
    """The weight as it is written. Raises ValueError for one that is no finite number."""
    if not math.isfinite(weight):
        raise ValueError(f"a weight is {weight}")
    return Fraction(repr(float(weight)))
