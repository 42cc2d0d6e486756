"""Merge of a service's rows into prices/SYMBOL.csv and actions/SYMBOL.csv: new rows are added, stored ones stay."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from math import isnan
from pathlib import Path

from connectors.files.actions import read_actions
from connectors.files.adjusted_closes import adjusted_closes, extended_closes
from connectors.files.prices import BarRow, bar_row, read_prices, rows_of
from connectors.files.write import actions_text, prices_text, write_text
from engine.domain.market import UNKNOWN, Bar, CorporateAction, Symbol
from engine.errors import MalformedData, MissingData


@dataclass(frozen=True, slots=True)
class Merged:
    """Counts of a merge, in rows.

    `added` are new, `unchanged` were stored already. Of rows that differ from stored ones, `replaced` took their place
    and `differing` did not.
    """

    added: int = 0
    replaced: int = 0
    differing: int = 0
    unchanged: int = 0

    @classmethod
    def of(cls, new: int, shared: int, differing: int, *, replace: bool) -> Merged:
        """Counts of `new` rows, of which `shared` were stored and `differing` of those differ."""
        replaced = differing if replace else 0
        return cls(new - shared, replaced, differing - replaced, shared - differing)

    def plus(self, more: Merged) -> Merged:
        """The sum of both."""
        return Merged(
            self.added + more.added,
            self.replaced + more.replaced,
            self.differing + more.differing,
            self.unchanged + more.unchanged,
        )


def stored_bars(path: Path, symbol: Symbol) -> list[BarRow]:
    """Rows of a price file; none where it is missing or empty. Raises MalformedData."""
    try:
        return rows_of(read_prices(path, symbol)) if path.exists() else []
    except MissingData:
        return []


def stored_actions(path: Path, symbol: Symbol) -> tuple[CorporateAction, ...]:
    """Actions of a file; none where it is missing. Raises MalformedData."""
    return read_actions(path, symbol) if path.exists() else ()


def checked_row(symbol: Symbol, bar: Bar) -> BarRow:
    """A service's bar as a row without adj_close. Raises MalformedData for an impossible one."""
    cells = [bar.session.isoformat(), *(f"{price:f}" for price in (bar.open, bar.high, bar.low, bar.close)), ""]
    try:
        return bar_row([*cells, f"{bar.volume or Decimal(0):f}"])
    except ValueError as problem:
        reason = str(problem).partition(";")[0]
        raise MalformedData(f"the bar of {symbol} on {bar.session} cannot be: {reason}; try again later") from None


def merge_bars(
    path: Path,
    symbol: Symbol,
    rows: Iterable[BarRow],
    actions: Sequence[CorporateAction],
    unsupported: Sequence[date],
    *,
    replace: bool,
    keep_adjusted: bool,
) -> Merged:
    """Merge raw bars into a price file in a single step, with adj_close computed from the actions. Raises
    MalformedData.

    adj_close is computed for the whole file, or with `keep_adjusted` for the added rows alone, as an extension of the
    stored ones.
    """
    old = {row[0]: row for row in stored_bars(path, symbol)}
    new = {row[0]: row for row in rows}
    differing = sum(not _same(row, old[day]) for day, row in new.items() if day in old)
    raw = old | new if replace else new | old
    days = sorted(raw)
    closes = [raw[day][4] for day in days]
    adjusted = adjusted_closes(days, closes, actions, unsupported)
    if keep_adjusted and old:
        adjusted = extended_closes({at: old[day][5] for at, day in enumerate(days) if day in old}, adjusted)
    merged = [(*raw[day][:5], nano, raw[day][6]) for day, nano in zip(days, adjusted, strict=True)]
    text = prices_text(merged) if merged else ""
    if text and (not path.exists() or text != prices_text(old[day] for day in sorted(old))):
        write_text(path, text)
    return Merged.of(len(new), len(new.keys() & old.keys()), differing, replace=replace)


def merge_actions(
    path: Path, symbol: Symbol, actions: Sequence[CorporateAction], *, replace: bool, write: bool = True
) -> tuple[Sequence[CorporateAction], Merged]:
    """Merge actions into a file in a single step; with `write` off only return the result. Raises MalformedData.

    A file without a single action is written too: it says that there were none.
    """
    old = {(one.ex_date, one.kind): one for one in stored_actions(path, symbol)}
    new = {(one.ex_date, one.kind): one for one in actions}
    differing = sum(one != old[key] for key, one in new.items() if key in old)
    merged = old | new if replace else new | old
    if write and (merged != old or not path.exists()):
        write_text(path, actions_text(merged.values()))
    return tuple(merged.values()), Merged.of(len(new), len(new.keys() & old.keys()), differing, replace=replace)


def has_adjusted(rows: Iterable[BarRow]) -> bool:
    """True where any row has an adj_close."""
    return any(row[5] != UNKNOWN for row in rows)


def _same(one: BarRow, other: BarRow) -> bool:
    return one[:5] == other[:5] and (one[6] == other[6] or (isnan(one[6]) and isnan(other[6])))
