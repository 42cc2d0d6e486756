"""Import of prices, actions, news, filings, macro series, holdings and commentary from files of any origin into the
data folder.

Nothing is written unless every row of every kind is good, and bars and actions agree. Stored rows stay, except that a
bar or an action of the same date is replaced. Importing a file a second time changes nothing. import_files.toml has
the names of columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, tzinfo
from pathlib import Path

from connectors.files.foreign_rows import Row, column_names, foreign_rows
from connectors.files.holdings import holding_row, holdings_text, month_first, read_holdings, without_separators
from connectors.files.macro import MACRO_COLUMNS, macro_row, merged_macro
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
from connectors.files.reading import Reading
from connectors.files.rows import append_lines, json_line, malformed, number, write_text
from connectors.files.stamps import read_stamp, stamp_text, zone_named
from connectors.files.texts import COMMENTARY, FILINGS, NEWS, TextKind, form_of
from engine.domain.exchanges import LISTED, Exchanges
from engine.domain.fetched import FileImport, Imported
from engine.domain.macro import MacroObservation, MacroSeries
from engine.domain.market import ActionKind, CorporateAction, Dropped, FundHolding, Symbol, parse_symbol
from engine.errors import MalformedData, MissingData, UsageError
from engine.market.price_faults import price_faults, refuse_faults
from engine.market.trading_hours import FIRST_SESSION
from engine.ports import Calendar

_SHOWN = 3  # how many bad rows the one line of an error lists
_LOT = 100
"""Shares of a lot in which Chinese exchanges count the volume."""
_PRICE_CELLS = ("open", "high", "low", "close", "adj_close", "volume")

NO_ACTION = "no ex-date"
NO_HOLDING = "no ticker: cash, or a remark below the table"
NO_KIND = "neither a split nor a cash dividend"

CalendarFor = Callable[[Symbol], Calendar]


def import_file(
    request: FileImport, calendar_for: CalendarFor, now: datetime, exchanges: Exchanges = LISTED
) -> Sequence[Imported]:
    """Bring the kinds of data of one file into the folder, a file for each kind and symbol.

    Raises MalformedData over all bad rows, and where bars and actions contradict each other; MissingData for a file
    without rows; UsageError for an unknown field, kind of file or time zone, and rows that name no symbol.
    """
    zone = None if request.zone is None else zone_named(request.zone)
    wanted = tuple(map(parse_symbol, request.symbols))
    reading = Reading(calendar_for=calendar_for, exchanges=exchanges, now=now, zone=zone, currency=request.currency)
    planned: list[_Planned] = []
    for kind in request.kinds:
        foreign = _ForeignFile(request.file, kind, wanted, request.columns)
        planned += _PLANS[kind](foreign, request.folder, reading)
    _refuse_faults(request.folder, planned)
    for plan in planned:
        plan.write()
    return [plan.imported for plan in planned]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Planned:
    """One file as it will be: `bars` or `actions` of a symbol in it, and how it is written."""

    symbol: Symbol
    imported: Imported
    write: Callable[[], None]
    bars: Sequence[BarRow] | None = None
    actions: Sequence[CorporateAction] | None = None


def _refuse_faults(folder: Path, planned: Sequence[_Planned]) -> None:
    """Raise MalformedData where bars and actions, as they would be afterwards, contradict each other."""
    for symbol in dict.fromkeys(plan.symbol for plan in planned if plan.bars is not None or plan.actions is not None):
        own = [plan for plan in planned if plan.symbol == symbol]
        bars = next((plan.bars for plan in own if plan.bars is not None), None)
        actions = next((plan.actions for plan in own if plan.actions is not None), None)
        bars = read_bars(folder / "prices" / f"{symbol}.csv") if bars is None else bars
        actions = read_actions(folder / "actions" / f"{symbol}.csv", symbol) if actions is None else actions
        if bars:
            refuse_faults(price_faults(history_of(symbol, bars), actions), date.max)


class _ForeignFile:
    """Rows of one foreign file by symbol: good rows are passed on, bad ones collected, dropped ones counted."""

    def __init__(self, source: Path, kind: str, wanted: Sequence[Symbol], columns: Mapping[str, str]) -> None:
        self.kind = kind
        self.names = column_names(kind, columns)
        self._source = source
        self._wanted = wanted
        self._unit = "record" if source.suffix.lower() in (".json", ".parquet", ".pq") else "line"
        self._columns = {ours: theirs for ours, theirs in columns.items() if theirs and ours in self.names}
        self._counts: dict[Symbol, Counter[str]] = {}
        self._others = 0

    def each(self, take: Callable[[Symbol, Row], str | None]) -> Sequence[Symbol]:
        """Pass every row of a symbol to `take`, which returns the reason for dropping it, or raises ValueError for a
        bad one; the symbols that have rows.

        Raises MalformedData over all bad rows, MissingData for a file without rows of a wanted symbol.
        """
        bad: list[MalformedData] = []
        unseen = set(self._columns)
        for row in foreign_rows(self._source, self.names, bad):
            unseen -= row.values.keys()
            for symbol in self._symbols_of(row):
                counts = self._counts.setdefault(symbol, Counter())
                try:
                    why = take(symbol, row)
                except (ValueError, OverflowError) as problem:
                    bad.append(malformed(self._source, row.line, str(problem), self._unit))
                else:
                    counts.update([why] if why else [])
        for ours in sorted(unseen):
            raise UsageError(f"--map {ours}={self._columns[ours]}: {self._source} has no such column")
        self._refuse(bad)
        missing = [symbol for symbol in self._wanted if symbol not in self._counts]
        if missing or not self._counts:
            of = f" for {', '.join(missing)}" if missing else ""
            raise MissingData(f"{self._source} has no row{of}; check the file and --symbol")
        return list(self._counts)

    def dropped(self, symbol: Symbol) -> tuple[Dropped, ...]:
        """Dropped rows by reason; rows of other symbols count with the first one."""
        counts = self._counts[symbol]
        if self._others and symbol == next(iter(self._counts)):
            counts = counts + Counter({"another symbol": self._others})
        return tuple(Dropped(self._source.name, why, count) for why, count in sorted(counts.items()))

    def _symbols_of(self, row: Row) -> Sequence[Symbol]:
        """The symbols that a row is about, of those that are wanted. Files may hold several, told apart by a column."""
        named = row.values.get("symbol")
        if named is None:
            if len(self._wanted) != 1:
                raise UsageError(
                    f"{self._source}, {self._unit} {row.line} names no symbol: say whose rows they are (--symbol)"
                )
            return self._wanted
        found = dict.fromkeys(map(_folder_symbol, named.split(",")))
        wanted = [symbol for symbol in found if symbol and (not self._wanted or symbol in self._wanted)]
        self._others += not wanted
        return wanted

    def _refuse(self, bad: Sequence[MalformedData]) -> None:
        if len(bad) == 1:
            raise bad[0]
        if bad:
            # The file is named once; each row keeps its line and its problem.
            details = [str(error).removeprefix(f"{self._source}, ") for error in bad[:_SHOWN]]
            more = f"; and {len(bad) - _SHOWN} more" if len(bad) > _SHOWN else ""
            raise MalformedData(
                f"{self._source}: {len(bad)} bad rows, nothing was imported: {'; '.join(details)}{more}"
            )


def _folder_symbol(text: str) -> Symbol | None:
    """A symbol as the data folder has it; Shanghai is .SS here and .SH at some vendors. None for what cannot be one."""
    try:
        symbol = parse_symbol(text)
    except UsageError:
        return None
    return f"{symbol.removesuffix('.SH')}.SS" if symbol.endswith(".SH") else symbol


def _plan_prices(foreign: _ForeignFile, folder: Path, reading: Reading) -> Iterator[_Planned]:
    """Daily bars; rows may be in any order."""
    new: dict[Symbol, dict[int, BarRow]] = {}
    sessions: dict[Symbol, _Sessions] = {}

    def add(symbol: Symbol, row: Row) -> None:
        day = reading.day(_cell(row, "date"), symbol)
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
        yield _Planned(
            symbol=symbol,
            imported=Imported(path, more, len(added) - more - same, same, foreign.dropped(symbol)),
            write=_writing(path, prices_text(bars), needed=same < len(added)),
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
    lots = _cell(row, "lots")
    if not lots or _cell(row, "volume"):
        return _cell(row, "volume")
    return str(number("volume", lots) * _LOT) if symbol.endswith((".SS", ".SZ", ".BJ")) else lots


def _plan_actions(foreign: _ForeignFile, folder: Path, reading: Reading) -> Iterator[_Planned]:
    """Splits and dividends, of rows with ex_date, kind and value or with columns for dividends and splits."""
    new: dict[Symbol, dict[tuple[date, ActionKind], CorporateAction]] = {}

    def add(symbol: Symbol, row: Row) -> str | None:
        known = new.setdefault(symbol, {})
        if not _cell(row, "ex_date"):
            return NO_ACTION
        day = reading.day(_cell(row, "ex_date"), symbol)
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
        yield _Planned(
            symbol=symbol,
            imported=Imported(path, more, len(added) - more - same, same, foreign.dropped(symbol)),
            write=_writing(path, actions_text(merged), needed=needed),
            actions=merged,
        )


def _writing(path: Path, text: str, *, needed: bool) -> Callable[[], None]:
    return lambda: write_text(path, text) if needed else None


def _actions_in(row: Row, symbol: Symbol, day: str, reading: Reading) -> Iterator[CorporateAction]:
    if "kind" in row.values:
        kind = _cell(row, "kind").lower()
        value = reading.price("value", row, symbol) if kind == ActionKind.DIVIDEND else _ratio(_cell(row, "value"))
        yield action_row(symbol, [day, kind, value])
        return
    # A price file says zero, or nothing, on the days without a dividend, and zero or one on those without a split.
    dividend = _cell(row, "dividend")
    if dividend and number("dividend", dividend) != 0:
        yield action_row(symbol, [day, ActionKind.DIVIDEND, reading.price("dividend", row, symbol)])
    split = _split_in(row)
    if split and number("split", split) not in (0, 1):
        yield action_row(symbol, [day, ActionKind.SPLIT, split])


def _split_in(row: Row) -> str:
    """New shares for an old one: a ratio, a pair of shares, or the shares that are given for each on top."""
    if new := _cell(row, "new_shares"):
        return _ratio(f"{new}:{_cell(row, 'old_shares')}")
    if bonus := _cell(row, "bonus"):
        return str(1 + number("bonus", bonus))
    return _ratio(_cell(row, "split"))


def _ratio(text: str) -> str:
    """A number, with a split written 4:1 as 4."""
    new, colon, old = text.partition(":")
    if not colon:
        return text
    per_old = number("split", old)
    if per_old <= 0:
        raise ValueError(f"split {text} is no ratio; write new shares:old shares, such as 4:1")
    return str(number("split", new) / per_old)


def _plan_news(foreign: _ForeignFile, folder: Path, reading: Reading) -> Iterator[_Planned]:
    """News. An item without a date or text is dropped and counted."""
    always = ("date", "time", "headline", "summary", "source", "sentiment")
    return _plan_texts(foreign, folder / "news", NEWS, always, reading)


def _plan_filings(foreign: _ForeignFile, folder: Path, reading: Reading) -> Iterator[_Planned]:
    """Filings; drops as news."""
    return _plan_texts(foreign, folder / "filings", FILINGS, ("date", "form", "summary"), reading)


def _plan_texts(
    foreign: _ForeignFile, folder: Path, kind: TextKind, always: Sequence[str], reading: Reading
) -> Iterator[_Planned]:
    """Records of a kind that are new; names in `always` are written where they are blank too."""
    names = [name for name in foreign.names if name != "symbol"]
    existing: dict[Symbol, Counter[tuple[str | None, ...]]] = {}
    lines: dict[Symbol, list[str]] = {}
    same = Counter[Symbol]()

    def add(symbol: Symbol, row: Row) -> str | None:
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
        yield _Planned(
            symbol=symbol,
            imported=Imported(path, len(new), 0, same[symbol], foreign.dropped(symbol)),
            write=_appending(path, new),
        )


def _appending(path: Path, lines: Sequence[str]) -> Callable[[], None]:
    return lambda: append_lines(path, lines)


def _stored(path: Path, kind: str, names: Sequence[str]) -> Counter[tuple[str | None, ...]]:
    """The items of a file of the data folder, by content. Raises MalformedData."""
    bad: list[MalformedData] = []
    rows = foreign_rows(path, column_names(kind, {}), bad) if path.exists() else ()
    found = Counter(tuple(row.values.get(name) for name in names) for row in rows)
    if bad:
        raise bad[0]
    return found


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
            raise ValueError(f"{clock!r} is a time without a zone; say which it is in with --tz ZONE, such as UTC")
        moment = datetime.combine(day, of_day, zone).astimezone(UTC)
        stamped |= {"time": None, kind.first[0]: f"{moment.replace(tzinfo=None).isoformat()}Z"}
    return stamped


def _time_of_day(text: str) -> time:
    try:
        return time.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text[:40]!r} is no time of day; write HH:MM:SSZ, or null") from None


def _cell(row: Row, name: str) -> str:
    return row.values.get(name) or ""


def _plan_commentary(foreign: _ForeignFile, folder: Path, reading: Reading) -> Iterator[_Planned]:
    """Commentary of funds; drops as news."""
    return _plan_texts(foreign, folder / "commentary", COMMENTARY, ("date", "source", "text"), reading)


def _plan_macro(foreign: _ForeignFile, folder: Path, reading: Reading) -> Iterator[_Planned]:
    """Figures of macro series, each with its release: without that it could be read too early, so it is refused."""
    new: dict[Symbol, list[MacroObservation]] = {}

    def add(name: Symbol, row: Row) -> None:
        if not _cell(row, "known_from"):
            raise ValueError("there is no known_from; write the day or the time of the release")
        stamps = {column: stamp_text(_cell(row, column), reading.zone) for column in ("date", "known_from")}
        new.setdefault(name, []).append(macro_row([stamps.get(one) or _cell(row, one) for one in MACRO_COLUMNS]))

    for name in foreign.each(add):
        path = folder / "macro" / f"{name}.csv"
        try:
            series = MacroSeries.of(name, new[name])
            text, more = merged_macro(path, series)
        except ValueError as problem:
            raise MalformedData(f"{name}: {problem}") from None
        yield _Planned(
            symbol=name,
            imported=Imported(path, more, 0, len(series.observations) - more, foreign.dropped(name)),
            write=_writing(path, text, needed=more > 0),
        )


def _plan_holdings(foreign: _ForeignFile, folder: Path, reading: Reading) -> Iterator[_Planned]:
    """Holdings of funds by day."""
    new: dict[Symbol, dict[tuple[date, Symbol], FundHolding]] = {}

    def add(fund: Symbol, row: Row) -> str | None:
        if not _cell(row, "holding"):
            return NO_HOLDING
        day = stamp_text(month_first(_cell(row, "date")), reading.zone)
        shares = without_separators(_cell(row, "shares"))
        held = holding_row([day, _cell(row, "holding"), shares, _cell(row, "weight")])
        if new.setdefault(fund, {}).setdefault((held.date, held.symbol), held) is not held:
            raise ValueError(f"{held.symbol} stands twice on {held.date}; keep one row")
        return None

    for fund in foreign.each(add):
        path, added = folder / "holdings" / f"{fund}.csv", new[fund]
        old = {(held.date, held.symbol): held for held in read_holdings(path)}
        same, more = sum(old.get(key) == held for key, held in added.items()), len(added.keys() - old.keys())
        yield _Planned(
            symbol=fund,
            imported=Imported(path, more, len(added) - more - same, same, foreign.dropped(fund)),
            write=_writing(path, holdings_text((old | added).values()), needed=same < len(added)),
        )


_PLANS: Mapping[str, Callable[[_ForeignFile, Path, Reading], Iterator[_Planned]]] = {
    "prices": _plan_prices,
    "actions": _plan_actions,
    "news": _plan_news,
    "filings": _plan_filings,
    "macro": _plan_macro,
    "holdings": _plan_holdings,
    "commentary": _plan_commentary,
}
"""Ways to read a file by the kinds of `paperdesk import`."""
