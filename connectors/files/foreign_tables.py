"""Tables in text files that others wrote: CSV with any delimiter, and pages of HTML, with what stands around them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

from connectors.files.columns import DATES, NUMBERS, Names, columns_of
from connectors.files.rows import malformed
from connectors.text import plain
from engine.errors import MalformedData


class NoHeader(MalformedData):
    """No line of a table names its columns."""


Cells = list[str]
Lines = list[tuple[int, Cells]]

_LOOKED_AT = 40
"""Lines of a file among which its header is looked for."""
_QUOTED = 160
"""Characters of a file that is no table that are told."""
_PAGE = re.compile(r"\s*<(!doctype html|html|head|body|table|\?xml)", re.IGNORECASE)
_SEPARATOR = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)
_PAID = re.compile(r"([\d.]+)\s+Dividend|([\d.]+\s*[:/]\s*[\d.]+)\s+Stock Splits?", re.IGNORECASE)
"""A row without prices among those of a page of Yahoo."""
_TICKERS = {"ticker", "price"}
"""First cells of the two lines by which yfinance names columns."""
_CHINESE = re.compile(rb"(?:[\xb0-\xf7][\xa1-\xfe]){2}")
"""Two characters of GB 2312 in a row."""
_FIGURE = re.compile(r"\d")


@dataclass(slots=True)
class Foreign:
    """The content of a file.

    records: its records with the line of each (for JSON and Parquet their number).
    notes: what was passed over.
    bad: rows that cannot be read.
    semicolons: True where they part its cells, as in countries with a decimal comma.
    header: the line of the names of columns, where there is one.
    message: of an answer without records.
    """

    records: list[tuple[int, Mapping[str, object]]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    bad: list[MalformedData] = field(default_factory=list)
    semicolons: bool = False
    header: int | None = None
    message: str = ""


def decoded(path: Path) -> tuple[str, str]:
    """The text of a file, and its encoding: UTF-8, UTF-16, or the one of Excel in the west or in China. Raises
    MalformedData for another."""
    raw = path.read_bytes()
    marked = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    for encoding in (marked, "gb18030" if _CHINESE.search(raw) else "cp1252"):
        try:
            return raw.decode(encoding), encoding
        except UnicodeDecodeError as error:
            line = raw.count(b"\n", 0, error.start) + 1
    raise malformed(path, line, "the text is neither UTF-8 nor UTF-16; save the file as UTF-8")


def is_page(text: str) -> bool:
    """True for HTML."""
    return bool(_PAGE.match(text))


def table(path: Path, text: str, names: Names, *, header: bool) -> Foreign:
    """The table of a text, whose header is the line that has most of the names; without `header` its columns are named
    by their numbers, 1, 2 and so on.

    What stands before and after the table is passed over and noted. Raises MalformedData where there is no table, with
    the words that are there instead, and where it has no header.
    """
    found = Foreign()
    if not text.strip():
        raise malformed(path, 1, "the file is empty; its first line must name the columns")
    lines, separator = (_of_page(text, names), "") if is_page(text) else _of_text(path, text, names)
    found.semicolons = separator == ";"
    pairs = pairwise(cells for _, cells in lines[:_LOOKED_AT])
    by_ticker = next((at for at, pair in enumerate(pairs) if {cells[0].lower() for cells in pair} == _TICKERS), None)
    start = by_ticker if by_ticker is not None else _header(lines, names) if header else 0
    if start is None:
        raise _no_table(path, text, lines, names)
    passed = [" ".join(filter(None, cells)) for _, cells in lines[:start] if any(cells)]
    if passed:
        found.notes.append(f"passed over before the table: {'; '.join(passed)[:_QUOTED]}")
    rows = lines[start:]
    if by_ticker is not None:
        found.records = _by_ticker(rows)
        return found
    if not header:
        rows.insert(0, (0, [str(n) for n in range(1, max(len(cells) for _, cells in rows) + 1)]))
    found.header = rows[0][0] or None
    _fill(path, found, rows, names)
    return found


def _of_text(path: Path, text: str, names: Names) -> tuple[Lines, str]:
    """Lines of cells, and what parts them: the mark that a line `sep=` says, else that by which most names are
    found."""
    head = text.replace("\0", "").splitlines()[:_LOOKED_AT]

    def fit(mark: str) -> tuple[int, int]:
        tried = list(csv.reader(head, delimiter=mark, skipinitialspace=True))
        return max((_score(row, names) for row in tried), default=0), sorted(map(len, tried))[len(tried) // 2]

    named = _SEPARATOR.fullmatch(head[0])
    separator = named[1] if named else max(",;\t|", key=fit)
    return _parted(path, text, separator), separator


def _parted(path: Path, text: str, separator: str) -> Lines:
    lines: Lines = []
    line = 1
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True)
    try:
        for cells in reader:
            if cells:
                lines.append((line, cells))
            line = reader.line_num + 1
    except csv.Error as error:
        raise malformed(path, line, f"invalid CSV ({error}); correct its quotes") from None
    return lines


def _score(cells: Sequence[str], names: Names) -> int:
    return len(set(columns_of(cells, names).values())) if len(cells) > 1 else 0


def _header(lines: Lines, names: Names) -> int | None:
    """The index of the line that names the columns: that with most of the names, where it has two, or the first line
    of words over a table of its width."""
    head = lines[:_LOOKED_AT]
    scores = [_score(cells, names) for _, cells in head]
    best = max(scores, default=0)
    if best > 1:
        return scores.index(best)
    first = head[0][1] if head else []
    return 0 if best and scores[0] and not _is_data(first) else None


def _is_data(cells: Sequence[str]) -> bool:
    """True for a line with a number or a date in it, which no name of a column is."""
    return any(re.fullmatch(r"[-+$€£\d.,/: ]*\d[-+\d.,/:%eE ]*", cell.strip()) for cell in cells)


def _no_table(path: Path, text: str, lines: Lines, names: Names) -> MalformedData:
    if is_page(text):
        return malformed(path, 1, f"this is a page and no table of data: {plain(text)[:_QUOTED]!r}")
    cells = lines[0][1] if lines else []
    if len(cells) > 2 and _is_data(cells):
        return NoHeader(
            f"{path}, line {lines[0][0]}: the file has no header, its first line is {','.join(cells)[:60]}; name its "
            f"{len(cells)} columns by number with --header no and --map FIELD=NUMBER of {', '.join(names)}"
        )
    said = " ".join(text.split())
    return MalformedData(
        f"{path} is no table with columns of {', '.join(list(names)[:4])}; it says: {said[:_QUOTED]!r} (where these "
        "are its columns, name them with --map)"
    )


def _fill(path: Path, found: Foreign, rows: Lines, names: Names) -> None:
    header = _distinct([cell.strip() for cell in rows[0][1]], found)
    columns = columns_of(header, names)
    day = next((header.index(column) for ours, column in columns.items() if ours in DATES), 0)
    of_numbers = any(ours in NUMBERS for ours in columns)
    body = rows[1:]
    ends = len(body)
    while ends and _is_remark(body[ends - 1][1], header, day, of_numbers=of_numbers):
        ends -= 1
    passed: list[str] = []
    for at, (line, cells) in enumerate(body):
        blank = not any(map(str.strip, cells))
        if at >= ends or blank or (of_numbers and not any(map(_FIGURE.search, cells))):
            passed.append("a blank row" if blank else " ".join(filter(None, cells)))
        elif len(cells) == 2 and (paid := _PAID.fullmatch(cells[1])):
            found.records.append((line, {header[0]: cells[0], "Dividends": paid[1], "Stock Splits": paid[2]}))
        elif len(cells) < len(header) or any(map(str.strip, cells[len(header) :])):
            found.bad.append(malformed(path, line, f"{len(cells)} cells where the header has {len(header)}"))
        else:
            found.records.append((line, dict(zip(header, cells, strict=False))))
    if passed:
        found.notes.append(f"passed over in the table: {'; '.join(passed)[:_QUOTED]}")


def _is_remark(cells: Sequence[str], header: Sequence[str], day: int, *, of_numbers: bool) -> bool:
    """True for a line below a table: a blank one, one without a date that is not as wide, sums under numbers."""
    if len(cells) != len(header):
        return day >= len(cells) or not _FIGURE.search(cells[day]) or len(cells) == 1
    date = cells[day].strip()
    return not any(map(str.strip, cells)) or (of_numbers and date != "" and not _FIGURE.search(date))


def _distinct(header: Cells, found: Foreign) -> Cells:
    """A header without a name twice: the first one counts, which is noted."""
    twice = sorted({name for name in header if name and header.count(name) > 1})
    if twice:
        found.notes.append(f"columns of the same name, of which the first counts: {', '.join(twice)}")
    return [name if name not in header[:n] or not name else f"{name}, column {n + 1}" for n, name in enumerate(header)]


def _by_ticker(rows: Lines) -> list[tuple[int, Mapping[str, object]]]:
    """Rows of a file of tickers side by side (yfinance): two lines name the ticker and the field of each column, a
    third the index. A ticker without a price on a day did not trade."""
    tickers, fields = sorted((cells for _, cells in rows[:2]), key=lambda row: row[0].lower() != "ticker")
    found: list[tuple[int, Mapping[str, object]]] = []
    for ticker in dict.fromkeys(tickers[1:]):
        places = [n for n, other in enumerate(tickers) if n and other == ticker]
        found += [
            (line, {"date": cells[0], "symbol": ticker} | {fields[n]: cells[n] for n in places})
            for line, cells in rows[2:]
            if len(cells) == len(tickers) and cells[0].lower() != "date" and any(cells[n] for n in places)
        ]
    return found


def _of_page(text: str, names: Names) -> Lines:
    """The rows of the table of a page that has most of the names."""
    page = _Page()
    page.feed(text)
    page.close()
    numbered = [list(enumerate(rows, 1)) for rows in page.tables]
    return max(numbered, key=lambda rows: max((_score(cells, names) for _, cells in rows), default=0), default=[])


class _Page(HTMLParser):
    """The tables of a page, as rows of the texts of their cells."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[list[Cells]] = []
        self._open = False

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag == "table" or (tag == "tr" and not self.tables):
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th") and self.tables and self.tables[-1]:
            self.tables[-1][-1].append("")
        self._open = tag in ("td", "th") or (self._open and tag not in ("table", "tr"))

    def handle_endtag(self, tag: str) -> None:
        self._open = self._open and tag not in ("td", "th", "tr", "table")

    def handle_data(self, data: str) -> None:
        if self._open and self.tables and self.tables[-1] and self.tables[-1][-1]:
            self.tables[-1][-1][-1] = " ".join((self.tables[-1][-1][-1] + " " + data).split())
