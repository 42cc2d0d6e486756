"""The strategies by name: registered ones, those of a user's file, and the parameters that FinAgent's authors tuned.

Source: FinAgent §5.3, Tables 4 and 6 [A13].

Answers of strategies, checked: signals for a history, weights for a view.
"""

from __future__ import annotations

import math
import pkgutil
import tomllib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from fractions import Fraction
from functools import cache
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

import engine.strategies
from engine.domain.market import PriceHistory, Symbol
from engine.errors import MalformedData, UsageError
from engine.program_files import program_text
from engine.settings.user_code import Kind, adopt, entry_names, failures_of, is_file_reference, load_name
from engine.strategies.learned import Learner
from engine.strategies.strategy import (
    REGISTERED,
    Signal,
    Signals,
    SignalStrategy,
    Strategy,
    StrategyView,
    WeightStrategy,
    nearest,
    parsed,
)


def load_class(reference: str) -> type[Strategy]:
    """The class that `FILE:CLASS` or an entry point names. Raises UsageError for a file or class that is not there and
    for one that is no strategy, MalformedData naming file and line where the file cannot be run."""
    return _checked(reference, load_name(reference, Kind.STRATEGY, absent=UsageError, failed=MalformedData))


def _checked(reference: str, found: Any) -> type[Strategy]:
    if not isinstance(found, type) or not any(callable(getattr(found, name, None)) for name in ("weights", "signals")):
        raise UsageError(f"{reference}: not a strategy, which is a class with weights(view) or signals(history)")
    if not hasattr(found, "name"):
        found.name = found.__name__  # type: ignore[attr-defined]
    strategy: type[Strategy] = found
    return strategy


_HANDED_OVER: dict[str, tuple[object, type[Strategy]]] = {}
"""Classes and functions that a caller of the library gave, by the names under which this process finds them."""
_LOCK = Lock()


def named_strategy(given: type | Callable[..., Any]) -> str:
    """The name, such as `<Momentum>`, by which this process from now on finds a class, or a function that answers the
    weights of a view. Raises UsageError for what is no strategy."""
    name = getattr(given, "__name__", type(given).__name__)
    strategy = given
    if not isinstance(given, type) and callable(given):
        strategy = type(name, (), {"weights": staticmethod(given), "__module__": given.__module__ or "__main__"})
    checked = _checked(name, strategy)
    adopt(checked)
    with _LOCK:
        known = next((label for label, (one, _) in _HANDED_OVER.items() if one is given), None)
        if known is not None:
            return known
        same = sum(one.__name__ == name for _, one in _HANDED_OVER.values())
        label = f"<{name} {same + 1}>" if same else f"<{name}>"
        _HANDED_OVER[label] = given, checked
        return label


def in_file(strategy: type) -> AbstractContextManager[None]:
    """Failures of a user's strategy as MalformedData that names file and line; those of ours stay as they are."""
    return failures_of(strategy, MalformedData)


def tuned_params(name: str, symbol: Symbol) -> Mapping[str, str]:
    """`--param` texts that make a strategy the paper's for a symbol.

    A symbol that the authors did not tune gets the rule's window with the defaults of the rest; a strategy
    without parameters of its own gets none.
    """
    of_strategy = _tables().get(name, {})
    return {**of_strategy.get("common", {}), **of_strategy.get(symbol, _UNTUNED.get(name, {}))}


def fixed_params(name: str) -> Mapping[str, str]:
    """`--param` texts of the parameters that the authors did not tune; none for a rule of which they tuned nothing."""
    common: Mapping[str, str] = _tables().get(name, {}).get("common", {})
    return common


_UNTUNED: Mapping[str, Mapping[str, str]] = {"macd": {"fast": "7"}}
"""Defaults of the authors that differ from ours."""


@cache
def _tables() -> dict[str, Any]:
    return tomllib.loads(program_text(Path(__file__).with_name("finagent.toml")))


def strategy_names() -> tuple[str, ...]:
    """Every registered name, sorted; of learned ones those whose extra is installed."""
    found = _registered().items()
    return tuple(sorted(name for name, one in found if not issubclass(one, Learner) or one.is_installed()))


@cache
def _registered() -> Mapping[str, type[Strategy]]:
    for module in pkgutil.iter_modules(engine.strategies.__path__):
        import_module(f"{engine.strategies.__name__}.{module.name}")
    return REGISTERED


def strategy_class(name: str) -> type[Strategy]:
    """The class of a registered name, of `FILE:CLASS` or of an entry point. Raises UsageError, naming the nearest name,
    where there is none, and what `load_class` raises."""
    if name.startswith("<"):
        if name not in _HANDED_OVER:
            raise UsageError(f"the strategy {name} was a class or function of another Python session: give it again")
        return _HANDED_OVER[name][1]
    if ships(name):
        return _registered()[name]
    installed = () if is_file_reference(name) else entry_names(Kind.STRATEGY)
    if is_file_reference(name) or name in installed:
        return load_class(name)
    names = (*strategy_names(), *installed)
    raise UsageError(f"unknown strategy {name}{nearest(name, names)}; available: {', '.join(names)}, and FILE:CLASS")


def ships(name: str) -> bool:
    """True for the name of a strategy of ours."""
    return name in _registered()


def learner_class(name: str) -> type[Learner] | None:
    """The learned strategy of a name, installed or not; None where that is none."""
    found = _registered().get(name)
    return found if found is not None and issubclass(found, Learner) else None


def make_strategy(name: str, params: Mapping[str, str] | None = None) -> Strategy:
    """A strategy from its name and `--param key=value` texts, defaults for the rest.

    Raises UsageError for an unknown name or parameter (naming the nearest) and for a value of the wrong type or outside
    its bounds, ConfigError for a learned one whose extra is not installed, and what `load_class` raises.
    """
    chosen = strategy_class(name)
    with in_file(chosen):
        return chosen(**parsed(chosen, name, params or {}))


def make_rule(name: str, params: Mapping[str, str] | None = None) -> SignalStrategy:
    """A registered rule from its name and parameters, defaults for the rest, for a tool of the agents. Raises
    UsageError as `make_strategy` does."""
    chosen = strategy_class(name)
    if issubclass(chosen, Learner):
        raise UsageError(f"{name} is fitted before it answers: a tool of agents is a rule")
    rule: SignalStrategy = chosen(**parsed(chosen, name, params or {}))  # type: ignore[assignment]
    return rule


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
        answer = strategy.weights(view)
    weights: dict[Symbol, Fraction] = {}
    problem = ""
    try:
        weights = {symbol: _exact(weight) for symbol, weight in ({} if answer is None else answer).items()}
    except (AttributeError, TypeError, ValueError):
        problem = f"{' '.join(repr(answer).split())[:60]} is not a mapping of symbols to finite numbers"
    unknown = [symbol for symbol in weights if symbol not in view.symbols]
    if unknown:
        problem = f"{unknown[0]} is not among the symbols of the run"
    elif any(weight < 0 for weight in weights.values()):
        problem = f"a weight is below 0 ({float(min(weights.values())):g})"
    elif sum(weights.values()) > 1 + _ROUNDING:
        problem = f"they are more than 1 in sum ({float(sum(weights.values())):g})"
    if problem:
        raise MalformedData(f"strategy {strategy.name}: its weights after {view.session} are invalid: {problem}")
    return weights


def _exact(weight: float) -> Fraction:
    """The weight as it is written. Raises ValueError for one that is no finite number."""
    if not math.isfinite(weight):
        raise ValueError(f"a weight is {weight}")
    return Fraction(repr(float(weight)))
