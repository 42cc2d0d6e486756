"""The filter of a table: words and fields that a row has to fit, `sym:NVDA size:>5 session:2026-11.. -hold`.

Terms are separated by blanks, and all have to hold. A word fits a row with a cell that contains it. `column:` names a
column by its title or the beginning of it. In a column of figures a number follows, in a column of text a part of the
text, or a date to compare with: `>`, `<`, `>=`, `<=`, `=`, or a range `from..to` with either end left open. In front of
a sign the colon may be left out: `size>5`. Figures are those that are shown, so that a percentage is written as one:
`chg:>2`. A minus in front negates a term, and quotes keep blanks and signs: `"-1.5%"`. Capital letters are small ones.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

Fits = Callable[[Sequence[str]], bool]
"""A test of the texts of a row: its cells in order, then one that no column shows."""
Value = Callable[[str], float | str | None]
"""The value that a text begins with, of a date its text; None for none."""
Bound = Callable[[str], tuple[float | str, Value]]
"""The limit that an operand means, and how the value of a row is read. Raises ValueError."""

_TOKEN = re.compile(r'(?:[^\s"]|"[^"]*"?)+')
_SIGNED = re.compile(r"(\+?[\w&%-]*[\w%])([<>=].*)", re.DOTALL)
_COMPARED = re.compile(r"(>=|<=|>|<|=)?(.*)", re.DOTALL)
_FIGURE = re.compile(r"([-+]?)\$?([0-9][0-9,]*(?:\.[0-9]+)?|\.[0-9]+)([kM]?)")
_THOUSANDS = {"": 1.0, "k": 1e3, "M": 1e6}
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}")
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
    "=": operator.eq,
}


@dataclass(frozen=True, slots=True)
class Field:
    """A column that a term can name: its title, and whether it holds figures."""

    title: str
    figures: bool

    @property
    def name(self) -> str:
        """The title as it is typed: `pnl` for `P&L`."""
        return self.title.casefold().replace("&", "n").replace(" ", "-")


@dataclass(frozen=True, slots=True)
class TableFilter:
    """A filter as it was typed, and its terms."""

    text: str
    terms: tuple[Fits, ...]

    def fits(self, texts: Sequence[str]) -> bool:
        """True for a row, by the texts of its cells in order and one that no column shows."""
        return all(term(texts) for term in self.terms)


def parse(text: str, fields: Sequence[Field]) -> TableFilter:
    """The filter that a text means for a table's columns; an empty one fits every row. Raises ValueError with one line
    for the user: for a column that there is not, and for what is no number or date."""
    tokens = _TOKEN.findall(text)
    return TableFilter(" ".join(tokens), tuple(_term(token, fields) for token in tokens))


def _term(token: str, fields: Sequence[Field]) -> Fits:
    negated = len(token) > 1 and token.startswith("-")
    body = token[1:] if negated else token
    named = _named(body, fields)
    fits = _word(body) if named is None else _field_term(*named, fields)
    return (lambda texts: not fits(texts)) if negated else fits


def _named(body: str, fields: Sequence[Field]) -> tuple[str, str] | None:
    """The column that a term names, and what follows on it; None for a word."""
    if signed := _SIGNED.fullmatch(body):
        name, operand = signed.groups()
        # Symbols have an equals sign, too: SI=F is no beginning of a column.
        is_column = operand[0] != "=" or name.casefold() in {field.name for field in fields}
    else:
        name, colon, operand = body.partition(":")
        is_column = bool(colon)
    # A word in quotes and a time of day are no columns.
    return (name, operand) if is_column and '"' not in name and not name.isdecimal() else None


def _word(body: str) -> Fits:
    word = _unquoted(body).casefold()
    return lambda texts: any(word in text.casefold() for text in texts)


def _unquoted(text: str) -> str:
    return text.replace('"', "")


def _field_term(name: str, operand: str, fields: Sequence[Field]) -> Fits:
    place = _place(name.casefold(), fields)
    field = fields[place]
    if not _unquoted(operand):
        raise ValueError(f"{name}: needs a value to compare with, such as {name}:{'>0' if field.figures else 'word'}")
    if field.figures:
        holds = _compared(_unquoted(operand), _number)
    elif '"' not in operand and (operand[0] in "<>" or ".." in operand):
        holds = _compared(operand, _day)
    else:
        holds = _contained(operand)
    return lambda texts: holds(texts[place])


def _place(name: str, fields: Sequence[Field]) -> int:
    """The column of a name: the one that is called so, else the only one that begins so."""
    names = [field.name for field in fields]
    if name in names:
        return names.index(name)
    near = [n for n, one in enumerate(names) if one and name and (one.startswith(name) or name.startswith(one))]
    if len(near) == 1:
        return near[0]
    if near:
        raise ValueError(f"{name} may be {' or '.join(names[n] for n in near)}: write more of it")
    raise ValueError(
        f"unknown column {name}; available: {', '.join(filter(None, names))} (quote it to search for the word)"
    )


def _contained(operand: str) -> Callable[[str], bool]:
    whole, word = operand.startswith("="), _unquoted(operand.removeprefix("=")).casefold()
    return lambda text: text.casefold() == word if whole else word in text.casefold()


def _compared(operand: str, bound: Bound) -> Callable[[str], bool]:
    """A test by comparison, with one value or with the ends of a range."""
    low, dots, high = operand.partition("..")
    if dots:
        if not low and not high:
            raise ValueError(f"{operand}: write at least one end of the range")
        tests = [_against(sign, end, bound) for sign, end in ((">=", low), ("<=", high)) if end]
    else:
        match = _COMPARED.fullmatch(operand)
        assert match is not None
        tests = [_against(match[1] or "=", match[2], bound)]
    return lambda text: all(test(text) for test in tests)


def _against(sign: str, operand: str, bound: Bound) -> Callable[[str], bool]:
    """A test that is false for a text that holds no value."""
    limit, value_of = bound(operand)
    compare = _COMPARISONS[sign]

    def holds(text: str) -> bool:
        value = value_of(text)
        return value is not None and compare(value, limit)

    return holds


def _number(operand: str) -> tuple[float, Value]:
    """A number to compare with, and how a text's is read. Raises ValueError."""
    match = _FIGURE.fullmatch(operand.removesuffix("%"))
    if match is None:
        raise ValueError(f"{operand or 'nothing'} is not a number: write it as >2, =-1.5 or 5..10")
    return _value(match), lambda text: _value(begin) if (begin := _FIGURE.match(text.strip())) else None


def _value(match: re.Match[str]) -> float:
    sign, digits, thousands = match.groups()
    return float(f"{sign}{digits.replace(',', '')}") * _THOUSANDS[thousands]


def _day(operand: str) -> tuple[str, Value]:
    """A day, a month or a year to compare with, and as much of a text's. Raises ValueError."""
    try:
        date.fromisoformat(operand + "-01" * (2 - operand.count("-")))
    except ValueError:
        raise ValueError(f"{operand or 'nothing'} is not a date: write it as 2026-11-20 or 2026-11") from None
    return operand, lambda text: text[: len(operand)] if _DATE.match(text) else None
