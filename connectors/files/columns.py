"""Columns of foreign files: which of them is which of our fields (import_files.toml)."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path

from engine.errors import UsageError
from engine.program_files import program_text

Names = Mapping[str, Sequence[str]]
"""Our names of columns, each with the alternatives in foreign files."""

_TABLES: Mapping[str, Names] = tomllib.loads(program_text(Path(__file__).with_name("import_files.toml")))
_KINDS = ("prices", "actions", "news", "filings", "macro", "holdings", "commentary")
DATES, NUMBERS, TEXTS = (frozenset(_TABLES["fields"][name]) for name in ("dates", "numbers", "texts"))
"""Our fields that are dates or times, numbers, and texts."""
MONEY = tuple(_TABLES["fields"]["money"])
"""Words in the names of columns with money that a share pays."""
MONTHS = {month: tuple(names) for month, names in _TABLES["months"].items()}
"""Beginnings of the names of a month, by its number."""
SUFFIXES = {theirs: ours for ours, names in _TABLES["suffixes"].items() for theirs in names}
"""Suffixes of symbols, by how vendors write an exchange before or behind them; `crypto` is that of coins."""


def column_names(kind: str, chosen: Mapping[str, str]) -> Names:
    """The names of a kind of data, with the columns that a person has chosen; an empty one leaves the field out.
    Raises UsageError for a field that the kind does not have."""
    names = _TABLES[kind]
    fields = {field for one in _KINDS for field in _TABLES[one]}
    for field in chosen:
        if field not in fields:
            raise UsageError(f"--map {field}: unknown field; {kind} have {', '.join(names)}")
    return {**names, **{ours: (theirs,) if theirs else () for ours, theirs in chosen.items() if ours in names}}


def plain_name(name: str) -> str:
    """Column name in snake case, in any script: `Adj Close`, `adjClose`, `<ADJ_CLOSE>` and `2. adj-close` are all
    adj_close."""
    words = re.sub(r"([a-z])([A-Z])", r"\1_\2", unicodedata.normalize("NFKC", name).strip())
    return re.sub(r"[\W_]+", "_", re.sub(r"^\d+[a-z]?\.\s*(?=[^\W\d])", "", words).casefold()).strip("_") or "unnamed"


def columns_of(theirs: Sequence[str], names: Names) -> dict[str, str]:
    """A file's columns by our fields. Of a field's alternatives the first existing one counts: by the name to the
    letter, else by its whole name in any case and punctuation."""
    known = {plain_name(name): name for name in reversed(theirs)} | {name: name for name in theirs}
    found: dict[str, str] = {}
    for ours, alternatives in names.items():
        column = next((known[one] for one in _tried(alternatives) if one in known), None)
        if column is not None:
            found[ours] = column
    return found


def _tried(alternatives: Sequence[str]) -> list[str]:
    return [name for one in alternatives for name in ((one, plain_name(one)) if len(one) > 1 else (one,))]


_PAID = ("dividend", "gains", "special", "split")
NO_MONEY = frozenset(
    plain_name(name)
    for kind in ("prices", "actions")
    for ours, names in _TABLES[kind].items()
    if ours not in _PAID
    for name in names
)
"""Names of columns of prices and actions that are not money, whether they are read or not."""
