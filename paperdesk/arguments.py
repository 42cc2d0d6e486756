"""Arguments of calls as the command line's values, and its errors as those of arguments."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from decimal import Decimal
from functools import wraps
from math import inf
from numbers import Real
from pathlib import Path
from typing import ParamSpec, TypeVar

from engine.errors import UsageError

P = ParamSpec("P")
T = TypeVar("T")

Day = str | date
"""A day, as YYYY-MM-DD or a date (a Timestamp is one)."""
Amount = int | float | str | Decimal

_ARGUMENTS = {"from": "start", "to": "end", "warm-up-from": "warm_up", "slippage": "slippage_bp", "param": "params"}
_ARGUMENTS |= {"test-from": "test", "test-to": "test", "walk-forward": "folds"}
"""Arguments by the flag of the command line, where it has another name."""

_KINDS: Mapping[str, tuple[tuple[type, ...], str]] = {
    **dict.fromkeys(("preset", "model", "convention", "run", "name", "symbol", "scheduler"), ((str,), "a name")),
    **dict.fromkeys(("start", "end", "warm_up", "session"), ((str, date), "a date; write it as YYYY-MM-DD")),
    **dict.fromkeys(("cash", "commission", "slippage_bp"), ((Real, str, Decimal), "a number")),
    **dict.fromkeys(("seed", "cuts", "trials", "folds", "jobs", "repeats"), ((int,), "a whole number")),
    **dict.fromkeys(("file", "path"), ((str, Path), "a path")),
    "symbols": ((Collection,), "symbols such as ['AAPL', 'MSFT']"),
    "models": ((Collection,), "models such as ['openai:gpt-5-mini', 'ollama:qwen3']"),
    "data": ((str, Path, Mapping), "a data folder or {symbol: DataFrame}"),
    "strategy": ((str, Callable), "a strategy's name, FILE.py:NAME, a class or a function"),  # type: ignore[dict-item]
    "params": ((Mapping,), "parameters by name"),
    "test": ((Sequence,), "a first and a last session"),
}
"""Types of arguments by name, and what they are called."""
_RANGES: Mapping[str, tuple[int, float]] = {
    **dict.fromkeys(("cuts", "trials"), (1, inf)),
    **dict.fromkeys(("seed", "folds"), (0, inf)),
    "jobs": (1, 64),
    "repeats": (1, 99),
}
"""The least and the most that whole numbers may be, as on the command line."""


def checked(call: Callable[P, T]) -> Callable[P, T]:
    """The call, which raises UsageError for arguments that it does not take, of another type, or out
    of range."""
    signature = inspect.signature(call)

    @wraps(call)
    def made(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise UsageError(f"{call.__name__}: {error}; it takes {', '.join(signature.parameters)}") from None
        for name, value in given.items():
            types, kind = _KINDS.get(name, ((object,), ""))
            if value is not None and (isinstance(value, bool) or not isinstance(value, types)):
                raise UsageError(f"{name}: {' '.join(repr(value).split())[:60]} is not {kind}")
            least, most = _RANGES.get(name, (-inf, inf))
            if isinstance(value, int) and not least <= value <= most:
                raise UsageError(f"{name}: {value} is outside of {least} to {most}")
        return call(*args, **kwargs)

    return made


def day_of(day: Day) -> date:
    """The date. Raises UsageError for what is none."""
    try:  # the text of pandas' NaT, a datetime too, is no date
        return date.fromisoformat(day if isinstance(day, str) else day.isoformat()[:10])
    except (AttributeError, ValueError):
        raise UsageError(f"{day!r} is not a date; write it as YYYY-MM-DD") from None


def amount_of(name: str, value: Amount) -> Decimal:
    """The number, as it is written. Raises UsageError for what is none."""
    try:
        amount = Decimal(str(value))
    except ArithmeticError:
        amount = Decimal("nan")
    if not amount.is_finite():
        raise UsageError(f"{name}: {value!r} is not a number")
    return amount


@contextmanager
def named_arguments() -> Iterator[None]:
    """Turn errors about flags of the command line into errors about the arguments of these calls."""
    import click

    try:
        yield
    except (UsageError, click.UsageError) as error:
        text = error.format_message() if isinstance(error, click.UsageError) else str(error)
        words = text.split("`")  # every second part is a command, whose flags are its own
        words[::2] = [re.sub(r"--([a-z][a-z-]*)", _argument, word) for word in words[::2]]
        raise UsageError("`".join(words)) from None


def _argument(flag: re.Match[str]) -> str:
    return _ARGUMENTS.get(flag[1], flag[1].replace("-", "_"))
