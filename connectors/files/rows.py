"""Rows of the data folder's files: read with their line numbers, checked, and appended in a single step.

A bad row is one error with file, line number and remedy.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, TypeVar

from engine.errors import MalformedData
from engine.settings.places import write_whole

Item = TypeVar("Item")


def malformed(path: Path, line: int, problem: str, unit: str = "line") -> MalformedData:
    """The error for one bad row, whose number counts lines unless another unit is named; `problem` has the remedy."""
    return MalformedData(f"{path}, {unit} {line}: {problem}")


def csv_rows(path: Path, delimiter: str = ",") -> Iterator[tuple[int, list[str]]]:
    """Rows of a CSV file with the number of their first line; blank lines are skipped.

    Raises MalformedData for text that is neither UTF-8 nor CSV.
    """
    line = 1
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            for cells in reader:
                if cells:
                    yield line, cells
                line = reader.line_num + 1
    except UnicodeDecodeError:
        raise malformed(path, line, "the text is not UTF-8; save the file as UTF-8") from None
    except csv.Error as error:
        raise malformed(path, line, f"invalid CSV ({error}); correct its quotes") from None


def csv_items(path: Path, columns: Sequence[str], parse: Callable[[list[str]], Item]) -> Iterator[tuple[int, Item]]:
    """Items that `parse` makes of a CSV file's rows, with their line numbers; it raises ValueError for a bad row.

    Raises MalformedData at the first bad row, and unless the file starts with exactly these columns.
    """
    rows = csv_rows(path)
    wanted = ",".join(columns)
    line, header = next(rows, (1, None))
    if header is None:
        raise malformed(path, line, f"the file is empty; its first line must be {wanted}")
    if header != list(columns):
        problem = f"the columns are {','.join(header)[:120]}, not {wanted}; `paperdesk import` maps them"
        raise malformed(path, line, problem)
    yield from _parsed(path, rows, parse)


def json_items(path: Path, parse: Callable[[dict[str, Any]], Item]) -> Iterator[tuple[int, Item]]:
    """Items that `parse` makes of a JSONL file's objects, with their line numbers; none where the file is missing.

    Raises MalformedData at the first line without a JSON object or with a bad one.
    """
    if path.exists():
        decoder = json.JSONDecoder()
        objects = ((line, json_object(path, line, raw, decoder)) for line, raw in byte_lines(path))
        yield from _parsed(path, objects, parse)


def _parsed(path: Path, rows: Iterable[tuple[int, Any]], parse: Callable[[Any], Item]) -> Iterator[tuple[int, Item]]:
    for line, row in rows:
        try:
            item = parse(row)
        except (ValueError, OverflowError) as problem:
            raise malformed(path, line, str(problem)) from None
        yield line, item


def byte_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Lines of a file without blank ones, numbered from 1, without a byte order mark."""
    with path.open("rb") as file:
        for line, raw in enumerate(file, 1):
            if line == 1:
                raw = raw.removeprefix(b"\xef\xbb\xbf")
            if raw.strip():
                yield line, raw


def json_object(path: Path, line: int, raw: bytes, decoder: json.JSONDecoder) -> dict[str, Any]:
    """One line's JSON object. Raises MalformedData naming file and line."""
    try:
        value = decoder.decode(raw.decode("utf-8").strip())
    except UnicodeDecodeError:
        raise malformed(path, line, "the text is not UTF-8; save the file as UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise malformed(path, line, f"invalid JSON ({error}); write one object per line") from None
    if not isinstance(value, dict):
        raise malformed(path, line, 'not a JSON object; write one {"date": ...} per line')
    if b"\\ud" in raw.lower() and not _encodable(value):
        raise malformed(path, line, "half of a surrogate pair is missing; save the text as UTF-8")
    return value


def _encodable(value: object) -> bool:
    # An escaped half of a pair is legal JSON and breaks whoever writes the text on.
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def iso_date(text: str) -> date:
    """A date written YYYY-MM-DD. Raises ValueError saying so."""
    try:
        if len(text) != 10 or text[4] != "-" or text[7] != "-":
            raise ValueError
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text[:40]!r} is not a date; write it as YYYY-MM-DD") from None


def parse_stamp(text: str) -> date | datetime:
    """A date (YYYY-MM-DD), or a time (ISO 8601; UTC without an offset) converted to UTC. Raises ValueError with the
    remedy."""
    try:
        if len(text) < 10 or text[4] != "-" or text[7] != "-":
            raise ValueError
        return date.fromisoformat(text) if len(text) == 10 else in_utc(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        raise ValueError(f"{text[:40]!r} is not a date; write YYYY-MM-DD or YYYY-MM-DDTHH:MM:SSZ") from None


def in_utc(moment: datetime) -> datetime:
    """A time in UTC, which one without an offset is taken for."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def number(column: str, text: str) -> Decimal:
    """A finite decimal number. Raises ValueError naming its column."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite() or "_" in text:
        raise ValueError(f"{column} {text[:40]!r} is not a number; correct the row")
    return value


def append_lines(path: Path, lines: Sequence[str]) -> None:
    """Append whole lines in a single step; without any the file stays untouched."""
    if lines:
        old = path.read_text(encoding="utf-8-sig") if path.exists() else ""
        write_whole(path, old + ("\n" if old and not old.endswith("\n") else "") + "".join(lines))


def json_line(record: dict[str, str | None]) -> str:
    """One object on one line."""
    return json.dumps(record, ensure_ascii=False) + "\n"
