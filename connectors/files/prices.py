"""Reader and writer of prices/SYMBOL.csv and actions/SYMBOL.csv, with a check of every row."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from math import isnan
from operator import le
from pathlib import Path
from typing import Any

import numpy as np

from connectors.files.rows import csv_items, iso_date, malformed, number
from engine.domain.market import (
    PRICES,
    UNKNOWN,
    ActionKind,
    CorporateAction,
    PriceHistory,
    Symbol,
    from_nano,
    to_nano,
)
from engine.errors import MalformedData, MissingData
from engine.market.price_faults import ImpossibleRows, bar_fault, days_without_bar, without_noise
from engine.market.trading_hours import FIRST_SESSION
from engine.ports import Calendar

PRICE_COLUMNS = ("date", "open", "high", "low", "close", "adj_close", "volume")
ACTION_COLUMNS = ("ex_date", "kind", "value")

BarRow = tuple[int, int, int, int, int, int, float]
"""Session ordinal; open, high, low, close, adj_close in nano-units (UNKNOWN for a blank adj_close); volume in shares
(NaN for a blank one)."""

_LARGEST = Decimal(9_000_000_000)  # nano-units have to fit into 64 bits
_TENS: Sequence[int] = tuple(10**places for places in range(10))
_LEAST, _MOST = Decimal("0.000001"), Decimal(1_000_000)  # around any split or dividend ever made; others are slips


def read_prices(path: Path, symbol: Symbol) -> PriceHistory:
    """All bars of a price file, columns in nano-units.

    Raises ImpossibleRows, which has the other bars, MalformedData for a file that is none, MissingData for one without
    any bar.
    """
    if (plain := _plain_history(path, symbol)) is not None:
        return plain
    rows = read_rows(path)
    if not rows.bars and not rows.impossible:
        raise MissingData(f"{path} holds no bars; import some with `paperdesk import prices FILE --symbol {symbol}`")
    history = history_of(symbol, rows.bars) if rows.bars else PriceHistory.of(symbol, ())
    history = replace(history, impossible=rows.impossible, rounded=tuple(rows.rounded))
    if rows.impossible:
        raise ImpossibleRows(history)
    return history


_PRICE = r"[0-9]{1,6}+(?:\.[0-9]{1,9}+)?+"
_PLAIN_ROW = rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}(?:,{_PRICE}){{4}}+,(?:{_PRICE})?+,[0-9.]++\n"
_PLAIN = re.compile(f"{','.join(PRICE_COLUMNS)}\n((?:{_PLAIN_ROW})+)")


def _plain_history(path: Path, symbol: Symbol) -> PriceHistory | None:
    """All bars of a file as this program writes it, column by column: a third of the time that its rows take. None
    where a row has to be looked at by itself."""
    try:
        found = _PLAIN.fullmatch(path.read_text("ascii"))
        cells = [] if found is None else found[1].replace("\n", ",").split(",")
        sessions = array("q", (date.fromisoformat(day).toordinal() for day in cells[:-1:7]))
        volume = array("d", map(float, cells[6::7]))
    except (OSError, ValueError):
        return None
    # Below a million the product is off by less than a quarter of a nano-unit.
    floats = ([float(one) if one else UNKNOWN / 1e9 for one in cells[n::7]] for n in range(1, 6))
    columns = [np.rint(np.array(column) * 1e9).astype(np.int64) for column in floats]
    opened, high, low, close, adjusted = columns
    bounded = (low > 0) & (low <= np.minimum(opened, close)) & (np.maximum(opened, close) <= high) & (adjusted != 0)
    if not sessions or not bounded.all() or any(map(le, sessions[1:], sessions)):
        return None
    prices: dict[str, Any] = {
        name: array("q", column.tobytes()) for name, column in zip(PRICE_COLUMNS[1:-1], columns, strict=True)
    }
    return PriceHistory(symbol=symbol, sessions=sessions, volume=volume, **prices)


def history_of(symbol: Symbol, bars: Sequence[BarRow]) -> PriceHistory:
    """Rows in order of session, at least one, as a history."""
    sessions, *prices, volume = zip(*bars, strict=True)
    columns: dict[str, Any] = dict(zip(PRICE_COLUMNS[1:-1], (array("q", column) for column in prices), strict=True))
    return PriceHistory(symbol=symbol, sessions=array("q", sessions), volume=array("d", volume), **columns)


@dataclass(frozen=True, slots=True)
class PriceRows:
    """The rows of a price file: its bars, the problem of each row that no market can have made, by session, and the
    sessions whose prices were rounded."""

    bars: list[BarRow] = field(default_factory=list)
    impossible: dict[date, str] = field(default_factory=dict)
    rounded: list[date] = field(default_factory=list)


def sessions_without_bar(symbol: Symbol, bars: Sequence[BarRow], calendar: Calendar) -> tuple[date, ...]:
    """The sessions between others of which rows in order have no bar, as far back as calendars go."""
    if not bars:
        return ()
    first, last = (date.fromordinal(row[0]) for row in (bars[0], bars[-1]))
    sessions = calendar.sessions(max(first, FIRST_SESSION), last)
    return tuple(days_without_bar(history_of(symbol, bars), calendar, sessions))


def read_bars(path: Path) -> list[BarRow]:
    """Rows of a price file; none where it is missing or empty. Raises MalformedData for a bad row."""
    rows = read_rows(path)
    for problem in rows.impossible.values():
        raise MalformedData(problem)
    return rows.bars


def read_rows(path: Path) -> PriceRows:
    """All rows of a price file; none where it is missing or empty. Raises MalformedData for a row without a date of its
    own, or of other cells."""
    found, before = PriceRows(), 0
    for line, (cells, bar, problem) in csv_items(path, PRICE_COLUMNS, _judged) if path.exists() else ():
        ordinal = iso_date(cells[0]).toordinal() if bar is None else bar[0]
        if ordinal <= before:
            place = "appears twice" if ordinal == before else f"comes after {date.fromordinal(before)}"
            problem = f"{date.fromordinal(ordinal)} {place}; keep one row per date, in order of date"
            raise malformed(path, line, problem)
        before = ordinal
        if bar is None:
            found.impossible[date.fromordinal(ordinal)] = str(malformed(path, line, f"{cells[0]}: {problem}"))
            continue
        found.bars.append(bar)
        if is_rounded(bar, cells):
            found.rounded.append(date.fromordinal(ordinal))
    return found


def _judged(cells: list[str]) -> tuple[list[str], BarRow | None, str]:
    """The cells of a row, its bar, and the problem of one that cannot be. Raises ValueError for a row of no date."""
    try:
        return cells, bar_row(cells), ""
    except ValueError as problem:
        if len(cells) == len(PRICE_COLUMNS) and iso_date(cells[0]):
            return cells, None, str(problem)
        raise


def bar_row(cells: Sequence[str]) -> BarRow:
    """One checked bar from the texts of its cells, in the order of PRICE_COLUMNS; a price outside of the day's range by
    rounding is put onto its bound.

    Raises ValueError with the problem and its remedy.
    """
    if len(cells) != len(PRICE_COLUMNS):
        raise ValueError(f"{len(cells)} cells, expected {len(PRICE_COLUMNS)}; leave unknown values blank")
    day, *texts, adjusted_text, volume_text = cells
    session = iso_date(day).toordinal()
    open_, high, low, close = (_price(name, text) for name, text in zip(PRICES, texts, strict=True))
    if high < low or not low <= open_ <= high or not low <= close <= high:
        if fault := bar_fault(open_, high, low, close):
            raise ValueError(f"{fault}; correct the row")
        open_, high, low, close = without_noise(open_, high, low, close)
    adjusted = _price("adj_close", adjusted_text) if adjusted_text else UNKNOWN
    return session, open_, high, low, close, adjusted, _volume(volume_text)


def is_rounded(bar: BarRow, cells: Sequence[str]) -> bool:
    """True where prices of a bar are not those of its cells, because they lay outside of the day's range by rounding:
    its open or close is on a bound then."""
    _, open_, high, low, close, _, _ = bar
    if low < open_ < high and low < close < high:
        return False
    return any(to_nano(Decimal(text)) != price for text, price in zip(cells[1:5], bar[1:5], strict=True))


def prices_text(bars: Iterable[BarRow]) -> str:
    """Text of a price file; the rows have to be in order of session."""
    lines = [",".join(PRICE_COLUMNS)]
    for session, *prices, volume in bars:
        cells = [date.fromordinal(session).isoformat()]
        cells += ["" if nano == UNKNOWN else f"{from_nano(nano):f}" for nano in prices]
        known = "" if isnan(volume) else str(int(volume)) if volume.is_integer() else repr(volume)
        lines.append(",".join((*cells, known)))
    return "\n".join(lines) + "\n"


def read_actions(path: Path, symbol: Symbol) -> tuple[CorporateAction, ...]:
    """Splits and cash dividends of a file, in order of ex-date; the rows may be in any order.

    None where the file is missing. Raises MalformedData at the first bad row, and for two of one kind on a date.
    """
    actions: dict[tuple[date, ActionKind], CorporateAction] = {}
    items = csv_items(path, ACTION_COLUMNS, lambda cells: action_row(symbol, cells)) if path.exists() else ()
    for line, action in items:
        if actions.setdefault((action.ex_date, action.kind), action) is not action:
            raise malformed(path, line, f"a second {action.kind} on {action.ex_date}; keep one row")
    return _in_order(actions.values())


def action_row(symbol: Symbol, cells: Sequence[str]) -> CorporateAction:
    """One checked action from the texts of its cells, in the order of ACTION_COLUMNS.

    Raises ValueError with the problem and its remedy.
    """
    if len(cells) != len(ACTION_COLUMNS):
        raise ValueError(f"{len(cells)} cells, expected {len(ACTION_COLUMNS)}; write ex_date,kind,value")
    day, kind, text = cells
    if kind not in tuple(ActionKind):
        raise ValueError(f"kind {kind[:40]!r} is unknown; write {' or '.join(ActionKind)}")
    value = number("value", text)
    if not _LEAST <= value < _MOST:
        raise ValueError(f"value {text[:40]} is not between {_LEAST} and {_MOST}; correct the row")
    return CorporateAction(symbol, iso_date(day), ActionKind(kind), value)


def actions_text(actions: Iterable[CorporateAction]) -> str:
    """Text of an action file, in order of ex-date."""
    rows = (f"{action.ex_date},{action.kind},{action.value:f}" for action in _in_order(actions))
    return "\n".join((",".join(ACTION_COLUMNS), *rows)) + "\n"


def _in_order(actions: Iterable[CorporateAction]) -> tuple[CorporateAction, ...]:
    """Actions by ex-date; on one date the dividend is before the split."""
    return tuple(sorted(actions, key=lambda action: (action.ex_date, action.kind)))


def _price(column: str, text: str) -> int:
    whole, _, part = text.partition(".")
    digits = whole + part
    # Plain digits, which nearly every price is, are whole nano-units without a Decimal.
    if digits.isdecimal() and digits.isascii() and len(whole) <= 9 and len(part) <= 9 and (units := int(digits)):
        return units * _TENS[9 - len(part)]
    value = number(column, text)
    nano = to_nano(value) if value <= _LARGEST else 0
    if nano <= 0:
        raise ValueError(f"{column} {text[:40]} is not a price above zero and below {_LARGEST}; correct the row")
    return nano


def _volume(text: str) -> float:
    if not text:
        return float("nan")
    volume = float(number("volume", text))
    if not 0 <= volume < float("inf"):
        raise ValueError(f"volume {text[:40]} is negative or too large; correct the row or leave it blank")
    return volume
