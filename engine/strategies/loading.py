"""Strategies of a user's own, by `FILE:CLASS`."""

from __future__ import annotations

from contextlib import AbstractContextManager

from engine.errors import MalformedData, UsageError
from engine.strategies.strategy import Strategy
from engine.user_code import failures_of, load_name


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
