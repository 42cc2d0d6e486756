"""Results of bringing data into the data folder, one for each file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from engine.domain.market import CorporateAction, Dropped, Symbol


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """Changes that a fetch made to one file of the data folder.

    name: symbol or series.
    path: the file.
    added: rows that were not there.
    unchanged: rows that were there before.
    dropped: rows that cannot be used, by reason.
    complete: False where the fetch was stopped.
    differing: rows that differ from kept ones, which stayed.
    replaced: rows that differed from kept ones and took their place.
    missing: sessions between others of which a file of bars has none.
    impossible: bars that came and that no market can have made, by session, each with the reason; they are left out.
    """

    name: str
    path: Path
    added: int
    unchanged: int
    dropped: tuple[Dropped, ...] = ()
    complete: bool = True
    differing: int = 0
    replaced: int = 0
    missing: tuple[date, ...] = ()
    impossible: Mapping[date, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Imported:
    """Changes that an import made to one file of the data folder; `unchanged` rows were there before. `derived` are
    the actions that adj_close implies."""

    path: Path
    added: int
    replaced: int
    unchanged: int
    dropped: tuple[Dropped, ...]
    derived: tuple[CorporateAction, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFormat:
    """The reading of a file: its columns, and the writing of its dates and numbers.

    kind: of data that was looked for.
    rows: how many of them it has.
    header: the line that names the columns; None without one.
    columns: the file's column by our field.
    unread: the file's other columns.
    dates: the order of year, month and day in its dates, where that matters: ymd, mdy or dmy.
    decimal: the mark of decimals: point or comma.
    zone: of times that have none, where a person has said so.
    """

    kind: str
    rows: int
    header: int | None
    columns: Mapping[str, str]
    unread: tuple[str, ...]
    dates: str | None
    decimal: str
    zone: str | None


@dataclass(frozen=True, slots=True)
class ImportResult:
    """An import: its files, what its file was taken for by kind, and notes."""

    files: tuple[Imported, ...]
    taken: tuple[FileFormat, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileImport:
    """A file that is to be brought into the data folder.

    kinds: prices, actions, news or filings, in any number.
    file: the file, as its vendor delivered it.
    folder: the data folder.
    symbols: whose rows are taken; none: those of every symbol that the file names.
    columns: the file's column by our field, where a person has said so; an empty one leaves the field out.
    zone: the time zone of times that have none.
    currency: that prices are in, where a person has said so.
    dates: the order of year, month and day (ymd, mdy, dmy), where a person has said so.
    decimal: the mark of decimals (point, comma), where a person has said so.
    header: False where no line of the file names its columns, which then are numbers.
    write: False where nothing is to be written.
    from_adjusted: True where the actions are to be derived from adj_close, of the file's bars, or the folder's without.
    """

    kinds: Sequence[str]
    file: Path | None
    folder: Path
    symbols: Sequence[Symbol] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    zone: str | None = None
    currency: str | None = None
    dates: str | None = None
    decimal: str | None = None
    header: bool = True
    write: bool = True
    from_adjusted: bool = False
