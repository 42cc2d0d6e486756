"""Merges what a service says into prices/SYMBOL.csv and actions/SYMBOL.csv: new rows come in, kept ones stay."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from math import isnan
from pathlib import Path

from connectors.files.actions import read_actions
from connectors.files.adjusting import adjusted_closes, continued
from connectors.files.prices import BarRow, bar_row, read_prices, rows_of
from connectors.files.writing import actions_text, prices_text, write_text
from engine.domain.market import UNKNOWN, Bar, CorporateAction, Symbol
from engine.errors import MalformedData, MissingData


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge did: rows that were not there, rows that differed from the kept ones (`differing` where those
    stayed, `replaced` where they did not), and rows that were there already."""

    added: int = 0
    replaced: int = 0
    differing: int = 0
    unchanged: int = 0

    def plus(self, more: Merged) -> Merged:
        """Both together."""
        return Merged(
            self.added + more.added,
            self.replaced + more.replaced,
            self.differing + more.differing,
            self.unchanged + more.unchanged,
        )


def kept_bars(path: Path, symbol: Symbol) -> list[BarRow]:
    """The rows of a price file; none where there is no file, or nothing in it. Raises MalformedData."""
    try:
        return rows_of(read_prices(path, symbol)) if path.exists() else []
    except MissingData:
        return []


def kept_actions(path: Path, symbol: Symbol) -> tuple[CorporateAction, ...]:
    """The actions of a file; none where there is no file. Raises MalformedData."""
    return read_actions(path, symbol) if path.exists() else ()


def checked_row(symbol: Symbol, bar: Bar) -> BarRow:
    """A bar of a service's as a row without adj_close. Raises MalformedData for one that no market can have had."""
    cells = [bar.session.isoformat(), *(f"{price:f}" for price in (bar.open, bar.high, bar.low, bar.close)), ""]
    try:
        return bar_row([*cells, f"{bar.volume or Decimal(0):f}"])
    except ValueError as problem:
        said = str(problem).partition(";")[0]
        raise MalformedData(f"the bar of {symbol} on {bar.session} cannot be: {said}; try again later") from None


def merge_bars(
    path: Path,
    symbol: Symbol,
    rows: Iterable[BarRow],
    actions: Sequence[CorporateAction],
    untold: Sequence[date],
    *,
    replace: bool,
    keep_adjusted: bool,
) -> Merged:
    """Merges raw bars into a price file in a single step and computes adj_close from the actions: anew for the whole
    file, or with `keep_adjusted` for the added rows alone, joined to what stands there. Raises MalformedData."""
    old = {row[0]: row for row in kept_bars(path, symbol)}
    new = {row[0]: row for row in rows}
    differing = sum(not _same(row, old[day]) for day, row in new.items() if day in old)
    raw = old | new if replace else new | old
    days = sorted(raw)
    closes = [raw[day][4] for day in days]
    adjusted = adjusted_closes(days, closes, actions, untold)
    if keep_adjusted and old:
        adjusted = continued({at: old[day][5] for at, day in enumerate(days) if day in old}, adjusted)
    merged = [(*raw[day][:5], nano, raw[day][6]) for day, nano in zip(days, adjusted, strict=True)]
    text = prices_text(merged) if merged else ""
    if text and (not path.exists() or text != prices_text(old[day] for day in sorted(old))):
        write_text(path, text)
    shared = len(new.keys() & old.keys())
    kept = 0 if replace else differing
    return Merged(len(new) - shared, differing - kept, kept, shared - differing)


def merge_actions(
    path: Path, symbol: Symbol, actions: Sequence[CorporateAction], *, replace: bool, write: bool = True
) -> tuple[Sequence[CorporateAction], Merged]:
    """Merges actions into a file in a single step, or with `write` off only says what it would hold. A file without a
    single action is written too: it says that there were none. Raises MalformedData."""
    old = {(one.ex_date, one.kind): one for one in kept_actions(path, symbol)}
    new = {(one.ex_date, one.kind): one for one in actions}
    differing = sum(one != old[key] for key, one in new.items() if key in old)
    merged = old | new if replace else new | old
    if write and (merged != old or not path.exists()):
        write_text(path, actions_text(merged.values()))
    shared = len(new.keys() & old.keys())
    kept = 0 if replace else differing
    return tuple(merged.values()), Merged(len(new) - shared, differing - kept, kept, shared - differing)


def has_adjusted(rows: Iterable[BarRow]) -> bool:
    """Whether any row has an adj_close."""
    return any(row[5] != UNKNOWN for row in rows)


def _same(one: BarRow, other: BarRow) -> bool:
    return one[:5] == other[:5] and (one[6] == other[6] or (isnan(one[6]) and isnan(other[6])))
