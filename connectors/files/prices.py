"""Reader and writer of prices/SYMBOL.csv and actions/SYMBOL.csv, with a check of every row."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from datetime import date
from decimal import Decimal
from math import isnan
from pathlib import Path

from connectors.files.rows import csv_items, iso_date, malformed, number
from engine.domain.market import (
    UNKNOWN,
    ActionKind,
    CorporateAction,
    PriceHistory,
    Symbol,
    from_nano,
    to_nano,
)
from engine.errors import MissingData

PRICE_COLUMNS = ("date", "open", "high", "low", "close", "adj_close", "volume")
ACTION_COLUMNS = ("ex_date", "kind", "value")

BarRow = tuple[int, int, int, int, int, int, float]
"""Session ordinal; open, high, low, close, adj_close in nano-units (UNKNOWN for a blank adj_close); volume in shares
(NaN for a blank one)."""

_LARGEST = Decimal(9_000_000_000)  # nano-units have to fit into 64 bits
_LEAST, _MOST = Decimal("0.000001"), Decimal(1_000_000)  # around any split or dividend ever made; others are slips


def read_prices(path: Path, symbol: Symbol) -> PriceHistory:
    """All bars of a price file, columns in nano-units.

    Raises MalformedData at the first bad row, MissingData for a file without any.
    """
    bars = read_bars(path)
    if not bars:
        raise MissingData(f"{path} holds no bars; import some with `paperdesk import prices FILE --symbol {symbol}`")
    return history_of(symbol, bars)


def history_of(symbol: Symbol, bars: Sequence[BarRow]) -> PriceHistory:
    """Rows in order of session, at least one, as a history."""
    sessions, *prices, volume = zip(*bars, strict=True)
    columns = zip(PRICE_COLUMNS[1:-1], prices, strict=True)
    return PriceHistory(
        symbol=symbol,
        sessions=array("q", sessions),
        volume=array("d", volume),
        **{name: array("q", column) for name, column in columns},
    )


def read_bars(path: Path) -> list[BarRow]:
    """Rows of a price file; none where it is missing or empty. Raises MalformedData at the first bad row."""
    bars: list[BarRow] = []
    before = 0
    for line, bar in csv_items(path, PRICE_COLUMNS, bar_row) if path.exists() else ():
        if bar[0] <= before:
            day = date.fromordinal(bar[0])
            problem = "stands twice" if bar[0] == before else f"comes after {date.fromordinal(before)}"
            raise malformed(path, line, f"{day} {problem}; keep one row per date, in order of date")
        before = bar[0]
        bars.append(bar)
    return bars


def bar_row(cells: Sequence[str]) -> BarRow:
    """One checked bar from the texts of its cells, in the order of PRICE_COLUMNS.

    Raises ValueError with the problem and its remedy.
    """
    if len(cells) != len(PRICE_COLUMNS):
        raise ValueError(f"{len(cells)} cells where {len(PRICE_COLUMNS)} belong; leave a blank cell for an unknown")
    day, open_text, high_text, low_text, close_text, adjusted_text, volume_text = cells
    session = iso_date(day).toordinal()
    open_ = _price("open", open_text)
    high = _price("high", high_text)
    low = _price("low", low_text)
    close = _price("close", close_text)
    if high < low:
        raise ValueError(f"high {high_text} is below low {low_text}; correct the row")
    for column, price, text in (("open", open_, open_text), ("close", close, close_text)):
        if not low <= price <= high:
            raise ValueError(f"{column} {text} is not between low {low_text} and high {high_text}; correct the row")
    adjusted = _price("adj_close", adjusted_text) if adjusted_text else UNKNOWN
    return session, open_, high, low, close, adjusted, _volume(volume_text)


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
        raise ValueError(f"{len(cells)} cells where {len(ACTION_COLUMNS)} belong; write ex_date,kind,value")
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
    value = number(column, text)
    nano = to_nano(value) if value <= _LARGEST else 0
    if nano <= 0:
        raise ValueError(f"{column} {text[:40]} is no price above zero and below {_LARGEST}; correct the row")
    return nano


def _volume(text: str) -> float:
    if not text:
        return float("nan")
    volume = float(number("volume", text))
    if not 0 <= volume < float("inf"):
        raise ValueError(f"volume {text[:40]} is negative or too large; correct the row or leave it blank")
    return volume
