"""Rows of files that others wrote (CSV, JSON, JSONL, Parquet, a saved page) under our names of columns
(import_files.toml)."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from math import isnan
from pathlib import Path
from typing import Any

from connectors.files.columns import TEXTS, Names, columns_of, plain_name
from connectors.files.foreign_tables import Foreign, decoded, is_page, table
from connectors.files.rows import json_object, malformed
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
            read = records(path, text, one_per_line=kind in _JSON[1:])
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
        raise MalformedData(f"{path} is not a Parquet file ({str(error)[:80]}); write it again") from None
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


Record = Mapping[str, Any]

_DAY = re.compile(r"\d{4}-\d\d-\d\d|\d{8,13}")
SYMBOL = re.compile(r"(?=.*[A-Z])[A-Z0-9.:^=/-]{1,16}")
"""A key that is a symbol."""
_OF_A_KIND = ("cash_dividends", "stock_dividends", "dividends", "splits")
"""Keys that say what the `rate` or `amount` of their records is."""
_SYMBOL_KEYS = ("symbol", "ticker", "2. Symbol")
_NAMES = ("fields", "columns", "column_names", "headers")
_ROWS = ("items", "data", "values", "rows")
"""Keys of names of columns, and of rows of cells."""
_TEXTS_OF_DAY: Mapping[str, Record] = {"news": {}, "10k": {"form": "10-K"}, "10q": {"form": "10-Q"}}
"""Keys of a day's texts in InvestorBench's files, with what they tell."""
_LABEL = re.compile(r"\(sentiment:\s*(\w+)\)\s*$", re.IGNORECASE)
_FIGURE = re.compile(r"\d")
_QUOTED = 240
"""Characters of an answer without data that are told."""
_TOLD = ("error", "message", "detail", "description", "information", "note", "reason", "msg")
"""Words in the keys under which a service says why there is no answer."""


def records(path: Path, text: str, *, one_per_line: bool) -> Foreign:
    """The records of a JSON document, or of an object on each line. Raises MalformedData."""
    # Numbers stay the text that stands in the file: a price loses no digit on its way.
    decoder = json.JSONDecoder(parse_float=str, parse_int=str)
    found = Foreign()
    document = None if one_per_line else _document(path, text, decoder)
    if document is None:
        document = _lines(path, text, decoder, found)
    else:
        try:
            found.records = list(enumerate(_records(document), 1))
        except RecursionError:
            raise malformed(path, 1, "nested too deeply; save the response unchanged") from None
    if len(found.records) < 2:
        found.message = " ".join(" ".join(list(words_of(document)) or [text]).split())[:_QUOTED]
    return found


def _document(path: Path, text: str, decoder: json.JSONDecoder) -> Any:
    """The document of a text; None where it has an object on each line."""
    try:
        return decoder.decode(text.strip())
    except (ValueError, RecursionError) as error:
        first, *more = text.strip().splitlines() or [""]
        if more and first.lstrip().startswith("{") and first.rstrip().endswith("}"):
            return None
        problem = f"invalid JSON ({str(error)[:80]}); it says: {' '.join(text.split())[:_QUOTED]!r}"
        raise malformed(path, 1, f"{problem}; save the response unchanged") from None


def _lines(path: Path, text: str, decoder: json.JSONDecoder, found: Foreign) -> Any:
    for line, raw in enumerate(text.split("\n"), 1):
        if raw.strip():
            try:
                found.records.append((line, json_object(path, line, raw.encode("utf-8", "surrogatepass"), decoder)))
            except MalformedData as error:
                found.bad.append(error)
    return [record for _, record in found.records]


def words_of(value: Any, key: str = "") -> Iterator[str]:
    """Message of a document without data: texts under a key for that."""
    if isinstance(value, dict):
        for name, child in value.items():
            yield from words_of(child, name)
    elif isinstance(value, list):
        for child in value[:10]:
            yield from words_of(child, key)
    elif isinstance(value, str) and any(word in key.casefold() for word in _TOLD):
        yield value


def _records(value: Any, around: Record | None = None, group: str = "") -> Iterator[Record]:
    """The records of an answer: a list of them, columns of equal length, fields and items, records by day or by symbol,
    and any of these under a key.

    What stands around them (the symbol) counts for each; the key they stand under leads a copy of their names, so that
    a `rate` under cash_dividends can be told from one under stock_dividends.
    """
    around = around or {}
    if isinstance(value, list):
        yield from _in_list(value, around, group)
    elif isinstance(value, dict):
        columns, (names, rows) = _columns(value), _names_and_rows(value)
        if rows:
            yield from ({**around, **dict(zip(names, cells, strict=False))} for cells in rows)
        elif _are_even(columns):
            yield from _rows(value, columns, around)
        else:
            yield from _inside(value, around, group)


def _in_list(value: list[Any], around: Record, group: str) -> Iterator[Record]:
    for one in filter(lambda one: isinstance(one, dict), value):
        columns = _columns(one)
        if len(value) == 1 and _are_even(columns):
            yield from _rows(one, columns, around)
        else:
            yield {**around, **_grouped(one, group), **one}
    if value and all(map(_is_column, value)):
        # Rows of cells, perhaps with a first one of names.
        first = value[0] if all(isinstance(cell, str) and not _FIGURE.search(cell) for cell in value[0]) else []
        names = first or [str(n) for n in range(1, len(value[0]) + 1)]
        yield from ({**around, **dict(zip(names, cells, strict=False))} for cells in value[bool(first) :])


def _are_even(columns: Mapping[str, list[Any]]) -> bool:
    return len(columns) > 1 and len({len(column) for column in columns.values()}) == 1


def _names_and_rows(value: Record) -> tuple[list[str], list[list[Any]]]:
    """Names of columns beside rows of cells (tushare, frames of pandas with their index), none without them."""
    named = next((value[key] for key in _NAMES if isinstance(value.get(key), list)), None)
    rows: list[Any] = next((value[key] for key in _ROWS if isinstance(value.get(key), list)), [])
    if named is None or not all(map(_is_column, rows)):
        return [], []
    names = [str(one.get("name")) if isinstance(one, dict) else str(one) for one in named]
    index = value.get("index")
    if isinstance(index, list) and len(index) == len(rows):
        return ["index", *names], [[day, *cells] for day, cells in zip(index, rows, strict=True)]
    return names, rows


def _rows(value: Record, columns: Mapping[str, list[Any]], around: Record) -> Iterator[Record]:
    """The rows of columns, and the records that stand beside them."""
    around = {**around, **_symbol_around(value)}
    for cells in zip(*columns.values(), strict=True):
        yield {**around, **dict(zip(columns, cells, strict=True))}
    events = value.get("events")
    for group, children in events.items() if isinstance(events, dict) else ():
        yield from _records(children, around, group)


def _inside(value: Record, around: Record, group: str) -> Iterator[Record]:
    if _by_day(value):
        for day, cells in value.items():
            if isinstance(cells, dict):
                yield from _apart({**around, "date": day, **_grouped(cells, group), **cells})
        return
    if value and all(map(_by_day, value.values())):
        # Columns by day, as pandas writes a frame.
        for day in next(iter(value.values())):
            yield {**around, "date": day, **{name: column.get(day) for name, column in value.items()}}
        return
    around = {**around, **_symbol_around(value)}
    by_symbol = bool(value) and all(
        SYMBOL.fullmatch(key) and isinstance(child, dict | list) for key, child in value.items()
    )
    for key, child in value.items():
        yield from _records(child, {**around, **({"symbol": key} if by_symbol else {})}, group if by_symbol else key)


def _apart(day: Record) -> Iterator[Record]:
    """A day's record; of texts that it lists one each, under their key and with the label that they end with. An entry
    without a letter is no text: it stays empty, and is dropped and counted."""
    lists = {key: day[key] for key in _TEXTS_OF_DAY if isinstance(day.get(key), list)}
    yield {key: field for key, field in day.items() if key not in lists}
    for key, texts in lists.items():
        for entry in texts:
            text = entry if isinstance(entry, str) and any(map(str.isalpha, entry)) else None
            about = {name: day[name] for name in ("date", "symbol") if name in day}
            label = text and _LABEL.search(text)
            yield {**about, **_TEXTS_OF_DAY[key], key: text, "sentiment": label and label[1]}


def _grouped(record: Record, group: str) -> Record:
    return {f"{group}_{key}": field for key, field in record.items()} if group in _OF_A_KIND else {}


def _columns(value: Record) -> dict[str, list[Any]]:
    """Lists of an object without objects in them; where there is one alone, with those of its length that stand deeper
    (Yahoo's timestamp, and its prices under indicators)."""
    own = {key: column for key, column in value.items() if _is_column(column)}
    if len(own) != 1:
        return own
    length = len(next(iter(own.values())))
    deeper = {name: column for child in value.values() for name, column in _deeper(child) if len(column) == length}
    return own | deeper


def _deeper(value: Any) -> Iterator[tuple[str, list[Any]]]:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, dict):
        for key, child in value.items():
            if _is_column(child):
                yield key, child
            else:
                yield from _deeper(child)


def _by_day(value: Any) -> bool:
    return isinstance(value, dict) and bool(value) and all(map(_DAY.match, value))


def _is_column(value: Any) -> bool:
    return isinstance(value, list) and not any(isinstance(one, dict | list) for one in value)


def _symbol_around(value: Record) -> dict[str, str]:
    """The symbol and the currency that an answer names beside its records, or in its description of them."""
    described = (value, *(child for child in value.values() if isinstance(child, dict)))
    found: dict[str, str] = {}
    for one in described:
        for ours, keys in (("symbol", _SYMBOL_KEYS), ("currency", ("currency",))):
            for key in keys:
                if isinstance(one.get(key), str):
                    found.setdefault(ours, one[key])
    return found
