"""Rows of foreign CSV, JSONL or Parquet files under our column names, with the number of each row."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from math import isnan
from pathlib import Path
from typing import Any

from connectors.files.rows import byte_lines, csv_rows, json_object, malformed
from engine.domain.market import Symbol
from engine.errors import MalformedData, MissingData, UsageError

_DAY = ("date", "day", "session", "t", "timestamp", "datetime", "time", "index_level_0")
_SYMBOL = ("symbol", "ticker")

PRICE_NAMES: dict[str, Sequence[str]] = {
    "date": _DAY,
    "open": ("open", "o"),
    "high": ("high", "h"),
    "low": ("low", "l"),
    "close": ("close", "c"),
    "adj_close": ("adj_close", "adjclose", "adjusted_close", "close_adjusted"),
    "volume": ("volume", "v", "vol"),
    "symbol": _SYMBOL,
}
ACTION_NAMES: dict[str, Sequence[str]] = {
    "ex_date": ("ex_date", "exdate", *_DAY),
    "kind": ("kind", "type", "action"),
    "value": ("value", "amount", "ratio"),
    "dividend": ("dividend", "dividends", "cash_amount"),
    "split": ("split", "splits", "stock_splits", "split_ratio"),
    "symbol": _SYMBOL,
}
NEWS_NAMES: dict[str, Sequence[str]] = {
    "date": ("date", "day"),
    "time": ("time",),
    "created": (
        "created",
        "created_at",
        "published",
        "published_at",
        "timestamp",
        "datetime",
        "time_published",
    ),
    "updated": ("updated", "updated_at"),
    "headline": ("headline", "title"),
    "summary": ("summary", "description", "body", "content", "text"),
    "source": ("source", "publisher", "author", "site"),
    "sentiment": ("sentiment", "label"),
    "symbol": _SYMBOL,
}
FILING_NAMES: dict[str, Sequence[str]] = {
    "date": ("date", "filing_date", "filed", "filed_at"),
    "time": ("time",),
    "accepted": ("accepted", "accepted_at", "acceptance", "acceptance_date_time"),
    "form": ("form", "form_type", "type"),
    "summary": ("summary", "text", "content", "description"),
    "symbol": _SYMBOL,
}


_AS_WRITTEN = ("headline", "summary")  # texts are kept to the letter


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its line in the file (for Parquet its number) and its values as text, None where blank."""

    line: int
    values: Mapping[str, str | None]


def foreign_rows(path: Path, names: Mapping[str, Sequence[str]], bad: list[MalformedData]) -> Iterator[Row]:
    """All rows of a file under our names, the keys of `names`.

    Of a name's alternatives the first existing column counts, in any case and punctuation. Rows that cannot be parsed
    go to `bad`. Raises MissingData for a missing file, UsageError for an unsupported kind, MalformedData where nothing
    can be read.
    """
    if not path.is_file():
        raise MissingData(f"no file at {path}; name the file to import")
    kind = path.suffix.lower()
    if kind == ".csv":
        yield from _csv(path, names, bad)
    elif kind in (".jsonl", ".ndjson"):
        yield from _jsonl(path, names, bad)
    elif kind in (".parquet", ".pq"):
        yield from _parquet(path, names)
    else:
        raise UsageError(f"{path} is neither .csv, .jsonl nor .parquet; convert it to one of them")


def _csv(path: Path, names: Mapping[str, Sequence[str]], bad: list[MalformedData]) -> Iterator[Row]:
    rows = csv_rows(path)
    first = next(rows, None)
    if first is None:
        raise malformed(path, 1, "the file is empty; its first line has to name the columns")
    header = first[1]
    places = {ours: header.index(theirs) for ours, theirs in _columns(header, names).items()}
    for line, cells in rows:
        if len(cells) != len(header):
            bad.append(malformed(path, line, f"{len(cells)} cells where the header has {len(header)}"))
            continue
        yield Row(line, {ours: _text(ours, cells[place]) for ours, place in places.items()})


def _jsonl(path: Path, names: Mapping[str, Sequence[str]], bad: list[MalformedData]) -> Iterator[Row]:
    # Numbers stay the text that stands in the file: a price loses no digit on its way.
    decoder = json.JSONDecoder(parse_float=str, parse_int=str)
    for line, raw in byte_lines(path):
        try:
            record = json_object(path, line, raw, decoder)
        except MalformedData as error:
            bad.append(error)
            continue
        yield Row(
            line,
            {ours: _text(ours, record[theirs]) for ours, theirs in _columns(list(record), names).items()},
        )


def _parquet(path: Path, names: Mapping[str, Sequence[str]]) -> Iterator[Row]:
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise UsageError(f"{path}: reading Parquet needs pyarrow; pip install pyarrow, or convert to CSV") from None
    try:
        records: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    except (OSError, ValueError) as error:
        raise MalformedData(f"{path} is no Parquet file ({str(error)[:80]}); write it again") from None
    columns = _columns(list(records[0]), names) if records else {}
    for number, record in enumerate(records, 1):
        yield Row(number, {ours: _text(ours, record[theirs]) for ours, theirs in columns.items()})


def _columns(theirs: Sequence[str], names: Mapping[str, Sequence[str]]) -> dict[str, str]:
    known = {_plain(name): name for name in reversed(theirs)}
    found = {ours: [known[name] for name in alternatives if name in known] for ours, alternatives in names.items()}
    return {ours: columns[0] for ours, columns in found.items() if columns}


def _plain(name: str) -> str:
    """Column name in snake case: `Adj Close`, `adjClose` and `2. adj-close` are all adj_close."""
    words = re.sub(r"([a-z])([A-Z])", r"\1_\2", name.strip())
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"^\d+\.", "", words).lower()).strip("_")


def _text(ours: str, value: object) -> str | None:
    if value is None or (isinstance(value, float) and isnan(value)):  # NaN: how Parquet often writes a blank
        return None
    if isinstance(value, datetime | date):
        return value.isoformat()
    text = str(value)
    return (text if ours in _AS_WRITTEN else text.strip()) or None


def day_of(text: str) -> str:
    """The date of a date or timestamp as written: vendors stamp a session at local midnight."""
    return text[:10] if len(text) > 10 and text[10] in "T " else text


def is_for(row: Row, symbol: Symbol) -> bool:
    """True for a row of the symbol: files may hold several, told apart by a column."""
    named = row.values.get("symbol")
    return named is None or named.upper().replace("/", "-") == symbol
