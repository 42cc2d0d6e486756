"""Import of prices, actions, news, filings, macro series, holdings and commentary from files of any origin into the
data folder.

Nothing is written unless every row of every kind is good, and bars and actions agree. Stored rows stay, except that a
bar or an action of the same date is replaced. Importing a file a second time changes nothing. import_files.toml has
the names of columns.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, tzinfo
from pathlib import Path

from connectors.files.columns import column_names
from connectors.files.foreign_file import ForeignFile, Planned, appending, cell, writing
from connectors.files.foreign_rows import Row, foreign_rows
from connectors.files.holdings import holding_row, holdings_text, read_holdings
from connectors.files.macro import MACRO_COLUMNS, macro_row, merged_macro
from connectors.files.prices import (
    BarRow,
    action_row,
    actions_text,
    bar_row,
    history_of,
    is_rounded,
    prices_text,
    read_actions,
    read_bars,
    sessions_without_bar,
)
from connectors.files.reading import Reading
from connectors.files.rows import json_line, number
from connectors.files.stamps import iso_stamp, read_stamp, stamp_text, zone_named
from connectors.files.texts import COMMENTARY, FILINGS, NEWS, TextKind, form_of
from engine.domain.fetched import FileImport, Imported, ImportResult
from engine.domain.macro import MacroObservation, MacroSeries
from engine.domain.market import (
    LISTED,
    UNKNOWN,
    ActionKind,
    CorporateAction,
    Dropped,
    Exchanges,
    FundHolding,
    Symbol,
    parse_symbol,
)
from engine.domain.text import counted, first_few
from engine.errors import MalformedData, MissingData
from engine.market.implied_actions import implied_actions
from engine.market.price_faults import Comparison, compare, refuse_faults
from engine.ports import Calendar

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
    lacking = next((name for name in names[:4] if name not in columns), "date")  # adj_close may be unknown
    foreign.need((lacking,), lacking)

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
            raise ValueError(f"{day} appears twice; keep one row per date")
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
        raise ValueError(f"split {text} is not a ratio; write new shares:old shares, such as 4:1")
    return str(number("split", new) / per_old)


def plan_news(foreign: ForeignFile, folder: Path, reading: Reading) -> Iterator[Planned]:
    """News. An item without a date or text is dropped and counted."""
    always = ("date", "time", "headline", "summary", "source", "sentiment")
    return plan_texts(foreign, folder / "news", NEWS, always, reading)


def plan_filings(foreign: ForeignFile, folder: Path, reading: Reading) -> Iterator[Planned]:
    """Filings; drops as news."""
    return plan_texts(foreign, folder / "filings", FILINGS, ("date", "form", "summary"), reading)


def plan_texts(
    foreign: ForeignFile, folder: Path, kind: TextKind, always: Sequence[str], reading: Reading
) -> Iterator[Planned]:
    """Records of a kind that are new; names in `always` are written where they are blank too."""
    names = [name for name in foreign.names if name != "symbol"]
    moments = ("date", *kind.first, *kind.last)
    existing: dict[Symbol, Counter[tuple[str | None, ...]]] = {}
    lines: dict[Symbol, list[str]] = {}
    same = Counter[Symbol]()

    def add(symbol: Symbol, row: Row) -> str | None:
        if len(row.values.get("time") or "") > len("HH:MM:SS AM") and not any(row.values.get(one) for one in moments):
            # A whole moment may stand under `time`.
            row = replace(row, values={**row.values, "time": None, kind.first[0]: iso_stamp(cell(row, "time"), None)})
        own = lines.setdefault(symbol, [])
        if reason := kind.unusable(row.values):
            return reason
        values = _with_stamps(row.values, kind, reading.zone)
        kind.dates(values)
        if kind is FILINGS:
            form_of(values)
        if symbol not in existing:
            existing[symbol] = _stored(folder / f"{symbol}.jsonl", foreign.kind, names)
        content = tuple(values.get(name) for name in names)
        if existing[symbol][content] > 0:
            # One old item answers for one new one: a file that says a thing twice is kept as it is.
            existing[symbol][content] -= 1
            same[symbol] += 1
        else:
            known = zip(names, content, strict=True)
            own.append(json_line({name: text for name, text in known if text or name in always}))
        return None

    for symbol in foreign.each(add):
        path, new = folder / f"{symbol}.jsonl", lines[symbol]
        yield Planned(
            symbol=symbol,
            imported=Imported(path, len(new), 0, same[symbol], foreign.dropped(symbol)),
            write=appending(path, new),
        )


def plan_commentary(foreign: ForeignFile, folder: Path, reading: Reading) -> Iterator[Planned]:
    """Commentary of funds; drops as news."""
    return plan_texts(foreign, folder / "commentary", COMMENTARY, ("date", "source", "text"), reading)


def _stored(path: Path, kind: str, names: Sequence[str]) -> Counter[tuple[str | None, ...]]:
    """The items of a file of the data folder, by content. Raises MalformedData."""
    if not path.exists():
        return Counter()
    stored = foreign_rows(path, column_names(kind, {}))
    if stored.read.bad:
        raise stored.read.bad[0]
    return Counter(tuple(row.values.get(name) for name in names) for row in stored.rows)


def _with_stamps(values: Mapping[str, str | None], kind: TextKind, zone: tzinfo | None) -> Mapping[str, str | None]:
    """A record with its stamps as the data folder has them. Raises ValueError."""
    stamped = dict(values)
    for name in ("date", *kind.first, *kind.last):
        if text := values.get(name):
            stamped[name] = stamp_text(text, zone)
    clock = values.get("time")
    if clock and stamped.get("date") and len(clock) <= len("HH:MM:SS"):
        day, of_day = read_stamp(str(stamped["date"]), zone), _time_of_day(clock)
        if zone is None:
            raise ValueError(f"{clock!r} is a time without a time zone; give one with --tz ZONE, such as UTC")
        moment = datetime.combine(day, of_day, zone).astimezone(UTC)
        stamped |= {"time": None, kind.first[0]: f"{moment.replace(tzinfo=None).isoformat()}Z"}
    return stamped


def _time_of_day(text: str) -> time:
    try:
        return time.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text[:40]!r} is not a time of day; write HH:MM:SSZ, or null") from None


NO_HOLDING = "no ticker: cash, or a remark below the table"


def plan_macro(foreign: ForeignFile, folder: Path, reading: Reading) -> Iterator[Planned]:
    """Figures of macro series, each with its release: without that it could be read too early, so it is refused."""
    new: dict[Symbol, list[MacroObservation]] = {}

    def add(name: Symbol, row: Row) -> None:
        if not cell(row, "known_from"):
            raise ValueError("known_from is missing; write the day or the time of the release")
        stamps = {column: stamp_text(cell(row, column), reading.zone) for column in ("date", "known_from")}
        new.setdefault(name, []).append(macro_row([stamps.get(one) or cell(row, one) for one in MACRO_COLUMNS]))

    for name in foreign.each(add):
        path = folder / "macro" / f"{name}.csv"
        try:
            series = MacroSeries.of(name, new[name])
            text, more = merged_macro(path, series)
        except ValueError as problem:
            raise MalformedData(f"{name}: {problem}") from None
        yield Planned(
            symbol=name,
            imported=Imported(path, more, 0, len(series.observations) - more, foreign.dropped(name)),
            write=writing(path, text, needed=more > 0),
        )


def plan_holdings(foreign: ForeignFile, folder: Path, reading: Reading) -> Iterator[Planned]:
    """Holdings of funds by day."""
    new: dict[Symbol, dict[tuple[date, Symbol], FundHolding]] = {}

    def add(fund: Symbol, row: Row) -> str | None:
        if not cell(row, "holding"):
            return NO_HOLDING
        day = stamp_text(cell(row, "date"), reading.zone)
        held = holding_row([day, cell(row, "holding"), cell(row, "shares"), cell(row, "weight")])
        if new.setdefault(fund, {}).setdefault((held.date, held.symbol), held) is not held:
            raise ValueError(f"{held.symbol} appears twice on {held.date}; keep one row")
        return None

    for fund in foreign.each(add):
        path, added = folder / "holdings" / f"{fund}.csv", new[fund]
        old = {(held.date, held.symbol): held for held in read_holdings(path)}
        same, more = sum(old.get(key) == held for key, held in added.items()), len(added.keys() - old.keys())
        yield Planned(
            symbol=fund,
            imported=Imported(path, more, len(added) - more - same, same, foreign.dropped(fund)),
            write=writing(path, holdings_text((old | added).values()), needed=same < len(added)),
        )


_PAYING = ("prices", "actions")
CalendarFor = Callable[[Symbol], Calendar]


def import_file(
    request: FileImport, calendar_for: CalendarFor, now: datetime, exchanges: Exchanges = LISTED
) -> ImportResult:
    """Bring the kinds of data of one file into the folder, a file for each kind and symbol.

    A kind of several that the file has no row of is noted. Raises MalformedData over all bad rows, and where bars and
    actions contradict each other; MissingData for a file without rows; UsageError for an unknown field, kind of file or
    time zone, and rows that name no symbol.
    """
    zone = None if request.zone is None else zone_named(request.zone)
    wanted = tuple(map(parse_symbol, request.symbols))
    reading = Reading(calendar_for=calendar_for, exchanges=exchanges, now=now, zone=zone, currency=request.currency)
    kinds = ("prices",) if request.from_adjusted else request.kinds
    files, without = _files(request, kinds, wanted, reading) if request.file is not None else ([], [])
    planned = [plan for foreign in files for plan in _PLANS[foreign.kind](foreign, request.folder, reading)]
    if request.from_adjusted:
        planned = list(_derived(request.folder, wanted, planned, request.file))
    comparisons = list(_comparisons(request.folder, planned))
    refuse_faults([fault for compared in comparisons for fault in compared.faults], date.max)
    read = [column for foreign in files for column in foreign.read_columns]
    notes = [*without, *(note for foreign in files for note in foreign.notes)]
    notes += [note for foreign in files if foreign.kind in _PAYING for note in foreign.unread_money(read)]
    notes += [note for compared in comparisons for note in compared.notes(date.min, date.max)]
    if request.write:
        for plan in planned:
            plan.write()
    return ImportResult(
        tuple(plan.imported for plan in planned),
        tuple(foreign.taken for foreign in files),
        tuple(dict.fromkeys(notes)),
    )


def _files(
    request: FileImport, kinds: Sequence[str], wanted: Sequence[Symbol], reading: Reading
) -> tuple[list[ForeignFile], list[str]]:
    """The file as each kind of data that it has rows of, and a note on each other. Raises MissingData where it has none
    of any."""
    files, without = [], []
    for kind in kinds:
        try:
            files.append(ForeignFile(request, kind, wanted, reading))
        except MissingData as error:
            without.append(error)
    if not files:
        raise without[0]
    return files, list(map(str, without))


def _derived(folder: Path, wanted: Sequence[Symbol], read: Sequence[Planned], file: Path | None) -> Iterator[Planned]:
    """The actions that adj_close implies and that the folder lacks, of the bars read from a file, else of the folder's
    own. Raises MissingData where there is no adj_close."""
    prices = folder / "prices"
    bars = {plan.symbol: plan.own_bars for plan in read}
    if file is None:
        found = sorted(path.stem for path in prices.glob("*.csv"))
        bars = {symbol: read_bars(prices / f"{symbol}.csv") for symbol in wanted or found}
    known = {symbol: own for symbol, own in bars.items() if any(bar[5] != UNKNOWN for bar in own)}
    without = [symbol for symbol in wanted if symbol not in known]
    if without or not known:
        of = f" of {', '.join(without)}" if without else ""
        raise MissingData(f"no adj_close{of} in {file or prices}: nothing to derive actions from")
    for symbol, own in known.items():
        stored = read_actions(folder / "actions" / f"{symbol}.csv", symbol)
        missing = implied_actions(history_of(symbol, own), stored).missing
        planned = replace(planned_actions(folder, symbol, missing, derived=missing), bars=own)
        # A file of actions would say that there were none, where adj_close may only not tell them.
        yield planned if missing else replace(planned, write=lambda: None)


def _comparisons(folder: Path, planned: Sequence[Planned]) -> Iterator[Comparison]:
    """Bars and actions of each symbol, as they would be afterwards, against each other."""
    for symbol in dict.fromkeys(plan.symbol for plan in planned if plan.bars is not None or plan.actions is not None):
        own = [plan for plan in planned if plan.symbol == symbol]
        bars = next((plan.bars for plan in own if plan.bars is not None), None)
        actions = next((plan.actions for plan in own if plan.actions is not None), None)
        bars = read_bars(folder / "prices" / f"{symbol}.csv") if bars is None else bars
        actions = read_actions(folder / "actions" / f"{symbol}.csv", symbol) if actions is None else actions
        if bars:
            yield compare(history_of(symbol, bars), actions)


_PLANS: Mapping[str, Callable[[ForeignFile, Path, Reading], Iterator[Planned]]] = {
    "prices": plan_prices,
    "actions": plan_actions,
    "news": plan_news,
    "filings": plan_filings,
    "macro": plan_macro,
    "holdings": plan_holdings,
    "commentary": plan_commentary,
}
"""Ways to read a file by the kinds of `paperdesk import`."""
