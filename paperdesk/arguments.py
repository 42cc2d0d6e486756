"""Arguments of calls as the command line's values, and its errors as those of arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from decimal import Decimal

from engine.errors import UsageError

Day = str | date
"""A day, as YYYY-MM-DD or a date (a Timestamp is one)."""
Amount = int | float | str | Decimal

_ARGUMENTS = {"from": "start", "to": "end", "warm-up-from": "warm_up", "slippage": "slippage_bp", "param": "params"}
"""Arguments by the flag of the command line, where it has another name."""


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
