"""Watchlists: groups of symbols to look at, one file for all desks. No desk trades by them.

The desk's own symbols are a group of every list, by the name `desk`: it follows the configuration and is not changed
here.

The symbols that a desk knows of, and the prices of those that it does not trade.
"""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import datetime
from pathlib import Path

from engine.app.records.desk_journal import one_process
from engine.app.research.market_data import load_prices
from engine.domain.market import KnownSymbol, Symbol, parse_symbol
from engine.errors import DataError, MalformedData, MissingData, PaperdeskError, UsageError
from engine.journal.reader import JournalReader
from engine.market.as_of import Market
from engine.reports.documents.records import PROBED, latest_backtests
from engine.reports.documents.row_json import Row
from engine.services import Services
from engine.settings import places

DESK = "desk"
"""The group of the desk's own symbols."""
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,23}")
SCHEMA = 1

Groups = Mapping[str, tuple[Symbol, ...]]


def read_groups() -> Groups:
    """The groups by name, in the order in which they were made. Raises MalformedData for a file that holds something
    else."""
    path = places.watchlists()
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror})") from error
    except UnicodeDecodeError:
        text = ""
    try:
        return {_own(name): _symbols(symbols) for name, symbols in _groups_in(text).items()}
    except (ValueError, UsageError):
        raise MalformedData(f"{path} is not a watchlist file: repair it, or move it away to start over") from None


def change_group(name: str, *, add: Iterable[str] = (), remove: Iterable[str] = ()) -> Row:
    """Add symbols to a group, which is made where there is none, and take symbols out; the document of it. Raises
    UsageError for a name or a symbol that cannot be, MissingData for a symbol that is not in it, and where symbols are
    to be taken out of a group that there is not."""
    with _locked():
        groups = dict(read_groups())
        before, gone = groups.get(_own(name)), _symbols(remove)
        if before is None and gone:
            raise _no_group(name, groups)
        before = before or ()
        if lacking := [symbol for symbol in gone if symbol not in before]:
            raise MissingData(
                f"{', '.join(lacking)} is not in the watchlist {name}: {', '.join(before) or 'it is empty'}"
            )
        kept = tuple(symbol for symbol in before if symbol not in gone)
        groups[name] = tuple(dict.fromkeys((*kept, *_symbols(add))))
        _write(groups)
    return {**_head(), "group": name, "symbols": list(groups[name]), "changed": groups[name] != before}


def delete_group(name: str) -> Row:
    """Delete a group, and the document of it. Raises MissingData where there is none."""
    with _locked():
        groups = dict(read_groups())
        if _own(name) not in groups:
            raise _no_group(name, groups)
        symbols = groups.pop(name)
        _write(groups)
    return {**_head(), "group": name, "symbols": list(symbols), "deleted": True}


def groups_document(groups: Groups, desk: str, symbols: Sequence[Symbol]) -> Row:
    """Every group, that of a desk first."""
    every = {DESK: tuple(symbols), **groups}
    rows = [{"group": name, "symbols": list(held), "traded": name == DESK} for name, held in every.items()]
    return {**_head(), "desk": desk, "groups": rows}


def export_groups(groups: Groups, file: Path) -> Row:
    """Write the groups as JSON, or as CSV (group,symbol) by the name of the file, which must not be there yet. Raises
    DataError."""
    text = json.dumps({"groups": {name: list(held) for name, held in groups.items()}}, indent=1) + "\n"
    if file.suffix.lower() == ".csv":
        out = io.StringIO()
        rows = ((name, symbol) for name, held in groups.items() for symbol in held)
        csv.writer(out, lineterminator="\n").writerows((("group", "symbol"), *rows))
        text = out.getvalue()
    try:
        with file.open("x", encoding="utf-8") as target:
            target.write(text)
    except FileExistsError:
        raise DataError(f"{file} already exists: name another file") from None
    except OSError as error:
        raise DataError(f"{file} cannot be written ({error.strerror}): name another file") from None
    return {**_head(), "file": str(file), "groups": len(groups), "symbols": sum(map(len, groups.values()))}


def import_groups(file: Path) -> Row:
    """Add the groups of a file: CSV (group,symbol), what `export_groups` writes, or a symbol a line, whose group has
    the file's name. Raises MalformedData that names the line, MissingData for no file."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise MissingData(f"{file}: file not found") from None
    except (OSError, UnicodeDecodeError) as error:
        raise MalformedData(f"{file} cannot be read as text: {error}") from None
    found: dict[str, list[str]] = {}
    for number, (name, symbol) in _rows(text, file):
        try:
            found.setdefault(_own(name), []).extend(_symbols([symbol]))
        except UsageError as error:
            raise MalformedData(f"{file}, line {number}: {error}") from None
    with _locked():
        groups = dict(read_groups())
        for name, symbols in found.items():
            groups[name] = tuple(dict.fromkeys((*groups.get(name, ()), *symbols)))
        _write(groups)
    return {**_head(), "file": str(file), "groups": len(found), "symbols": sum(map(len, found.values()))}


def _rows(text: str, file: Path) -> Iterator[tuple[int, tuple[str, str]]]:
    """Group and symbol of every line that has any, with its number; of JSON each as in line 1. Raises MalformedData."""
    if not text.lstrip().startswith("{"):
        yield from _csv_rows(text, file)
        return
    try:
        groups = _groups_in(text)
    except ValueError:
        raise MalformedData(f'{file}: write {{"groups": {{"NAME": ["SYMBOL"]}}}}, a CSV, or a symbol a line') from None
    yield from ((1, (name, symbol)) for name, symbols in groups.items() for symbol in symbols)


def _csv_rows(text: str, file: Path) -> Iterator[tuple[int, tuple[str, str]]]:
    reader = csv.reader(io.StringIO(text), strict=True)
    try:
        for row in reader:
            cells = [cell.strip() for n, cell in enumerate(row) if n < 2 or cell.strip()]  # a sheet has empty columns
            if not any(cells) or [cell.lower() for cell in cells] in (["group", "symbol"], ["symbol"]):
                continue
            if len(cells) > 2 or not all(cells):
                raise MalformedData(f"{file}, line {reader.line_num}: write a group and a symbol, or a symbol alone")
            yield reader.line_num, (cells[0] if len(cells) == 2 else file.stem.lower(), cells[-1])
    except csv.Error as error:
        raise MalformedData(f"{file}, line {reader.line_num}: invalid CSV ({error})") from None


def _groups_in(text: str) -> Mapping[str, list[str]]:
    """The groups of a JSON text by name. Raises ValueError for a text that holds anything else."""
    try:
        whole = json.loads(text)
    except RecursionError:
        raise ValueError("too deep") from None
    groups = whole.get("groups") if isinstance(whole, dict) else None
    if not isinstance(groups, dict):
        raise ValueError("no groups")
    for symbols in groups.values():
        # A text is a list of its letters to a loop, and each of them a symbol.
        if not isinstance(symbols, list) or not all(isinstance(symbol, str) for symbol in symbols):
            raise ValueError("a group is no list of symbols")
    return groups


def _own(name: str) -> str:
    """The name of a group that can be changed. Raises UsageError."""
    if name == DESK:
        raise UsageError(f"the watchlist {DESK} shows the desk's symbols: change desk.symbols in the configuration")
    if not NAME.fullmatch(name):
        raise UsageError(f"{name!r} is not a valid watchlist name: use up to 24 characters of a-z, 0-9 and -")
    return name


def _no_group(name: str, groups: Groups) -> MissingData:
    known = f"existing: {', '.join(groups)}" if groups else "none exists yet"
    return MissingData(f"no watchlist {name}: {known}")


def _symbols(texts: Iterable[str]) -> tuple[Symbol, ...]:
    return tuple(map(parse_symbol, texts))


def _locked() -> AbstractContextManager[None]:
    return one_process(places.watchlists().with_suffix(".lock"), "another process is changing the watchlists")


def _write(groups: Groups) -> None:
    text = json.dumps({"schema": SCHEMA, "groups": {name: list(held) for name, held in groups.items()}}, indent=1)
    places.write_whole(places.watchlists(), text + "\n")


def _head() -> Row:
    return {"schema": SCHEMA}


DATA, RUNS = "data", "runs"
"""The places of a symbol beside the desk and the groups of the watchlist."""


class SymbolIndex:
    """The symbols of the desk, of the watchlists, of the market data, and of recorded runs."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def all(self) -> Sequence[KnownSymbol]:
        """Every known symbol, the desk's first, then by name; takes tens of milliseconds. Raises MalformedData for a
        file of watchlists that holds something else."""
        found: dict[Symbol, list[str]] = {}
        for name, symbols in self._places():
            for symbol in symbols:
                found.setdefault(symbol, []).append(name)
        own = [symbol for symbol in found if DESK in found[symbol]]
        ordered = dict.fromkeys((*own, *sorted(found)))
        data, name_of = self._services.data, self._services.name_of
        return [KnownSymbol(one, name_of(data, one), tuple(dict.fromkeys(found[one]))) for one in ordered]

    async def benchmark(self) -> Symbol | None:
        """The index fund that accounts are compared with; None where the data has none."""
        fund = self._services.index_fund(self._services.data)
        return fund if fund in await self._of_data() else None

    def market(self, symbols: Sequence[Symbol], now: datetime) -> Market:
        """The prices of symbols from the desk's data, for a look at `now`; a symbol whose prices cannot be had is left
        out."""
        return load_prices(self._services, self._services.data, symbols, now.date())

    def _places(self) -> Iterator[tuple[str, Iterable[Symbol]]]:
        yield DESK, self._services.symbols
        yield from read_groups().items()
        yield DATA, asyncio.run(self._of_data())
        yield RUNS, self._of_runs()

    async def _of_data(self) -> Sequence[Symbol]:
        services = self._services
        with suppress(MissingData):  # a folder without prices knows no symbol
            source = services.open_source(services.data, services.clock.now().date())
            return await source.symbols()
        return ()

    def _of_runs(self) -> Iterator[Symbol]:
        for run in latest_backtests(PROBED):
            # One that is just beginning, or was killed then, has no journal worth the name yet.
            with suppress(PaperdeskError), JournalReader(places.run_journal(run)) as reader:
                yield from reader.run(run).symbols
        with suppress(MissingData), JournalReader(places.desk_journal(self._services.desk)) as reader:
            for entry in reader.runs():
                yield from entry.symbols
