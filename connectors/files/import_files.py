"""Import of prices, actions, news and filings from CSV, JSONL or Parquet files of any origin into the data folder.

Nothing is written unless every row is good. Stored rows stay, except that a bar or an action of the same date is
replaced. Importing a file a second time changes nothing. import_files.toml has the names of columns.
"""

from __future__ import annotations

import importlib
import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from math import isnan
from pathlib import Path
from typing import Any

from connectors.files.prices import (
    BarRow,
    action_row,
    actions_text,
    bar_row,
    history_of,
    prices_text,
    read_actions,
    read_bars,
)
from connectors.files.rows import (
    append_lines,
    byte_lines,
    csv_rows,
    json_line,
    json_object,
    malformed,
    number,
    write_text,
)
from connectors.files.texts import FILINGS, NEWS, TextKind, form_of
from engine.domain.fetched import Imported
from engine.domain.market import ActionKind, CorporateAction, Dropped, Symbol, parse_symbol
from engine.errors import MalformedData, MissingData, UsageError
from engine.market.price_faults import price_faults, refuse_faults

Names = Mapping[str, Sequence[str]]
"""Our names of columns, each with the alternatives in foreign files."""

_AS_WRITTEN = ("headline", "summary")  # texts are kept to the letter
_SHOWN = 3  # how many bad rows the one line of an error lists


def import_prices(source: Path, folder: Path, symbol: Symbol) -> Imported:
    """Merge daily bars; rows may be in any order. Raises MalformedData over all bad rows."""
    foreign = _ForeignFile(source, "prices", symbol)
    path = folder / "prices" / f"{foreign.symbol}.csv"
    new: dict[int, BarRow] = {}

    def add(row: Row) -> None:
        bar = bar_row([_day_of(_cell(row, "date")), *(_cell(row, name) for name in _PRICE_CELLS)])
        if new.setdefault(bar[0], bar) is not bar:
            raise ValueError(f"{date.fromordinal(bar[0])} stands twice; keep one row per date")

    foreign.each(add)
    old = {bar[0]: bar for bar in read_bars(path)}
    merged = old | new
    # Two bars are the same if they would be written the same: an unknown volume equals itself.
    same = sum(prices_text([bar]) == prices_text([old[day]]) for day, bar in new.items() if day in old)
    _refuse_faults(folder, foreign.symbol, bars=[merged[day] for day in sorted(merged)])
    if same < len(new):
        write_text(path, prices_text(merged[day] for day in sorted(merged)))
    added = len(merged) - len(old)
    return Imported(path, added, len(new) - added - same, same, foreign.dropped())


def import_actions(source: Path, folder: Path, symbol: Symbol) -> Imported:
    """Merge splits and dividends. Raises MalformedData over all bad rows.

    Rows have ex_date, kind and value, or the dividend and split columns of a price file.
    """
    foreign = _ForeignFile(source, "actions", symbol)
    path = folder / "actions" / f"{foreign.symbol}.csv"
    new: dict[tuple[date, ActionKind], CorporateAction] = {}

    def add(row: Row) -> None:
        for action in _actions_in(row, foreign.symbol):
            if new.setdefault((action.ex_date, action.kind), action) is not action:
                raise ValueError(f"a second {action.kind} on {action.ex_date}; keep one row")

    foreign.each(add)
    old = {(act.ex_date, act.kind): act for act in read_actions(path, foreign.symbol)}
    same = sum(old.get(key) == action for key, action in new.items())
    _refuse_faults(folder, foreign.symbol, actions=tuple((old | new).values()))
    # A file without a single action still says something: that there were none.
    if same < len(new) or not path.exists():
        write_text(path, actions_text((old | new).values()))
    added = len(new.keys() - old.keys())
    return Imported(path, added, len(new) - added - same, same, foreign.dropped())


def import_news(source: Path, folder: Path, symbol: Symbol) -> Imported:
    """Add new news. An item without a date or text is dropped and counted. Raises MalformedData over all bad rows."""
    always = ("date", "time", "headline", "summary", "source", "sentiment")
    return _import_texts(_ForeignFile(source, "news", symbol), folder / "news", NEWS, always)


def import_filings(source: Path, folder: Path, symbol: Symbol) -> Imported:
    """Add new filings; drops and raises as `import_news`."""
    always = ("date", "form", "summary")
    return _import_texts(_ForeignFile(source, "filings", symbol), folder / "filings", FILINGS, always)


IMPORTERS: dict[str, Callable[[Path, Path, Symbol], Imported]] = {
    "prices": import_prices,
    "actions": import_actions,
    "news": import_news,
    "filings": import_filings,
}
"""Importers by the argument of `paperdesk import`."""

_PRICE_CELLS = ("open", "high", "low", "close", "adj_close", "volume")


class _ForeignFile:
    """Rows of one foreign file: good rows are passed on, bad ones collected, dropped ones counted."""

    def __init__(self, source: Path, kind: str, symbol: Symbol) -> None:
        self.names = _column_names(kind)
        self.symbol = parse_symbol(symbol)
        self._source = source
        self._counts: Counter[str] = Counter()

    def each(self, take: Callable[[Row], str | None]) -> None:
        """Pass every row of the symbol to `take`, which returns the reason for dropping it, or raises ValueError for a
        bad one.

        Raises MalformedData over all bad rows, MissingData for a file without rows of the symbol.
        """
        bad: list[MalformedData] = []
        rows = 0
        for row in _foreign_rows(self._source, self.names, bad):
            # Files may hold several symbols, told apart by a column.
            named = row.values.get("symbol")
            if named is not None and named.upper().replace("/", "-") != self.symbol:
                self._counts["another symbol"] += 1
                continue
            rows += 1
            try:
                why = take(row)
            except ValueError as problem:
                bad.append(malformed(self._source, row.line, str(problem)))
            else:
                self._counts.update([why] if why else [])
        if len(bad) == 1:
            raise bad[0]
        if bad:
            # The file is named once; each row keeps its line and its problem.
            details = [str(error).removeprefix(f"{self._source}, ") for error in bad[:_SHOWN]]
            more = f"; and {len(bad) - _SHOWN} more" if len(bad) > _SHOWN else ""
            raise MalformedData(
                f"{self._source}: {len(bad)} bad rows, nothing was imported: {'; '.join(details)}{more}"
            )
        if not rows:
            raise MissingData(f"{self._source} has no row for {self.symbol}; check the file and --symbol")

    def dropped(self) -> tuple[Dropped, ...]:
        """Dropped rows by reason."""
        return tuple(Dropped(self._source.name, why, count) for why, count in sorted(self._counts.items()))


def _import_texts(foreign: _ForeignFile, folder: Path, kind: TextKind, always: Sequence[str]) -> Imported:
    """Add records of a kind that are new; names in `always` are written where they are blank too."""
    path = folder / f"{foreign.symbol}.jsonl"
    names = [name for name in foreign.names if name != "symbol"]
    bad: list[MalformedData] = []
    stored = _foreign_rows(path, foreign.names, bad) if path.exists() else ()
    existing = Counter(tuple(row.values.get(name) for name in names) for row in stored)
    if bad:
        raise bad[0]
    lines: list[str] = []
    same = 0

    def add(row: Row) -> str | None:
        nonlocal same
        if reason := kind.unusable(row.values):
            return reason
        kind.dates(row.values)
        if kind is FILINGS:
            form_of(row.values)
        content = tuple(row.values.get(name) for name in names)
        if existing[content] > 0:
            # One old item answers for one new one: a file that says a thing twice is kept as it is.
            existing[content] -= 1
            same += 1
        else:
            known = zip(names, content, strict=True)
            lines.append(json_line({name: text for name, text in known if text or name in always}))
        return None

    foreign.each(add)
    append_lines(path, lines)
    return Imported(path, len(lines), 0, same, foreign.dropped())


def _refuse_faults(
    folder: Path,
    symbol: Symbol,
    *,
    bars: Sequence[BarRow] | None = None,
    actions: Sequence[CorporateAction] | None = None,
) -> None:
    """Raise MalformedData where bars and actions, as they would be afterwards, contradict each other."""
    bars = read_bars(folder / "prices" / f"{symbol}.csv") if bars is None else bars
    actions = read_actions(folder / "actions" / f"{symbol}.csv", symbol) if actions is None else actions
    if bars:
        refuse_faults(price_faults(history_of(symbol, bars), actions), date.max)


def _cell(row: Row, name: str) -> str:
    return row.values.get(name) or ""


def _actions_in(row: Row, symbol: Symbol) -> Iterator[CorporateAction]:
    day = _day_of(_cell(row, "ex_date"))
    if "kind" in row.values:
        yield action_row(symbol, [day, _cell(row, "kind").lower(), _ratio(_cell(row, "value"))])
        return
    if "dividend" not in row.values and "split" not in row.values:
        raise ValueError("neither kind and value nor dividend or split; name the columns so")
    for kind in (ActionKind.DIVIDEND, ActionKind.SPLIT):
        text = _ratio(_cell(row, kind.value))
        # A price file says zero, or nothing, on the days without an action.
        if text and number(kind.value, text) != 0:
            yield action_row(symbol, [day, kind, text])


def _ratio(text: str) -> str:
    """A number, with a split written 4:1 as 4."""
    new, colon, old = text.partition(":")
    if not colon:
        return text
    per_old = number("split", old)
    if per_old <= 0:
        raise ValueError(f"split {text} is no ratio; write new shares:old shares, such as 4:1")
    return str(number("split", new) / per_old)


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its line in the file (for Parquet its number) and its values as text, None where blank."""

    line: int
    values: Mapping[str, str | None]


def _column_names(kind: str) -> Names:
    """The names of a kind of data: prices, actions, news or filings."""
    names: dict[str, Names] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return names[kind]


def _foreign_rows(path: Path, names: Names, bad: list[MalformedData]) -> Iterator[Row]:
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
    for line, record in enumerate(records, 1):
        yield Row(line, {ours: _text(ours, record[theirs]) for ours, theirs in columns.items()})


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


def _day_of(text: str) -> str:
    """The date of a date or timestamp as written: vendors stamp a session at local midnight."""
    return text[:10] if len(text) > 10 and text[10] in "T " else text
