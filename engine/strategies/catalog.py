"""The strategies by name: those that the modules of this package register, and those loaded from a file."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module

import engine.strategies
from engine.errors import UsageError
from engine.strategies.loading import in_file, load_class
from engine.strategies.parameters import nearest, parsed
from engine.strategies.strategy import REGISTERED, SignalStrategy, Strategy


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


def make_rule(name: str) -> SignalStrategy:
    """A registered rule with its defaults, for a tool of the agents. Raises UsageError for an unknown name."""
    return _rule_class(name)()


def _rule_class(name: str) -> type[SignalStrategy]:
    names = strategy_names()
    if name not in names:
        raise UsageError(f"no strategy {name}{nearest(name, names)}; there are {', '.join(names)}, and FILE:CLASS")
    return REGISTERED[name]
