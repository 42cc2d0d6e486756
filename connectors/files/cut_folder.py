"""A copy of a data folder that ends at a moment: every row of some symbols that was known by then, as it is written."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

from connectors.files.holdings import HOLDING_COLUMNS, holding_row
from connectors.files.macro import MACRO_COLUMNS, macro_row
from connectors.files.prices import ACTION_COLUMNS, PRICE_COLUMNS, action_row, bar_row
from connectors.files.rows import byte_lines, csv_items
from connectors.files.texts import COMMENTARY, FILINGS, NEWS, TextKind, availability
from engine.domain.market import Symbol
from engine.errors import MissingData
from engine.market.trading_hours import FIRST_SESSION, LONGEST_REST
from engine.ports import Calendar

_ALWAYS, _NEVER = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class _File:
    """A file by its place in the folder: its lines, each with the time (UTC) from which it is known, and those that are
    stamped before their release, in words."""

    place: Path
    lines: tuple[tuple[datetime, bytes], ...]
    early: tuple[str, ...] = ()


class FolderCuts:
    """Copies of a data folder's files on some symbols, its macro series, commentary and holdings, each up to a moment.
    Prices come without adj_close, in which whatever came later shows.

    The folder is read once. What else lies in it is left out, since nobody knows of when it is, but for Python code,
    which may be the run's own. Raises MalformedData naming file and line.
    """

    def __init__(self, folder: Path, symbols: Iterable[Symbol], calendar_for: Callable[[Symbol], Calendar]) -> None:
        self._folder = folder
        self._files = tuple(_files(folder, tuple(symbols), calendar_for))

    @property
    def early(self) -> Sequence[str]:
        """The texts that are stamped before their release, each by file and line; they are known from that on."""
        return [told for file in self._files for told in file.early]

    def write(self, target: Path, now: datetime) -> None:
        """Write the files as they would be at a moment, in the place of an earlier copy."""
        for file in self._files:
            path = target / file.place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"".join(line for known, line in file.lines if known <= now))
        for code in self._folder.rglob("*.py"):
            path = target / code.relative_to(self._folder)
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(code, path)


def _files(folder: Path, symbols: Sequence[Symbol], calendar_for: Callable[[Symbol], Calendar]) -> Iterator[_File]:
    for symbol in symbols:
        calendar = calendar_for(symbol)
        prices, actions = folder / "prices" / f"{symbol}.csv", folder / "actions" / f"{symbol}.csv"
        bars = csv_items(prices, PRICE_COLUMNS, lambda cells: date.fromordinal(bar_row(cells)[0]))
        file = _file(folder, prices, ((line, _at(calendar, calendar.closes_at, day)) for line, day in bars))
        yield replace(file, lines=tuple((known, _without_adjusted(raw)) for known, raw in file.lines))
        if actions.exists():
            days = csv_items(actions, ACTION_COLUMNS, lambda cells: action_row("", cells).ex_date)
            yield _file(folder, actions, ((line, _at(calendar, calendar.opens_at, day)) for line, day in days))
        for name, kind in (("news", NEWS), ("filings", FILINGS)):
            texts = folder / name / f"{symbol}.jsonl"
            if texts.exists():
                yield _text_file(folder, texts, symbol, calendar, kind)
    for said in sorted((folder / "commentary").glob("*.jsonl")):
        yield _text_file(folder, said, said.stem, calendar_for(said.stem), COMMENTARY)
    for series in sorted((folder / "macro").glob("*.csv")):
        figures = csv_items(series, MACRO_COLUMNS, macro_row)
        yield _file(folder, series, ((line, figure.known_from) for line, figure in figures))
    for fund in sorted((folder / "holdings").glob("*.csv")):
        held = csv_items(fund, HOLDING_COLUMNS, holding_row)
        yield _file(folder, fund, ((line, _end_of(holding.date)) for line, holding in held))


def _file(folder: Path, path: Path, known: Iterable[tuple[int, datetime]]) -> _File:
    """A file whose rows of these numbers are known from these times; a CSV file's header always is, any other row
    never."""
    since = dict(known)
    if path.suffix == ".csv":
        since.setdefault(min(line for line, _ in byte_lines(path)), _ALWAYS)
    lines = tuple((since.get(line, _NEVER), _ended(raw)) for line, raw in byte_lines(path))
    return _File(path.relative_to(folder), lines)


def _text_file(folder: Path, path: Path, symbol: Symbol, calendar: Calendar, kind: TextKind) -> _File:
    found = list(availability(path, symbol, calendar, kind))
    early = tuple(f"{path.relative_to(folder)}, line {line}: {told}" for line, _, told in found if told)
    return replace(_file(folder, path, ((line, known) for line, known, _ in found)), early=early)


def _ended(raw: bytes) -> bytes:
    return raw if raw.endswith(b"\n") else raw + b"\n"


def _without_adjusted(raw: bytes) -> bytes:
    """A row of prices with a blank adj_close, which is adjusted by what came after the cut; the header as it is."""
    cells = next(csv.reader([raw.decode()]), [])
    if cells == list(PRICE_COLUMNS) or len(cells) != len(PRICE_COLUMNS):
        return raw
    cells[PRICE_COLUMNS.index("adj_close")] = ""
    return f"{','.join(cells)}\n".encode()


def _at(calendar: Calendar, time_of: Callable[[date], datetime], day: date) -> datetime:
    """A time of the first session from a day on; always, before the calendar begins."""
    try:
        return time_of(calendar.sessions(day, day + LONGEST_REST)[0])
    except (MissingData, IndexError):
        return _ALWAYS if day.year < FIRST_SESSION.year else _NEVER


def _end_of(day: date) -> datetime:
    return datetime.combine(day, time(), UTC) + timedelta(days=1)
