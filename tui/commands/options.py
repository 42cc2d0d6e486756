"""Options that several commands share: dates, amounts, lists, `--json` and `--limit`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

LIMIT = 20
"""Lines that are shown where no limit is given; a JSON document has all."""


class DayType(click.ParamType[date]):
    """A date as YYYY-MM-DD."""

    name = "date"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> date:
        """The date, or a usage error that names what was given."""
        if isinstance(value, date):
            return value
        try:
            return date.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is no date; write it as YYYY-MM-DD", param, ctx)


class AmountType(click.ParamType[Decimal]):
    """A finite decimal number."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Decimal:
        """The number, exact, or a usage error that names what was given."""
        try:
            amount = Decimal(str(value))
        except InvalidOperation:
            amount = Decimal("NaN")
        if not amount.is_finite():
            self.fail(f"{value!r} is no number", param, ctx)
        return amount


class PointType(click.ParamType["int | date"]):
    """A session as YYYY-MM-DD, or the number of an event."""

    name = "point"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | date:
        """The point, or a usage error that names what was given."""
        if str(value).isdecimal() and int(value):
            return int(value)
        try:
            return date.fromisoformat(str(value))
        except ValueError:
            self.fail(f"{value!r} is neither a session (YYYY-MM-DD) nor the number of an event", param, ctx)


DAY = DayType()
AMOUNT = AmountType()


at_option = click.option(
    "--at",
    type=PointType(),
    metavar="SESSION|EVENT",
    help="As it was once that session was decided, or up to an event (JSON: event).",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


def limit_option(which: str) -> Callable[[F], F]:
    """Add `--limit N` to a command that lists: the first or the last N (`which`)."""
    help_text = f"The {which} N (default: {LIMIT}; 0 and --json: all)."
    return click.option("--limit", type=click.IntRange(min=0), metavar="N", help=help_text)


def lines_shown(limit: int | None, as_json: bool) -> int:
    """The number of lines that a limit means, 0 for all."""
    if limit is not None:
        return limit
    return 0 if as_json else LIMIT


def of_all(shown: int, count: int) -> Iterator[str]:
    """A line that says how many are left out, where any are."""
    if shown < count:
        yield f"the last {shown} of {count}; --limit 0 shows all"


def check_order(first: date | None, last: date | None) -> None:
    """Raise a usage error for a window that ends before it begins."""
    if first and last and first > last:
        raise click.UsageError(f"--from {first} is after --to {last}")


def symbol_list(text: str) -> tuple[str, ...]:
    """Symbols from `A,B`, in capitals. Raises a usage error where there is none."""
    symbols = tuple(map(str.upper, listed(text)))
    if not symbols:
        raise click.UsageError("--symbols names no symbol; write them as A,B")
    return symbols


def listed(text: str | None) -> tuple[str, ...]:
    """The parts of `A,B`, none where nothing is given."""
    return tuple(filter(None, map(str.strip, (text or "").split(","))))


def key_values(texts: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Pairs from `key=value` texts. Raises a usage error for a text without a key or an equals sign."""
    pairs = []
    for text in texts:
        key, equals, value = text.partition("=")
        if not (equals and key.strip()):
            raise click.UsageError(f"--param {text!r}: write it as KEY=VALUE")
        pairs.append((key.strip(), value.strip()))
    return tuple(pairs)
