"""Rows of foreign CSV, JSONL or Parquet files under our column names, with the number of each row."""

from __future__ import annotations

import importlib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from importlib.resources import files
from math import isnan
from pathlib import Path
from typing import Any

from connectors.files.rows import byte_lines, csv_rows, json_object, malformed
from engine.errors import MalformedData, MissingData, UsageError

Names = Mapping[str, Sequence[str]]
"""Our names of columns, each with the alternatives in foreign files."""

_AS_WRITTEN = ("headline", "summary")  # texts are kept to the letter


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its line in the file (for Parquet its number) and its values as text, None where blank."""

    line: int
    values: Mapping[str, str | None]


def column_names(kind: str) -> Names:
    """The names of a kind of data: prices, actions, news or filings."""
    names: dict[str, Names] = tomllib.loads((files(__package__) / "foreign_columns.toml").read_text(encoding="utf-8"))
    return names[kind]


def foreign_rows(path: Path, names: Names, bad: list[MalformedData]) -> Iterator[Row]:
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


def _csv(path: Path, names: Names, bad: list[MalformedData]) -> Iterator[Row]:
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


def _jsonl(path: Path, names: Names, bad: list[MalformedData]) -> Iterator[Row]:
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


def _parquet(path: Path, names: Names) -> Iterator[Row]:
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


def _columns(theirs: Sequence[str], names: Names) -> dict[str, str]:
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
