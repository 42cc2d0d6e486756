"""The strategies by name: registered ones, those of a user's file, and the parameters that FinAgent's authors tuned.

Source: FinAgent §5.3, Tables 4 and 6 [A13]."""

from __future__ import annotations

import pkgutil
import tomllib
from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import engine.strategies
from engine.domain.market import Symbol
from engine.errors import MalformedData, UsageError
from engine.program_files import program_text
from engine.settings.user_code import failures_of, load_name
from engine.strategies.strategy import REGISTERED, SignalStrategy, Strategy, nearest, parsed


def load_class(reference: str) -> type[Strategy]:
    """The class that `FILE:CLASS` names. Raises UsageError for a file or class that is not there and for one that is
    no strategy, MalformedData naming file and line where the file cannot be run."""
    found = load_name(reference, absent=UsageError, failed=MalformedData)
    if not isinstance(found, type) or not any(callable(getattr(found, name, None)) for name in ("weights", "signals")):
        raise UsageError(f"{reference}: not a strategy, which is a class with weights(view) or signals(history)")
    if not hasattr(found, "name"):
        found.name = found.__name__  # type: ignore[attr-defined]
    strategy: type[Strategy] = found
    return strategy


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


@cache
def strategy_names() -> tuple[str, ...]:
    """Every registered name, sorted."""
    for module in pkgutil.iter_modules(engine.strategies.__path__):
        import_module(f"{engine.strategies.__name__}.{module.name}")
    return tuple(sorted(REGISTERED))


def strategy_class(name: str) -> type[Strategy]:
    """The class of a registered name or of `FILE:CLASS`. Raises UsageError, naming the nearest name, where there is
    none, and what `load_class` raises."""
    if ":" in name or name.endswith(".py"):
        return load_class(name)
    return _rule_class(name)


def make_strategy(name: str, params: Mapping[str, str] | None = None) -> Strategy:
    """A strategy from its name and `--param key=value` texts, defaults for the rest.

    Raises UsageError for an unknown name or parameter (naming the nearest) and for a value of the wrong type or outside
    its bounds, and what `load_class` raises.
    """
    chosen = strategy_class(name)
    with in_file(chosen):
        return chosen(**parsed(chosen, name, params or {}))


def make_rule(name: str, params: Mapping[str, str] | None = None) -> SignalStrategy:
    """A registered rule from its name and parameters, defaults for the rest, for a tool of the agents. Raises
    UsageError as `make_strategy` does."""
    chosen = _rule_class(name)
    return chosen(**parsed(chosen, name, params or {}))


def _rule_class(name: str) -> type[SignalStrategy]:
    names = strategy_names()
    if name not in names:
        raise UsageError(f"no strategy {name}{nearest(name, names)}; there are {', '.join(names)}, and FILE:CLASS")
    return REGISTERED[name]
