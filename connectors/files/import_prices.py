"""Bars and corporate actions of foreign files, as the data folder will have them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path

from connectors.files.foreign_file import ForeignFile, Planned, cell, writing
from connectors.files.foreign_rows import Row
from connectors.files.prices import (
    BarRow,
    action_row,
    actions_text,
    bar_row,
    prices_text,
    read_actions,
    read_bars,
)
from connectors.files.reading import Reading
from connectors.files.rows import number
from engine.domain.fetched import Imported
from engine.domain.market import ActionKind, CorporateAction, Symbol
from engine.market.trading_hours import FIRST_SESSION
from engine.ports import Calendar

_LOT = 100
"""Shares of a lot in which Chinese exchanges count the volume."""
_PRICE_CELLS = ("open", "high", "low", "close", "adj_close", "volume")

NO_ACTION = "no ex-date"
NO_KIND = "neither a split nor a cash dividend"


def plan_prices(foreign: ForeignFile, folder: Path, reading: Reading) -> Iterator[Planned]:
    """Daily bars; rows may be in any order."""
    new: dict[Symbol, dict[int, BarRow]] = {}
    sessions: dict[Symbol, _Sessions] = {}

    def add(symbol: Symbol, row: Row) -> None:
        day = reading.day(cell(row, "date"), symbol)
        sessions.setdefault(symbol, _Sessions(reading.calendar_for(symbol), reading.now)).check(day)
        prices = [reading.price(name, row, symbol) for name in _PRICE_CELLS[:-1]]
        bar = bar_row([str(day), *prices, _volume(row, symbol)])
        if new.setdefault(symbol, {}).setdefault(bar[0], bar) is not bar:
            raise ValueError(f"{date.fromordinal(bar[0])} stands twice; keep one row per date")

    for symbol in foreign.each(add):
        path, added = folder / "prices" / f"{symbol}.csv", new[symbol]
        old = {bar[0]: bar for bar in read_bars(path)}
        merged = old | added
        bars = [merged[day] for day in sorted(merged)]
        # Two bars are the same if they would be written the same: an unknown volume equals itself.
        same = sum(prices_text([bar]) == prices_text([old[day]]) for day, bar in added.items() if day in old)
        more = len(merged) - len(old)
        yield Planned(
            symbol=symbol,
            imported=Imported(path, more, len(added) - more - same, same, foreign.dropped(symbol)),
            write=writing(path, prices_text(bars), needed=same < len(added)),
            bars=bars,
        )


@dataclass(slots=True)
class _Sessions:
    """The sessions of a symbol's calendar that are over."""

    calendar: Calendar
    now: datetime
    _known: dict[int, frozenset[date]] = field(default_factory=dict)

    def check(self, day: date) -> None:
        """Raise ValueError for a day on which the market was closed, or that is not over."""
        if day > self.calendar.last_closed(self.now):
            raise ValueError(f"{day} is not over on {self.calendar.name}; import it afterwards, without the row now")
        if day < FIRST_SESSION:
            return  # before the calendar begins
        if day.year not in self._known:
            whole_year = date(day.year, 1, 1), date(day.year, 12, 31)
            self._known[day.year] = frozenset(self.calendar.sessions(*whole_year))
        if day not in self._known[day.year]:
            raise ValueError(
                f"{day} is no session of {self.calendar.name}; remove the row, or correct --tz or --symbol"
            )


def _volume(row: Row, symbol: Symbol) -> str:
    """The volume in shares, where it may be in lots."""
    lots = cell(row, "lots")
    if not lots or cell(row, "volume"):
        return cell(row, "volume")
    return str(number("volume", lots) * _LOT) if symbol.endswith((".SS", ".SZ", ".BJ")) else lots


def plan_actions(foreign: ForeignFile, folder: Path, reading: Reading) -> Iterator[Planned]:
    """Splits and dividends, of rows with ex_date, kind and value or with columns for dividends and splits."""
    new: dict[Symbol, dict[tuple[date, ActionKind], CorporateAction]] = {}

    def add(symbol: Symbol, row: Row) -> str | None:
        known = new.setdefault(symbol, {})
        if not cell(row, "ex_date"):
            return NO_ACTION
        day = reading.day(cell(row, "ex_date"), symbol)
        if not any(name in row.values for name in ("kind", "dividend", "split", "new_shares", "bonus")):
            if "symbol" in row.values:
                return NO_KIND
            raise ValueError("neither kind and value nor dividend or split; name the columns so")
        for action in _actions_in(row, symbol, str(day), reading):
            if known.setdefault((action.ex_date, action.kind), action) is not action:
                raise ValueError(f"a second {action.kind} on {action.ex_date}; keep one row")
        return None

    for symbol in foreign.each(add):
        path, added = folder / "actions" / f"{symbol}.csv", new[symbol]
        old = {(act.ex_date, act.kind): act for act in read_actions(path, symbol)}
        same = sum(old.get(key) == action for key, action in added.items())
        merged, more = tuple((old | added).values()), len(added.keys() - old.keys())
        # A file without a single action still says something: that there were none.
        needed = same < len(added) or not path.exists()
        yield Planned(
            symbol=symbol,
            imported=Imported(path, more, len(added) - more - same, same, foreign.dropped(symbol)),
            write=writing(path, actions_text(merged), needed=needed),
            actions=merged,
        )


def _actions_in(row: Row, symbol: Symbol, day: str, reading: Reading) -> Iterator[CorporateAction]:
    if "kind" in row.values:
        kind = cell(row, "kind").lower()
        value = reading.price("value", row, symbol) if kind == ActionKind.DIVIDEND else _ratio(cell(row, "value"))
        yield action_row(symbol, [day, kind, value])
        return
    # A price file says zero, or nothing, on the days without a dividend, and zero or one on those without a split.
    dividend = cell(row, "dividend")
    if dividend and number("dividend", dividend) != 0:
        yield action_row(symbol, [day, ActionKind.DIVIDEND, reading.price("dividend", row, symbol)])
    split = _split_in(row)
    if split and number("split", split) not in (0, 1):
        yield action_row(symbol, [day, ActionKind.SPLIT, split])


def _split_in(row: Row) -> str:
    """New shares for an old one: a ratio, a pair of shares, or the shares that are given for each on top."""
    if new := cell(row, "new_shares"):
        return _ratio(f"{new}:{cell(row, 'old_shares')}")
    if bonus := cell(row, "bonus"):
        return str(1 + number("bonus", bonus))
    return _ratio(cell(row, "split"))


def _ratio(text: str) -> str:
    """A number, with a split written 4:1 as 4."""
    new, colon, old = text.partition(":")
    if not colon:
        return text
    per_old = number("split", old)
    if per_old <= 0:
        raise ValueError(f"split {text} is no ratio; write new shares:old shares, such as 4:1")
    return str(number("split", new) / per_old)
