"""Rows of files that others wrote (CSV, JSON, JSONL, Parquet) under our names of columns (import_files.toml)."""

from __future__ import annotations

import importlib
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import islice
from math import isnan
from pathlib import Path
from typing import Any

from connectors.files.rows import byte_lines, csv_rows, json_object, malformed
from engine.errors import MalformedData, MissingData, UsageError
from engine.program_files import program_text

Names = Mapping[str, Sequence[str]]
"""Our names of columns, each with the alternatives in foreign files."""
Record = Mapping[str, Any]

_AS_WRITTEN = ("headline", "summary", "text")  # texts are kept to the letter
_BLANK = ("None", "nan", "NaN", "NaT", "null")
_COMMA = re.compile(r"[+-]?[\d.]+,\d+")
_DAY = re.compile(r"\d{4}-\d\d-\d\d|\d{8,13}")
_BY_SYMBOL = "bars"  # the key of records by symbol
_OF_A_KIND = ("cash_dividends", "stock_dividends")  # keys that say what their records' `rate` is
_SYMBOL_KEYS = ("symbol", "ticker", "2. Symbol")


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its line in the file (for JSON and Parquet its number) and its values as text, None where blank."""

    line: int
    values: Mapping[str, str | None]


def column_names(kind: str, chosen: Mapping[str, str]) -> Names:
    """The names of a kind of data, with the columns that a person has chosen; an empty one leaves the field out.
    Raises UsageError for a field that the kind does not have."""
    tables: dict[str, Names] = tomllib.loads(program_text(Path(__file__).with_name("import_files.toml")))
    names = tables[kind]
    fields = {field for table in tables.values() for field in table}
    for field in chosen:
        if field not in fields:
            raise UsageError(f"--map {field}: there is no such field; {kind} have {', '.join(names)}")
    own = {ours: (plain_name(theirs),) if theirs else () for ours, theirs in chosen.items() if ours in names}
    return {**names, **own}


def foreign_rows(path: Path, names: Names, bad: list[MalformedData]) -> Iterator[Row]:
    """All rows of a file under our names, the keys of `names`.

    Of a name's alternatives the first existing column counts, in any case and punctuation. Rows that cannot be parsed
    go to `bad`. Raises MissingData for a missing file, UsageError for an unsupported kind, MalformedData where nothing
    can be read.
    """
    if not path.is_file():
        raise MissingData(f"no file at {path}; name the file to import")
    kind = path.suffix.lower()
    if kind in (".csv", ".tsv", ".txt"):
        yield from _csv(path, names, bad)
    elif kind in (".json", ".jsonl", ".ndjson"):
        yield from _json(path, names, bad)
    elif kind in (".parquet", ".pq"):
        yield from _parquet(path, names)
    else:
        raise UsageError(f"{path} is neither .csv, .json, .jsonl nor .parquet; convert it to one of them")


def plain_name(name: str) -> str:
    """Column name in snake case: `Adj Close`, `adjClose` and `2. adj-close` are all adj_close."""
    words = re.sub(r"([a-z])([A-Z])", r"\1_\2", name.strip())
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"^\d+\.", "", words).lower()).strip("_") or "unnamed"


def _csv(path: Path, names: Names, bad: list[MalformedData]) -> Iterator[Row]:
    delimiter = _delimiter(path)
    rows = csv_rows(path, delimiter)
    first = next(rows, None)
    if first is None:
        raise malformed(path, 1, "the file is empty; its first line has to name the columns")
    header, whole = first[1], list(rows)
    if delimiter == ";" and any(_COMMA.fullmatch(cell) for _, cells in whole for cell in cells):
        whole = [(line, [_with_point(cell) for cell in cells]) for line, cells in whole]
    # A bad row is told in its turn, between those that a reader finds fault with.
    even = ((line, cells) for line, cells in whole if _as_long(path, line, cells, header, bad))
    if whole and {header[0].lower(), whole[0][1][0].lower()} == {"ticker", "price"}:
        yield from _by_ticker([header, *(cells for _, cells in even)], names)
    else:
        yield from _mapped(names, ((line, dict(zip(header, cells, strict=True))) for line, cells in even))


def _as_long(path: Path, line: int, cells: Sequence[str], header: Sequence[str], bad: list[MalformedData]) -> bool:
    if len(cells) != len(header):
        bad.append(malformed(path, line, f"{len(cells)} cells where the header has {len(header)}"))
    return len(cells) == len(header)


def _by_ticker(rows: Sequence[Sequence[str]], names: Names) -> Iterator[Row]:
    """Rows of a file of tickers side by side (yfinance): two lines name the ticker and the field of each column, a
    third the index. A ticker without a price on a day did not trade."""
    tickers, fields = sorted(rows[:2], key=lambda row: row[0].lower() != "ticker")
    for ticker in dict.fromkeys(tickers[1:]):
        places = [n for n, other in enumerate(tickers) if n and other == ticker]
        yield from _mapped(
            names,
            (
                (line, {"date": cells[0], "symbol": ticker} | {fields[n]: cells[n] for n in places})
                for line, cells in enumerate(rows[2:], 3)
                if cells[0].lower() != "date" and any(cells[n] for n in places)
            ),
        )


def _delimiter(path: Path) -> str:
    with path.open("rb") as file:
        head = file.readline()
    return max((b",", b";", b"\t"), key=head.count).decode()


def _with_point(cell: str) -> str:
    """A number of a file with decimal commas; other cells stay as they are."""
    number = cell.strip()
    if re.fullmatch(r"[+-]?\d{1,3}(\.\d{3})*(,\d+)?|[+-]?\d+,\d+", number):
        return number.replace(".", "").replace(",", ".")
    return cell


def _json(path: Path, names: Names, bad: list[MalformedData]) -> Iterator[Row]:
    # Numbers stay the text that stands in the file: a price loses no digit on its way.
    decoder = json.JSONDecoder(parse_float=str, parse_int=str)
    if path.suffix.lower() == ".json":
        try:
            records = list(_records(_document(path, decoder)))
        except RecursionError:
            raise malformed(path, 1, "this is nested too deeply; save the answer as it came") from None
        yield from _mapped(names, enumerate(records, 1))
        return
    for line, raw in byte_lines(path):
        try:
            record = json_object(path, line, raw, decoder)
        except MalformedData as error:
            bad.append(error)
            continue
        yield from _mapped(names, [(line, record)])


def _document(path: Path, decoder: json.JSONDecoder) -> Any:
    lines = list(islice(byte_lines(path), 2))
    try:
        return decoder.decode(path.read_bytes().removeprefix(b"\xef\xbb\xbf").decode("utf-8").strip())
    except (ValueError, RecursionError) as error:
        if len(lines) > 1 and lines[0][1].lstrip().startswith(b"{") and lines[0][1].rstrip().endswith(b"}"):
            return [json_object(path, line, raw, decoder) for line, raw in byte_lines(path)]
        raise malformed(path, 1, f"this is no JSON ({str(error)[:80]}); save the answer as it came") from None


def _records(value: Any, around: Record | None = None, group: str = "") -> Iterator[Record]:
    """The records of an answer: a list of them, columns of equal length, fields and items, records by day or by symbol,
    and any of these under a key.

    What stands around them (the symbol) counts for each; the key they stand under leads a copy of their names, so that
    a `rate` under cash_dividends can be told from one under stock_dividends.
    """
    around = around or {}
    if isinstance(value, list):
        for one in filter(lambda one: isinstance(one, dict), value):
            own = {f"{group}_{key}": field for key, field in one.items()} if group in _OF_A_KIND else {}
            yield {**around, **own, **one}
        return
    if not isinstance(value, dict):
        return
    columns = {key: column for key, column in value.items() if _is_column(column)}
    if "fields" in columns and isinstance(value.get("items"), list):
        for cells in filter(_is_column, value["items"]):
            yield {**around, **dict(zip(columns["fields"], cells, strict=False))}
    elif len(columns) > 1 and len({len(column) for column in columns.values()}) == 1:
        for cells in zip(*columns.values(), strict=True):
            yield {**around, **dict(zip(columns, cells, strict=True))}
    else:
        yield from _inside(value, around, group)


def _inside(value: Record, around: Record, group: str) -> Iterator[Record]:
    if _by_day(value):
        yield from ({**around, "date": day, **cells} for day, cells in value.items() if isinstance(cells, dict))
        return
    if value and all(map(_by_day, value.values())):
        # Columns by day, as pandas writes a frame.
        for day in next(iter(value.values())):
            yield {**around, "date": day, **{name: column.get(day) for name, column in value.items()}}
        return
    around = {**around, **_symbol_around(value)}
    for key, child in value.items():
        named = {"symbol": key} if group == _BY_SYMBOL else {}
        yield from _records(child, {**around, **named}, key)


def _by_day(value: Any) -> bool:
    return isinstance(value, dict) and bool(value) and all(map(_DAY.match, value))


def _is_column(value: Any) -> bool:
    return isinstance(value, list) and not any(isinstance(one, dict | list) for one in value)


def _symbol_around(value: Record) -> dict[str, str]:
    """The symbol that an answer names beside its records, or in its description of them."""
    described = (value, *(child for child in value.values() if isinstance(child, dict)))
    found = (one[key] for one in described for key in _SYMBOL_KEYS if isinstance(one.get(key), str))
    symbol = next(found, None)
    return {} if symbol is None else {"symbol": symbol}


def _parquet(path: Path, names: Names) -> Iterator[Row]:
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise UsageError(f"{path}: reading Parquet needs pyarrow; pip install pyarrow, or convert to CSV") from None
    try:
        records: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    except (OSError, ValueError) as error:
        raise MalformedData(f"{path} is no Parquet file ({str(error)[:80]}); write it again") from None
    yield from _mapped(names, enumerate(records, 1))


def _mapped(names: Names, records: Iterable[tuple[int, Record]]) -> Iterator[Row]:
    columns: dict[str, str] = {}
    known: tuple[str, ...] | None = None
    for line, nested in records:
        record = _flat(nested)
        if known != tuple(record):  # the records of one file are mostly alike
            known, columns = tuple(record), _columns(tuple(record), names)
        yield Row(line, {ours: _text(ours, record[theirs]) for ours, theirs in columns.items()})


def _flat(record: Record) -> Record:
    """A record with the fields of objects inside it beside its own: publisher.name is publisher_name."""
    if not any(isinstance(value, dict) for value in record.values()):
        return record
    flat: dict[str, Any] = {}
    for key, value in record.items():
        inside = _flat(value).items() if isinstance(value, dict) else ()
        flat |= {f"{key}_{name}": one for name, one in inside} if isinstance(value, dict) else {key: value}
    return flat


def _columns(theirs: Sequence[str], names: Names) -> dict[str, str]:
    known = {plain_name(name): name for name in reversed(theirs)}
    found = {ours: [known[name] for name in alternatives if name in known] for ours, alternatives in names.items()}
    return {ours: columns[0] for ours, columns in found.items() if columns}


def _text(ours: str, value: object) -> str | None:
    if value is None or (isinstance(value, float) and isnan(value)):  # NaN: how Parquet often writes a blank
        return None
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, list):
        return ",".join(one for one in value if isinstance(one, str)) or None
    text = str(value)
    if ours in _AS_WRITTEN:
        return text or None
    text = text.strip()
    return None if text in _BLANK else text or None
