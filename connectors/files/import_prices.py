"""Bars and corporate actions of foreign files, as the data folder will have them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path

from connectors.files.foreign_file import ForeignFile, Planned, cell, writing
from connectors.files.foreign_rows import Row
from connectors.files.prices import (
    BarRow,
    action_row,
    actions_text,
    bar_row,
    is_rounded,
    prices_text,
    read_actions,
    read_bars,
    sessions_without_bar,
)
from connectors.files.reading import Reading
from connectors.files.rows import number
from engine.domain.fetched import Imported
from engine.domain.market import ActionKind, CorporateAction, Dropped, Symbol
from engine.domain.text import counted, first_few

_LOT = 100
"""Shares of a lot in which Chinese exchanges count the volume."""
_LOTS_OF_TUSHARE = "vol"
"""The column of lots by its exact name; `Vol.` of others is in shares."""
_ONLY_PRICE = "prices"
"""The column of InvestorBench's one price a day, which is adjusted for dividends."""
_PRICE_CELLS = ("open", "high", "low", "close", "adj_close", "volume")

_PAID = ("dividend", "gains", "special")
_ACTION_CELLS = ("kind", *_PAID, "split", "new_shares", "bonus")
_ROWS = ("amount",)
"""Columns of rows that each are an action; of a bar the amount is what was paid for all shares."""
_NOT_SUSPENDED = ("", "0", "0.0", "false", "f", "n", "no", "none", "nan", "否", "正常", "normal", "active", "trading")
"""Values of a column of suspensions for days that were traded."""
_NOT_TRADED = ("0", "0.0", "false", "f", "n", "no", "否")
_NOT_TRADED_WORDS = ("停牌", "suspend", "halt", "pause")
"""Values, and words in them, of a column of trading states for days that were not traded."""

NO_PRICES = "no prices"
SUSPENDED = "marked as suspended"
ROUNDED = "clamped to the day's range: prices outside it by a rounding error"
TWICE = "repeated"
NO_ACTION = "no ex-date"
NO_KIND = "neither a split nor a cash dividend"


def plan_prices(foreign: ForeignFile, folder: Path, reading: Reading) -> Iterator[Planned]:
    """Daily bars; rows may be in any order, equal ones count once, and those without any price, or of days on which
    trading was suspended, are left out."""
    new: dict[Symbol, dict[int, BarRow]] = {}
    noted: dict[str, list[date]] = {}
    lots: set[str] = set()
    foreign.need(("date",), "dates")
    columns = foreign.taken.columns
    in_lots = columns.get("lots") == _LOTS_OF_TUSHARE
    is_only = columns.get("close") == _ONLY_PRICE and not {"open", "high", "low", "adj_close"} & columns.keys()
    names = ("close",) * 5 if is_only else _PRICE_CELLS[:-1]

    def add(symbol: Symbol, row: Row) -> str | None:
        day = reading.day(cell(row, "date"), symbol)
        why = SUSPENDED if _suspended(row) else NO_PRICES
        if why == SUSPENDED or not any(cell(row, name) for name in _PRICE_CELLS[:-1]):
            noted.setdefault(why, []).append(day)
            return why
        reading.check_session(day, symbol)
        prices = [reading.price(name, row, symbol) for name in names]
        cells = [str(day), *prices, _volume(row, symbol, lots, in_lots=in_lots)]
        bar = bar_row(cells)
        if is_rounded(bar, cells):
            noted.setdefault(ROUNDED, []).append(day)
        known = new.setdefault(symbol, {}).get(bar[0])
        if known is not None and prices_text([known]) != prices_text([bar]):
            raise ValueError(f"{day} stands twice; keep one row per date")
        if known is not None:
            noted.setdefault(TWICE, []).append(day)
        new[symbol][bar[0]] = bar
        return None

    symbols = foreign.each(add)
    if is_only:
        foreign.notes.append("one price a day: it is open, high, low, close and adj_close, and trades fill at it")
    foreign.notes += [
        f"{counted(len(days), 'row')} {'' if why == ROUNDED else 'left out: '}{why} ({first_few(days)})"
        for why, days in noted.items()
    ]
    foreign.notes += sorted(lots)
    for symbol in symbols:
        path, added = folder / "prices" / f"{symbol}.csv", new.get(symbol, {})
        old = {bar[0]: bar for bar in read_bars(path)}
        merged = old | added
        bars = [merged[day] for day in sorted(merged)]
        # Two bars are the same if they would be written the same: an unknown volume equals itself.
        same = sum(prices_text([bar]) == prices_text([old[day]]) for day, bar in added.items() if day in old)
        more = len(merged) - len(old)
        missing = sessions_without_bar(symbol, bars, reading.calendar_for(symbol))
        foreign.notes += (
            [f"{symbol}: no bar, where there are earlier and later ones ({first_few(missing)})"] if missing else ()
        )
        yield Planned(
            symbol=symbol,
            imported=Imported(path, more, len(added) - more - same, same, foreign.dropped(symbol)),
            write=writing(path, prices_text(bars), needed=same < len(added)),
            bars=bars,
            own_bars=[added[day] for day in sorted(added)],
        )


def _suspended(row: Row) -> bool:
    """True for a row that its file marks as of a day without trading: by a word, a flag, or by being not traded."""
    marks, trades = cell(row, "suspended").lower(), cell(row, "traded").lower()
    return marks not in _NOT_SUSPENDED or trades in _NOT_TRADED or any(word in trades for word in _NOT_TRADED_WORDS)


def _volume(row: Row, symbol: Symbol, notes: set[str], *, in_lots: bool) -> str:
    """The volume in shares, where it may be in lots: by the column's name, or by what was paid for it."""
    volume, lots, paid = cell(row, "volume"), cell(row, "lots"), cell(row, "turnover")
    if not symbol.endswith((".SS", ".SZ", ".BJ")) or not (volume or lots):
        return volume or lots
    if volume and paid:
        shares = number("volume", volume) * number("close", cell(row, "close"))
        paid_for_lots = shares > 0 and _LOT / 2 < number("turnover", paid) / shares < _LOT * 2
        if paid_for_lots:
            notes.add(f"the volume of {symbol} is in lots of {_LOT} shares, by what was paid for them")
        return str(number("volume", volume) * _LOT) if paid_for_lots else volume
    return volume or (str(number("volume", lots) * _LOT) if in_lots else lots)


def plan_actions(foreign: ForeignFile, folder: Path, reading: Reading) -> Iterator[Planned]:
    """Splits and dividends, of rows with ex_date, kind and value or with columns for dividends and splits."""
    new: dict[Symbol, dict[tuple[date, ActionKind], CorporateAction]] = {}
    foreign.need((*_ACTION_CELLS, *(() if "close" in foreign.taken.columns else _ROWS)), "dividends or splits")

    def add(symbol: Symbol, row: Row) -> str | None:
        known = new.setdefault(symbol, {})
        if not cell(row, "ex_date"):
            return NO_ACTION
        day = reading.day(cell(row, "ex_date"), symbol)
        cells = _ACTION_CELLS if "close" in row.values else (*_ACTION_CELLS, *_ROWS)
        if not any(name in row.values for name in cells):
            return None if "close" in row.values else NO_KIND
        twice = False
        for action in _actions_in(row, symbol, str(day), reading):
            first = known.setdefault((action.ex_date, action.kind), action)
            if first != action:
                raise ValueError(f"a second {action.kind} on {action.ex_date}; keep one row")
            twice = twice or first is not action
        return TWICE if twice else None

    for symbol in foreign.each(add):
        yield planned_actions(folder, symbol, new.get(symbol, {}).values(), foreign.dropped(symbol))


def planned_actions(
    folder: Path,
    symbol: Symbol,
    actions: Iterable[CorporateAction],
    dropped: tuple[Dropped, ...] = (),
    derived: tuple[CorporateAction, ...] = (),
) -> Planned:
    """The file of a symbol's actions with some more; one of the same day and kind is replaced."""
    path, added = folder / "actions" / f"{symbol}.csv", {(act.ex_date, act.kind): act for act in actions}
    old = {(act.ex_date, act.kind): act for act in read_actions(path, symbol)}
    same = sum(old.get(key) == action for key, action in added.items())
    merged, more = tuple((old | added).values()), len(added.keys() - old.keys())
    # A file without a single action still says something: that there were none.
    needed = same < len(added) or not path.exists()
    return Planned(
        symbol=symbol,
        imported=Imported(path, more, len(added) - more - same, same, dropped, derived),
        write=writing(path, actions_text(merged), needed=needed),
        actions=merged,
    )


def _actions_in(row: Row, symbol: Symbol, day: str, reading: Reading) -> Iterator[CorporateAction]:
    if "kind" in row.values and "value" in row.values:
        kind = _kind(cell(row, "kind").lower())
        value = reading.price("value", row, symbol) if kind == ActionKind.DIVIDEND else _ratio(cell(row, "value"))
        yield action_row(symbol, [day, kind, value])
        return
    # A price file says zero, or nothing, on the days without a dividend, and zero or one on those without a split.
    amount = () if "close" in row.values or cell(row, "dividend") else ("amount",)  # a bar's is what all shares cost
    paid = sum(number(name, reading.price(name, row, symbol)) for name in (*_PAID, *amount) if cell(row, name))
    if paid:
        yield action_row(symbol, [day, ActionKind.DIVIDEND, str(paid)])
    split = _split_in(row)
    if split and number("split", split) not in (0, 1):
        yield action_row(symbol, [day, ActionKind.SPLIT, split])


def _kind(word: str) -> str:
    """The kind of an action by how vendors call it: cash, Special Dividend, Forward Split."""
    told = {"split": ActionKind.SPLIT, "div": ActionKind.DIVIDEND, "cash": ActionKind.DIVIDEND}
    return next((str(kind) for part, kind in told.items() if part in word), word)


def _split_in(row: Row) -> str:
    """New shares for an old one: a ratio, a pair of shares, or the shares that are given for each on top."""
    if new := cell(row, "new_shares"):
        return _ratio(f"{new}:{cell(row, 'old_shares')}")
    if bonus := cell(row, "bonus"):
        return str(1 + number("bonus", bonus))
    return _ratio(cell(row, "split"))


def _ratio(text: str) -> str:
    """A number, with a split written 4:1, 4/1 or 4-for-1 as 4."""
    new, *rest = re.split(r"\s*(?::|/|-?for-?|\bto\b)\s*", text, maxsplit=1)
    if not rest:
        return text
    old = rest[0]
    per_old = number("split", old)
    if per_old <= 0:
        raise ValueError(f"split {text} is no ratio; write new shares:old shares, such as 4:1")
    return str(number("split", new) / per_old)
