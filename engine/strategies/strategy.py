"""Strategies: the two forms that they take, what they are shown, and their registration.

A rule answers signals, from bars alone and for a whole history at once; a strategy with state answers target weights,
session by session. Either may be fitted. Fields of the class are its parameters: typed, with
default, meaning and bounds, read from text and checked."""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from enum import IntEnum
from typing import Any, ClassVar, Protocol, TypeVar, get_type_hints, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from engine.domain.market import PriceHistory, Symbol
from engine.domain.run import FillAt
from engine.errors import UsageError
from engine.market.as_of import MarketAsOf

Value = int | float | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of a strategy.

    name: the field, and the key of `--param`.
    type: what a text is read as.
    default: the value where none is given.
    doc: the meaning in a few words.
    low, high: inclusive bounds of a number; None where it has none.
    choices: the texts that are allowed; empty where all are.
    tuned: True where `paperdesk tune` searches it, between its bounds.
    """

    name: str
    type: type[int] | type[float] | type[str]
    default: Value
    doc: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    tuned: bool = True


def number(default: float, doc: str, low: float, high: float, *, tuned: bool = True) -> Any:
    """A dataclass field for a numeric parameter."""
    about = {"doc": doc, "low": low, "high": high, "tuned": tuned}
    return dataclasses.field(default=default, metadata=about)


def choice(default: str, doc: str, choices: tuple[str, ...]) -> Any:
    """A dataclass field for a parameter that is one of a few texts; never tuned."""
    return dataclasses.field(default=default, metadata={"doc": doc, "choices": choices, "tuned": False})


def parameters(strategy: type) -> tuple[Parameter, ...]:
    """The parameters of a strategy class, in the order of its fields; a class that is no dataclass has none. A field
    with `init=False` is state. Raises UsageError for a parameter that is no number or text, or has no default."""
    if not dataclasses.is_dataclass(strategy):
        return ()
    hints = get_type_hints(strategy)
    return tuple(_parameter(strategy, field, hints[field.name]) for field in dataclasses.fields(strategy) if field.init)


def _parameter(strategy: type, field: dataclasses.Field[Any], hint: Any) -> Parameter:
    if hint not in (int, float, str) or field.default is dataclasses.MISSING:
        raise UsageError(
            f"strategy {strategy.__name__}: the field {field.name} is neither int, float nor str with a default; state "
            "is a field(init=False)"
        )
    return Parameter(name=field.name, type=hint, default=field.default, **{"doc": "", "tuned": False, **field.metadata})


def check(strategy: Any) -> None:
    """Raise UsageError for the first parameter of a strategy that is of the wrong type or out of bounds."""
    for parameter in parameters(type(strategy)):
        _check(type(strategy).name, parameter, getattr(strategy, parameter.name))


def parsed(strategy: type, name: str, texts: Mapping[str, str]) -> dict[str, Value]:
    """Typed values from `--param key=value` texts. Raises UsageError naming the nearest known parameter."""
    known = {parameter.name: parameter for parameter in parameters(strategy)}
    values: dict[str, Value] = {}
    for key, text in texts.items():
        parameter = known.get(key.replace("-", "_"))
        if parameter is None:
            raise UsageError(_unknown(name, key, known))
        values[parameter.name] = _parse(name, parameter, text)
    return values


def nearest(name: str, names: Iterable[str]) -> str:
    """` (did you mean X?)` where one of `names` is close, else nothing."""
    close = difflib.get_close_matches(name, list(names), n=1, cutoff=0.5)
    return f" (did you mean {close[0]}?)" if close else ""


def _unknown(name: str, key: str, known: Mapping[str, Parameter]) -> str:
    if not known:
        return f"strategy {name} takes no parameters, so not {key} either"
    return f"strategy {name} has no parameter {key}{nearest(key, known)}; it takes {', '.join(known)}"


def _parse(name: str, parameter: Parameter, text: str) -> Value:
    try:
        value = parameter.type(text.strip())
    except ValueError:
        kind = "a whole number" if parameter.type is int else "a number"
        raise UsageError(f"strategy {name}: {parameter.name} must be {kind}, not {text!r}") from None
    _check(name, parameter, value)
    return value


def _check(name: str, parameter: Parameter, value: Any) -> None:
    where = f"strategy {name}: {parameter.name}"
    if parameter.choices:
        if value not in parameter.choices:
            raise UsageError(f"{where} must be one of {', '.join(parameter.choices)}, not {value!r}")
        return
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not (whole if parameter.type is int else whole or isinstance(value, float)):
        kind = "a whole number" if parameter.type is int else "a number"
        raise UsageError(f"{where} must be {kind}, not {value!r}")
    low, high = parameter.low, parameter.high
    if low is None or high is None:
        return
    if not (math.isfinite(value) and low <= value <= high):
        raise UsageError(f"{where} must lie between {low:g} and {high:g}, not {value}")


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

    def explain(self, history: PriceHistory, row: int) -> str:
        """The signal at a row and why, in one sentence with the figures; negative rows count from the end."""


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


Strategy = SignalStrategy | WeightStrategy


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingHistory:
    """The training part of a run: the sessions from `first` to `last`, as they were known after the close of `last`.

    fill_at, cost: when orders fill in the test, and what they cost as a fraction of their amount.
    report: hears how far a long training is.
    """

    first: date
    last: date
    symbols: Sequence[Symbol]
    market: MarketAsOf
    fill_at: FillAt = FillAt.NEXT_OPEN
    cost: Decimal = Decimal(0)
    report: Callable[[str], None] = lambda text: None

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


REGISTERED: dict[str, type[Strategy]] = {}
"""Every registered strategy by name."""

_Rule = TypeVar("_Rule", bound=Strategy)


def registered(rule: type[_Rule]) -> type[_Rule]:
    """Register a strategy by its name: the decorator of every class of this package that the command line knows."""
    REGISTERED[rule.name] = rule  # type: ignore[assignment]
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
