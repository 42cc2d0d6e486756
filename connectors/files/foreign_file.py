"""One foreign file, row by row, and the files of the data folder that become of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from connectors.files.foreign_rows import Row, column_names, foreign_rows
from connectors.files.prices import BarRow
from connectors.files.rows import append_lines, malformed, write_text
from engine.domain.fetched import Imported
from engine.domain.market import CorporateAction, Dropped, Symbol, parse_symbol
from engine.errors import MalformedData, MissingData, UsageError

_SHOWN = 3  # how many bad rows the one line of an error lists


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One file of the data folder as it will be.

    symbol: whose rows it has
    imported: rows that are new, changed and the same, and those that were dropped
    write: writes it
    bars: in it, of a file of prices
    actions: in it, of a file of corporate actions
    """

    symbol: Symbol
    imported: Imported
    write: Callable[[], None]
    bars: Sequence[BarRow] | None = None
    actions: Sequence[CorporateAction] | None = None


class ForeignFile:
    """Rows of one foreign file by symbol: good rows are passed on, bad ones collected, dropped ones counted."""

    def __init__(self, source: Path, kind: str, wanted: Sequence[Symbol], columns: Mapping[str, str]) -> None:
        self.kind = kind
        self.names = column_names(kind, columns)
        self._source = source
        self._wanted = wanted
        self._unit = "record" if source.suffix.lower() in (".json", ".parquet", ".pq") else "line"
        self._columns = {ours: theirs for ours, theirs in columns.items() if theirs and ours in self.names}
        self._counts: dict[Symbol, Counter[str]] = {}
        self._others = 0

    def each(self, take: Callable[[Symbol, Row], str | None]) -> Sequence[Symbol]:
        """Pass every row of a symbol to `take`, which returns the reason for dropping it, or raises ValueError for a
        bad one; the symbols that have rows.

        Raises MalformedData over all bad rows, MissingData for a file without rows of a wanted symbol.
        """
        bad: list[MalformedData] = []
        unseen = set(self._columns)
        for row in foreign_rows(self._source, self.names, bad):
            unseen -= row.values.keys()
            for symbol in self._symbols_of(row):
                counts = self._counts.setdefault(symbol, Counter())
                try:
                    why = take(symbol, row)
                except (ValueError, OverflowError) as problem:
                    bad.append(malformed(self._source, row.line, str(problem), self._unit))
                else:
                    counts.update([why] if why else [])
        for ours in sorted(unseen):
            raise UsageError(f"--map {ours}={self._columns[ours]}: {self._source} has no such column")
        self._refuse(bad)
        missing = [symbol for symbol in self._wanted if symbol not in self._counts]
        if missing or not self._counts:
            of = f" for {', '.join(missing)}" if missing else ""
            raise MissingData(f"{self._source} has no row{of}; check the file and --symbol")
        return list(self._counts)

    def dropped(self, symbol: Symbol) -> tuple[Dropped, ...]:
        """Dropped rows by reason; rows of other symbols count with the first one."""
        counts = self._counts[symbol]
        if self._others and symbol == next(iter(self._counts)):
            counts = counts + Counter({"another symbol": self._others})
        return tuple(Dropped(self._source.name, why, count) for why, count in sorted(counts.items()))

    def _symbols_of(self, row: Row) -> Sequence[Symbol]:
        """The symbols that a row is about, of those that are wanted. Files may hold several, told apart by a column."""
        named = row.values.get("symbol")
        if named is None:
            if len(self._wanted) != 1:
                raise UsageError(
                    f"{self._source}, {self._unit} {row.line} names no symbol: say whose rows they are (--symbol)"
                )
            return self._wanted
        found = dict.fromkeys(map(_folder_symbol, named.split(",")))
        wanted = [symbol for symbol in found if symbol and (not self._wanted or symbol in self._wanted)]
        self._others += not wanted
        return wanted

    def _refuse(self, bad: Sequence[MalformedData]) -> None:
        if len(bad) == 1:
            raise bad[0]
        if bad:
            # The file is named once; each row keeps its line and its problem.
            details = [str(error).removeprefix(f"{self._source}, ") for error in bad[:_SHOWN]]
            more = f"; and {len(bad) - _SHOWN} more" if len(bad) > _SHOWN else ""
            raise MalformedData(
                f"{self._source}: {len(bad)} bad rows, nothing was imported: {'; '.join(details)}{more}"
            )


def _folder_symbol(text: str) -> Symbol | None:
    """A symbol as the data folder has it; Shanghai is .SS here and .SH at some vendors. None for what cannot be one."""
    try:
        symbol = parse_symbol(text)
    except UsageError:
        return None
    return f"{symbol.removesuffix('.SH')}.SS" if symbol.endswith(".SH") else symbol


def writing(path: Path, text: str, *, needed: bool) -> Callable[[], None]:
    """Replace a file by a text, where that is needed."""
    return lambda: write_text(path, text) if needed else None


def appending(path: Path, lines: Sequence[str]) -> Callable[[], None]:
    """Append lines to a file."""
    return lambda: append_lines(path, lines)


def cell(row: Row, name: str) -> str:
    """The text of a column, empty where it is not there."""
    return row.values.get(name) or ""
