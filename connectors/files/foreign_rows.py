"""Rows of files that others wrote (CSV, JSON, JSONL, Parquet, a saved page) under our names of columns
(import_files.toml)."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from math import isnan
from pathlib import Path
from typing import Any

from connectors.files import foreign_json
from connectors.files.columns import TEXTS, Names, columns_of, plain_name
from connectors.files.foreign_json import SYMBOL, Record
from connectors.files.foreign_tables import Foreign, decoded, is_page, table
from connectors.text import without_markup
from engine.errors import MalformedData, MissingData, UsageError

_BLANK = ("None", "nan", "NaN", "NaT", "null")
_TABLES = (".csv", ".tsv", ".txt", ".htm", ".html")
_JSON = (".json", ".jsonl", ".ndjson")
_PARQUET = (".parquet", ".pq")
_DEEP = re.compile(r"_(symbol|ticker)s?$")
"""Columns of symbols that stand deep in a record."""
_SYMBOL, _SENTIMENT = ("ticker", "symbol", "name", "code"), "sentiment"


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its line in the file (for JSON and Parquet its number), its values as text, None where blank, all that
    the file has of it, and of news the sentiment of each symbol that it names."""

    line: int
    values: Mapping[str, str | None]
    theirs: Record = field(default_factory=dict)
    sentiments: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ForeignRows:
    """The rows of a file under our names, the file's columns by these names, and what was passed over."""

    rows: Sequence[Row]
    columns: Mapping[str, str]
    read: Foreign


def foreign_rows(path: Path, names: Names, *, header: bool = True) -> ForeignRows:
    """All rows of a file under our names, the keys of `names`. What a file is, is told by what it holds.

    Raises MissingData for a missing file and an answer without data, with what it says, UsageError for an unsupported
    kind, MalformedData where nothing can be read.
    """
    if not path.is_file():
        raise MissingData(f"no file at {path}; name the file to import")
    kind = path.suffix.lower()
    if kind in _PARQUET:
        read = Foreign(records=list(enumerate(_parquet(path), 1)))
    elif kind in (*_TABLES, *_JSON):
        text, encoding = decoded(path)
        if text.lstrip()[:1] in ("{", "[") or (kind in _JSON and not is_page(text)):
            read = foreign_json.records(path, text, one_per_line=kind in _JSON[1:])
        else:
            read = table(path, text, names, header=header)
        if not encoding.startswith("utf"):
            read.notes.append(f"read as {encoding}, since it is not UTF-8")
    else:
        raise UsageError(f"{path} is neither .csv, .json, .jsonl nor .parquet; convert it to one of them")
    columns: dict[str, str] = {}
    rows = list(_mapped(names, read.records, columns))
    return ForeignRows(rows, columns, read)


def unit_of(path: Path) -> str:
    """The unit that is counted in a file: lines or records."""
    return "record" if path.suffix.lower() in (_JSON[0], *_PARQUET) else "line"


def _parquet(path: Path) -> list[Record]:
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise UsageError(f"{path}: reading Parquet needs pyarrow; pip install pyarrow, or convert to CSV") from None
    try:
        records: list[Record] = parquet.read_table(path).to_pylist()
    except (OSError, ValueError) as error:
        raise MalformedData(f"{path} is no Parquet file ({str(error)[:80]}); write it again") from None
    return records


def _mapped(names: Names, records: Sequence[tuple[int, Record]], all_columns: dict[str, str]) -> Iterator[Row]:
    columns: dict[str, str] = {}
    known: tuple[str, ...] | None = None
    for line, nested in records:
        record = _flat(nested)
        if known != tuple(record):  # the records of one file are mostly alike
            known = tuple(record)
            columns = columns_of(known, names)
            if "symbol" not in columns and names.get("symbol"):
                deep = [one for one in known if _DEEP.search(plain_name(one))]
                columns |= {"symbol": deep[0]} if deep else {}
            all_columns |= {ours: theirs for ours, theirs in columns.items() if ours not in all_columns}
        values = {ours: _text(ours, record[theirs]) for ours, theirs in columns.items()}
        yield Row(line, values, record, _sentiments(nested) if _SENTIMENT in names else {})


def _flat(record: Record) -> Record:
    """A record with the fields of objects inside it beside its own: publisher.name is publisher_name, the names of a
    list of stocks are stocks_name."""
    if not any(isinstance(value, dict | list) for value in record.values()):
        return record
    flat: dict[str, Any] = {}
    for key, value in record.items():
        if isinstance(value, dict):
            flat |= {f"{key}_{name}": one for name, one in _flat(value).items()}
            if value and all(map(SYMBOL.fullmatch, value)):
                flat[key] = list(value)  # what is said of each symbol
        elif objects := _objects(value):
            every = [_flat(one) for one in objects]
            flat |= {f"{key}_{name}": [one.get(name) for one in every] for name in every[0]}
        else:
            flat[key] = value
    return flat


def _objects(value: Any) -> list[Record]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _sentiments(record: Record) -> dict[str, str]:
    """The sentiment of each symbol that a record's lists of objects tell."""
    found: dict[str, str] = {}
    for one in (one for value in record.values() for one in _objects(value)):
        symbol = next((one[key] for key in _SYMBOL if isinstance(one.get(key), str)), None)
        told = sorted((key for key in one if _SENTIMENT in plain_name(key)), key=lambda key: "score" in key)
        if symbol and told and isinstance(one[told[0]], str):
            found[symbol] = one[told[0]]
    return found


def _text(ours: str, value: object) -> str | None:
    if value is None or (isinstance(value, float) and isnan(value)):  # NaN: how Parquet often writes a blank
        return None
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, list):
        return ",".join(one for one in value if isinstance(one, str)) or None
    text = str(value)
    if ours in TEXTS:
        return without_markup(text) or None
    text = text.strip()
    return None if text in _BLANK else text or None
