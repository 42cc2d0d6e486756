"""Rows of CSV and JSONL files, and the error for a bad one: one line with file, line number and remedy."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from engine.errors import MalformedData


def malformed(path: Path, line: int, problem: str) -> MalformedData:
    """The error for one bad row; `problem` has the remedy."""
    return MalformedData(f"{path}, line {line}: {problem}")


def csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Rows of a CSV file with the number of their first line; blank lines are skipped.

    Raises MalformedData for text that is neither UTF-8 nor CSV.
    """
    line = 1
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            for cells in reader:
                if cells:
                    yield line, cells
                line = reader.line_num + 1
    except UnicodeDecodeError:
        raise malformed(path, line, "the text is not UTF-8; save the file as UTF-8") from None
    except csv.Error as error:
        raise malformed(path, line, f"this is no CSV row ({error}); correct its quotes") from None


def check_header(path: Path, header: tuple[int, list[str]] | None, columns: Sequence[str]) -> None:
    """Raise MalformedData unless a file starts with exactly these columns."""
    wanted = ",".join(columns)
    if header is None:
        raise malformed(path, 1, f"the file is empty; its first line has to be {wanted}")
    line, cells = header
    if cells != list(columns):
        problem = f"the columns are {','.join(cells)[:120]}, not {wanted}; `paperdesk import` maps them"
        raise malformed(path, line, problem)


def json_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Objects of a JSONL file with their line numbers; blank lines are skipped.

    Raises MalformedData at a line without a JSON object.
    """
    decoder = json.JSONDecoder()
    for line, raw in byte_lines(path):
        yield line, json_object(path, line, raw, decoder)


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
        raise malformed(path, line, f"this is no JSON ({error}); write one object per line") from None
    if not isinstance(value, dict):
        raise malformed(path, line, 'this is no JSON object; write one {"date": ...} per line')
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
