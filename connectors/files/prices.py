"""Reader of prices/SYMBOL.csv into columns, with a check of every row."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from datetime import date
from decimal import Decimal, InvalidOperation
from pathlib import Path

from connectors.files.rows import check_header, csv_rows, malformed
from engine.domain.market import UNKNOWN, PriceHistory, Symbol, to_nano
from engine.errors import MissingData

PRICE_COLUMNS = ("date", "open", "high", "low", "close", "adj_close", "volume")

BarRow = tuple[int, int, int, int, int, int, float]
"""Session ordinal; open, high, low, close, adj_close in nano-units (UNKNOWN for a blank adj_close); volume in shares
(NaN for a blank one)."""

_LARGEST = Decimal(9_000_000_000)  # nano-units have to fit into 64 bits


def read_prices(path: Path, symbol: Symbol) -> PriceHistory:
    """All bars of a price file, columns in nano-units.

    Raises MalformedData at the first bad row, MissingData for a file without any.
    """
    rows = csv_rows(path)
    check_header(path, next(rows, None), PRICE_COLUMNS)
    bars: list[BarRow] = []
    before = 0
    for line, cells in rows:
        try:
            bar = bar_row(cells)
        except ValueError as problem:
            raise malformed(path, line, str(problem)) from None
        if bar[0] <= before:
            what = "stands twice" if bar[0] == before else f"comes after {date.fromordinal(before)}"
            raise malformed(path, line, f"{cells[0]} {what}; keep one row per date, in order of date")
        before = bar[0]
        bars.append(bar)
    if not bars:
        raise MissingData(f"{path} holds no bars; import some with `paperdesk import prices FILE --symbol {symbol}`")
    return history_of(symbol, bars)


def history_of(symbol: Symbol, bars: Iterable[BarRow]) -> PriceHistory:
    """Columns from checked rows in order of session."""
    days, opens, highs, lows, closes, adjusted, volumes = zip(*bars, strict=True)
    return PriceHistory(
        symbol=symbol,
        sessions=array("q", days),
        open=array("q", opens),
        high=array("q", highs),
        low=array("q", lows),
        close=array("q", closes),
        adj_close=array("q", adjusted),
        volume=array("d", volumes),
    )


def rows_of(history: PriceHistory) -> list[BarRow]:
    """Rows of a history, as `bar_row` gives them."""
    return list(
        zip(
            history.sessions,
            history.open,
            history.high,
            history.low,
            history.close,
            history.adj_close,
            history.volume,
            strict=True,
        )
    )


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
    if not low <= open_ <= high:
        raise ValueError(f"open {open_text} is not between low {low_text} and high {high_text}; correct the row")
    if not low <= close <= high:
        raise ValueError(f"close {close_text} is not between low {low_text} and high {high_text}; correct the row")
    return session, open_, high, low, close, _adjusted(adjusted_text), _volume(volume_text)


def iso_date(text: str) -> date:
    """A date written YYYY-MM-DD. Raises ValueError saying so."""
    try:
        if len(text) != 10 or text[4] != "-" or text[7] != "-":
            raise ValueError
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text[:40]!r} is no date; write it as YYYY-MM-DD") from None


def number(column: str, text: str) -> Decimal:
    """A finite decimal number. Raises ValueError naming its column."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite() or "_" in text:
        raise ValueError(f"{column} {text[:40]!r} is no number; correct the row")
    return value


def _price(column: str, text: str) -> int:
    value = number(column, text)
    nano = to_nano(value) if value <= _LARGEST else 0
    if nano <= 0:
        raise ValueError(f"{column} {text[:40]} is no price above zero and below {_LARGEST}; correct the row")
    return nano


def _adjusted(text: str) -> int:
    return _price("adj_close", text) if text else UNKNOWN


def _volume(text: str) -> float:
    if not text:
        return float("nan")
    volume = float(number("volume", text))
    if not 0 <= volume < float("inf"):
        raise ValueError(f"volume {text[:40]} is negative or too large; correct the row or leave it blank")
    return volume
