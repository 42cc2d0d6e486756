"""Answers of strategies, checked: signals for a history, weights for a view."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from engine.domain.market import PriceHistory, Symbol
from engine.errors import MalformedData
from engine.strategies.catalog import in_file
from engine.strategies.strategy import Signal, Signals, SignalStrategy, StrategyView, WeightStrategy

_ROUNDING = Fraction(1, 10**9)
"""The error that a sum of floats may have."""


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


def weights_of(strategy: WeightStrategy, view: StrategyView) -> Mapping[Symbol, Fraction]:
    """A strategy's target weights, exact. Raises MalformedData for weights that no portfolio without short positions
    and credit can have, and, naming file and line, where the strategy of a user fails."""
    with in_file(type(strategy)):
        answer = strategy.weights(view) or {}
        weights = {symbol: _exact(weight) for symbol, weight in answer.items()}
    problem = ""
    unknown = [symbol for symbol in weights if symbol not in view.symbols]
    if unknown:
        problem = f"{unknown[0]} is not among the symbols of the run"
    elif any(weight < 0 for weight in weights.values()):
        problem = f"a weight is below 0 ({float(min(weights.values())):g})"
    elif sum(weights.values()) > 1 + _ROUNDING:
        problem = f"they are more than 1 in sum ({float(sum(weights.values())):g})"
    if problem:
        raise MalformedData(f"strategy {strategy.name}: its weights after {view.session} mean nothing: {problem}")
    return weights


def _exact(weight: float) -> Fraction:
    """The weight as it is written. Raises ValueError for one that is no finite number."""
    if not math.isfinite(weight):
        raise ValueError(f"a weight is {weight}")
    return Fraction(repr(float(weight)))
