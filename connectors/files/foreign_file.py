"""One foreign file, row by row, and the files of the data folder that become of it."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import lru_cache
from pathlib import Path

from connectors.files.columns import DATES, MONEY, NO_MONEY, NUMBERS, SUFFIXES, column_names, plain_name
from connectors.files.foreign_rows import ForeignRows, Row, foreign_rows, unit_of
from connectors.files.foreign_tables import NoHeader
from connectors.files.prices import BarRow
from connectors.files.reading import Reading
from connectors.files.rows import append_lines, malformed
from connectors.files.stamps import day_by_order, iso_stamp
from engine.domain.fetched import FileFormat, FileImport, Imported
from engine.domain.market import CorporateAction, Dropped, Symbol, is_crypto, parse_symbol, slashless_pair
from engine.errors import MalformedData, MissingData, UsageError
from engine.settings.places import write_whole

POINT, COMMA = ".", ","

_BLANK = frozenset(
    ("", "-", "--", "---", ".", "..", "n/a", "n.a.", "na", "#n/a", "nan", "nat", "none", "null", "nil", "k.a.")
)
_DASHES = str.maketrans("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-------")
_APART = re.compile("[ '\u2019\u02bc]")
_UNITS = {
    **dict.fromkeys(("k", "tsd", "千"), 3),
    **dict.fromkeys(("m", "mn", "mio", "mln", "million", "百万"), 6),
    **dict.fromkeys(("b", "bn", "mrd", "mld", "billion", "十亿"), 9),
    **dict.fromkeys(("t", "tn", "trillion"), 12),
    **dict.fromkeys(("万", "萬"), 4),
    **dict.fromkeys(("亿", "億"), 8),
}
"""Powers of ten that are written after a number."""
_SIMPLE = re.compile(r"-?\d+(\.\d+)?", re.ASCII)
_SIGNED = {"€": "EUR", "£": "GBP", "₹": "INR", "₩": "KRW", "₺": "TRY", "zł": "PLN", "p": "GBp"}
"""Currencies that a sign tells; $ and ¥ are those of several countries."""
_CURRENCY = r"(?:(?:US|HK|CA|A|C|S|R)?\$|[¥€£₹₩₺]|zł|元|円|원|(?:[A-Z]{2}[A-Zp]|p)(?![A-Za-z]))"
_NUMBER = re.compile(
    rf"(?P<open>\()?\s*(?P<sign>[+-])?\s*(?P<before>{_CURRENCY})?\s*(?P<inner>[+-])?"
    r"(?P<body>\d[\d.,'\u2019\u02bc ]*|[.,]\d+)(?P<power>[eE][+-]?\d+)?"
    rf"\s*(?P<unit>(?i:{'|'.join(sorted(_UNITS, key=len, reverse=True))})\.?)?\s*(?P<percent>%)?"
    rf"\s*(?P<after>{_CURRENCY})?\s*(?(open)\))"
)


@dataclass(frozen=True, slots=True)
class Numerals:
    """The writing of numbers in a file.

    decimal: POINT or COMMA.
    doubt: a cell that may be read in two ways, where none of the file tells in which; empty without one.
    """

    decimal: str = POINT
    doubt: str = ""

    @classmethod
    def of(cls, prices: Sequence[str], sizes: Sequence[str], *, comma_likely: bool) -> Numerals:
        """Of a file's cells: prices, and whole numbers. A mark is that of decimals unless it parts groups of three
        figures, and the last one of two kinds; where prices may be read in both ways they are in doubt."""
        told = next(filter(None, (_decimal_of(_body(cell)) for cell in (*prices, *sizes))), None)
        if told is not None:
            return cls(told)
        doubt = {mark: cell for cell in reversed(prices) for mark in (COMMA, POINT) if mark in _body(cell)}
        if comma_likely and COMMA in doubt:
            return cls(COMMA)
        return cls(POINT, doubt.get(POINT if comma_likely else COMMA, ""))

    def plain(self, text: str) -> str:
        """A number as Decimal reads it; empty for a word that stands for none, any other text as it is."""
        if self.decimal == POINT and _SIMPLE.fullmatch(text):
            return text
        normal = _normal(text)
        if normal.casefold() in _BLANK:
            return ""
        found = _NUMBER.fullmatch(normal)
        other = COMMA if self.decimal == POINT else POINT
        whole, mark, rest = _APART.sub(other, (found["body"] if found else "").strip()).partition(self.decimal)
        if found is None or (mark and not rest.isdigit()) or not _grouped(whole, other):
            return text
        plain = (whole.replace(other, "") or "0") + (f".{rest}" if mark else "") + (found["power"] or "")
        if found["open"] or "-" in (found["sign"], found["inner"]):
            plain = f"-{plain}"
        power = _UNITS.get((found["unit"] or "").rstrip(".").casefold(), 0)
        return f"{Decimal(plain).scaleb(power):f}" if power else plain


def currency_sign(text: str) -> str:
    """The currency that stands at a number, three letters; empty without one that is told."""
    found = _NUMBER.fullmatch(_normal(text))
    sign = (found["before"] or found["after"] or "") if found else ""
    return _SIGNED.get(sign, sign if sign.isascii() and sign.isalpha() else "")


def _normal(text: str) -> str:
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text).translate(_DASHES)
    return plain.strip()


def _body(cell: str) -> str:
    """The figures and marks of a number, without what parts its thousands otherwise."""
    found = None if cell.isdigit() else _NUMBER.fullmatch(_normal(cell))
    return _APART.sub("", found["body"]) if found else ""


def _grouped(whole: str, mark: str) -> bool:
    """True where a mark parts groups of three figures, or of two before the last, as in India."""
    first, *groups = whole.split(mark)
    return not groups or (0 < len(first) <= 3 and len(groups[-1]) == 3 and all(len(one) in (2, 3) for one in groups))


def _decimal_of(body: str) -> str | None:
    """The decimal mark of a number, where only one reading is possible."""
    marks = [one for one in body if one in ".,"]
    if not marks:
        return None
    kinds, last = set(marks), marks[-1]
    if len(kinds) == 2:
        return last
    if len(marks) > 1:
        return COMMA if last == POINT else POINT
    whole, _, rest = body.partition(last)
    return last if len(rest) != 3 or not 0 < len(whole) <= 3 or whole == "0" else None


_SHOWN = 3  # how many bad rows the one line of an error lists
_LISTED = 12
"""Columns that are listed where none of a file's rows could be used."""
_OF_SHARES = ("prices", "actions", "news", "filings")
"""Kinds whose rows are about shares and coins, not about series and funds."""
_SIZES = ("volume", "lots", "turnover")
"""Numbers that are whole, so that a comma in them parts thousands."""
_NAME, _TICKER = "name", re.compile(r"[A-Z0-9.^-]{1,8}")
_OWN = {
    "prices": frozenset(("open", "high", "low", "close", "adj_close")),
    "news": frozenset(("headline", "summary")),
    "filings": frozenset(("summary",)),
}
"""Fields of which a record of a kind has one at least; without any it says something else."""
_FOR_ALL = frozenset(("symbol", "currency", *DATES))
OTHER_SYMBOL, NO_SYMBOL = "another symbol", "no symbol"


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One file of the data folder as it will be.

    symbol: whose rows it has
    imported: rows that are new, changed and the same, and those that were dropped
    write: writes it
    bars: in it, of a file of prices
    actions: in it, of a file of corporate actions
    own_bars: those of the imported file alone
    """

    symbol: Symbol
    imported: Imported
    write: Callable[[], None]
    bars: Sequence[BarRow] | None = None
    actions: Sequence[CorporateAction] | None = None
    own_bars: Sequence[BarRow] = ()


class ForeignFile:
    """Rows of one foreign file by symbol: good rows are passed on, bad ones collected, dropped ones counted.

    notes: what was passed over, and what a person should know.
    """

    def __init__(self, request: FileImport, kind: str, wanted: Sequence[Symbol], reading: Reading) -> None:
        self.kind = kind
        self.names = dict(column_names(kind, request.columns))
        self.notes: list[str] = []
        self._source = request.file or Path()
        self._symbol = foreign_symbol if kind in _OF_SHARES else _series_name
        self._wanted = wanted
        self._unit = unit_of(self._source)
        self._chosen = {ours: theirs for ours, theirs in request.columns.items() if theirs and ours in self.names}
        self._reading = reading
        self._counts: dict[Symbol, Counter[str]] = {}
        self._others: Counter[str] = Counter()
        self._file = self._read(request)
        self._names_symbols = any(row.values.get("symbol") for row in self._file.rows)
        self.taken = self._taken_for(request)

    def each(self, take: Callable[[Symbol, Row], str | None]) -> Sequence[Symbol]:
        """Pass every row of a symbol to `take`, with its dates as ISO 8601 and its numbers as Decimal reads them; it
        returns the reason for dropping the row, or raises ValueError for a bad one. The symbols that have rows.

        Raises MalformedData over all bad rows, and where every row was dropped; MissingData for a file without rows of
        a wanted symbol.
        """
        bad = list(self._file.read.bad)
        used = 0
        for row in self._file.rows:
            for symbol in self._symbols_of(row):
                counts = self._counts.setdefault(symbol, Counter())
                try:
                    why = take(symbol, self._plain(row, symbol))
                except (ValueError, OverflowError) as problem:
                    bad.append(malformed(self._source, row.line, str(problem), self._unit))
                else:
                    counts.update([why] if why else [])
                    used += not why
        self._refuse(sorted(bad, key=_line))
        missing = [symbol for symbol in self._wanted if symbol not in self._counts]
        if missing or not self._counts:
            of = f" for {', '.join(missing)}" if missing else ""
            has = ", ".join(list(self._others)[:_LISTED])
            raise MissingData(
                f"{self._source} has no row{of}{f' (it has {has})' if has else ''}; check the file and --symbol"
            )
        if not used:
            why = ", ".join(dict.fromkeys(why for counts in self._counts.values() for why in counts))
            raise MalformedData(f"{self._source}: every row was dropped ({why}); {self._columns_told()}")
        return list(self._counts)

    def dropped(self, symbol: Symbol) -> tuple[Dropped, ...]:
        """Dropped rows by reason; rows of other symbols count with the first one."""
        counts = self._counts[symbol]
        if symbol == next(iter(self._counts)):
            nobody = self._others[""]
            counts = counts + Counter({OTHER_SYMBOL: self._others.total() - nobody, NO_SYMBOL: nobody})
        return tuple(Dropped(self._source.name, why, count) for why, count in sorted(counts.items()))

    def unread_money(self, read: Collection[str]) -> Iterator[str]:
        """Notes on columns with amounts other than zero that may be money, of which none is among those `read`."""
        for column in self._theirs:
            name = plain_name(column)
            if column in read or name in NO_MONEY or name.endswith("date"):
                continue
            texts = [self._numerals.plain(str(row.theirs.get(column) or "0")) for row in self._all]
            amounts = [_amount(text or "0") for text in texts]
            paid = [at for at, amount in enumerate(amounts) if amount and not (amount == 1 and "split" in name)]
            rare = len(paid) <= len(amounts) // 2 and None not in amounts
            if paid and (rare or any(word in name for word in MONEY)):
                where = f"{self._unit} {self._all[paid[0]].line}: {texts[paid[0]][:20]}"
                yield (
                    f"column {column} was not read, but has amounts in {len(paid)} of {len(amounts)} rows ({where}): "
                    f"run `import actions` on this file too, or map the column with --map dividend={column}"
                )

    def need(self, fields: Sequence[str], what: str) -> None:
        """Raise MissingData where a file has none of some fields."""
        if self._theirs and not any(ours in self._file.columns for ours in fields):
            raise MissingData(f"{self._source} has no column of {what}; {self._columns_told()}")

    @property
    def read_columns(self) -> Sequence[str]:
        """The file's columns that are read."""
        return tuple(self._file.columns.values())

    def _read(self, request: FileImport) -> ForeignRows:
        """The file's rows under our names. Raises as foreign_rows, UsageError for a chosen column that is not there,
        MissingData where there is no row of the kind, with what there is instead."""
        self.names = dict(column_names(self.kind, request.columns))
        if self.kind == "prices" and "volume" not in self._chosen:
            coins = [one.partition("-")[0].lower() for one in self._wanted if is_crypto(one)]
            self.names["volume"] = (*self.names["volume"], *(f"volume_{coin}" for coin in coins))
        try:
            file = foreign_rows(self._source, self.names, header=request.header)
        except NoHeader:
            if not (self._chosen and all(map(str.isdigit, self._chosen.values()))):
                raise
            file = foreign_rows(self._source, self.names, header=False)
        for ours in sorted(self._chosen.keys() - file.columns.keys()):
            if file.rows:
                raise UsageError(f"--map {ours}={self._chosen[ours]}: {self._source} has no such column")
        if "symbol" not in self._chosen and _has_names_of_companies(file):
            return self._read(replace(request, columns={**request.columns, "symbol": ""}))
        self.notes += file.read.notes
        self._all, self._theirs = file.rows, list(dict.fromkeys(name for row in file.rows for name in row.theirs))
        known = [row for row in file.rows if self.kind not in _OWN or row.values.keys() & _OWN[self.kind]]
        if not any(row.values.keys() - _FOR_ALL for row in known) and not file.read.bad:
            said = file.read.message or "; ".join(file.read.notes)
            told = (f"it says: {said!r}" if said else "", self._columns_told() if self._theirs else "")
            raise MissingData("; ".join(filter(None, (f"{self._source} has no row of {self.kind}", *told))))
        return replace(file, rows=known)  # Yahoo's dividends lie among its prices

    def _taken_for(self, request: FileImport) -> FileFormat:
        """The reading of the file. Raises MalformedData where that cannot be told."""
        numbers = [ours for ours in self._file.columns if ours in NUMBERS]
        cells = [(ours in _SIZES, text) for row in self._file.rows for ours in numbers if (text := cell(row, ours))]
        prices, sizes = ([text for is_size, text in cells if is_size is of] for of in (False, True))
        self._numerals = Numerals.of(prices, sizes, comma_likely=self._file.read.semicolons)
        if request.decimal is not None:
            self._numerals = Numerals(POINT if request.decimal == "point" else COMMA)
        if self._numerals.doubt:
            raise MalformedData(
                f"{self._source}: {self._numerals.doubt!r} may have a thousands separator or a decimal mark; specify "
                "with --decimal point or --decimal comma"
            )
        self._order = request.dates or self._told_order()
        return FileFormat(
            kind=self.kind,
            rows=len(self._file.rows),
            header=self._file.read.header,
            columns=self._file.columns,
            unread=tuple(one for one in self._theirs if one not in self.read_columns),
            dates=self._order,
            decimal="point" if self._numerals.decimal == POINT else "comma",
            zone=request.zone,
        )

    def _columns_told(self) -> str:
        return f"its columns are {', '.join(self._theirs[:_LISTED])}: name them with --map FIELD=COLUMN"

    def _told_order(self) -> str | None:
        """The order of year, month and day that fits all rows: there is such a day, and the market of the symbol was
        open and is over on it. None where no date needs one. Raises MalformedData where two fit."""
        stamps: dict[str, tuple[Row, dict[str, date]]] = {}
        for row in self._file.rows:
            for ours in DATES:
                if (text := row.values.get(ours)) and text not in stamps and (days := day_by_order(text)):
                    stamps[text] = row, days
        if not stamps:
            return None
        fit = [order for order in ("mdy", "dmy", "ymd") if all(order in days for _, days in stamps.values())]
        if self.kind == "holdings" and "mdy" in fit:
            return "mdy"  # as funds in the United States publish them
        if len(fit) > 1:
            fit = [one for one in fit if all(self._can_be(row, days[one]) for row, days in stamps.values())] or fit
        if len({tuple(days[one] for _, days in stamps.values()) for one in fit}) > 1:
            text, (row, days) = next((text, it) for text, it in stamps.items() if len({it[1][one] for one in fit}) > 1)
            either = " or ".join(str(days[one]) for one in fit)
            raise MalformedData(
                f"{self._source}, {self._unit} {row.line}: {text!r} may be {either}, as all dates of the file; say in "
                f"which order they are with --dates {' or --dates '.join(fit)}"
            )
        return fit[0] if fit else None

    def _can_be(self, row: Row, day: date) -> bool:
        if day > self._reading.now.date():
            return False
        if self.kind not in ("prices", "actions"):
            return True
        try:
            return all(self._reading.was_open(day, symbol) for symbol in self._named(row))
        except UsageError:
            return True

    def _plain(self, row: Row, symbol: Symbol) -> Row:
        values = dict(row.values)
        for ours, text in row.values.items():
            if text and ours in NUMBERS:
                plain = self._numerals.plain(text)
                values[ours] = plain or None
                if plain != text and (sign := currency_sign(text)):
                    values["currency"] = values.get("currency") or sign
            elif text and ours in DATES:
                values[ours] = iso_stamp(text, self._order)
        own = next((label for name, label in row.sentiments.items() if self._is(name, symbol)), None)
        return replace(row, values=values | ({"sentiment": own} if own else {}))

    def _symbols_of(self, row: Row) -> Sequence[Symbol]:
        """The symbols that a row is about, of those that are wanted; the others are counted."""
        found = self._named(row)
        if not found:
            names = symbol_names(row.values.get("symbol") or "")
            self._others.update([names[0] if names else ""])
        return found

    def _named(self, row: Row) -> Sequence[Symbol]:
        """The wanted symbols that a row names, all that it names where none is said to be wanted. Files may hold
        several, told apart by a column. Raises UsageError where there is none and nobody says whose row it is."""
        named = row.values.get("symbol")
        if named is None and ("symbol" not in row.values or not self._names_symbols):
            if len(self._wanted) != 1:
                raise UsageError(f"{self._source}, {self._unit} {row.line} names no symbol: give one with --symbol")
            return self._wanted
        names = symbol_names(named or "")
        if self._wanted:
            return [symbol for symbol in self._wanted if any(self._is(name, symbol) for name in names)]
        return [symbol for symbol in dict.fromkeys(map(self._symbol, names)) if symbol is not None]

    def _is(self, name: str, symbol: Symbol) -> bool:
        """True where a name in the file is a symbol of ours; one without a suffix is whose the one wanted says."""
        alone = len(self._wanted) == 1 and is_without_suffix(name, symbol)
        return alone or self._symbol(name) in (symbol, self._symbol(symbol))

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


def writing(path: Path, text: str, *, needed: bool) -> Callable[[], None]:
    """Replace a file by a text, where that is needed."""
    return lambda: write_whole(path, text) if needed else None


def appending(path: Path, lines: Sequence[str]) -> Callable[[], None]:
    """Append lines to a file."""
    return lambda: append_lines(path, lines)


def _series_name(text: str) -> Symbol | None:
    """The name of a series or a fund; None for what cannot be one."""
    try:
        return parse_symbol(text)
    except UsageError:
        return None


def _has_names_of_companies(file: ForeignRows) -> bool:
    """True where a column called name would be that of symbols, and has others."""
    if plain_name(file.columns.get("symbol", "")) != _NAME:
        return False
    return not all(_TICKER.fullmatch(row.values.get("symbol") or "") for row in file.rows)


def _amount(text: str) -> Decimal | None:
    """A number as Decimal; None for other text."""
    try:
        return Decimal(text)
    except ArithmeticError:
        return None


def _line(error: MalformedData) -> int:
    found = re.search(r", (?:line|record) (\d+):", str(error))
    return int(found[1]) if found else 0


def cell(row: Row, name: str) -> str:
    """The text of a column, empty where it is not there."""
    return row.values.get(name) or ""


_COINS = "crypto"
_DIGITS = {"HK": 4, "SS": 6, "SZ": 6, "BJ": 6, "T": 4}
"""Digits of the symbols of an exchange, where zeros stand before smaller numbers."""
_BEFORE = re.compile(r"([A-Z]+):(.+)|(SH|SZ|BJ|HK|US|JP)\.([A-Z0-9.]+)|(SH|SZ|BJ)(\d{6})")
_BEHIND = re.compile(r"(.+)[. ]([A-Z]+)")
_CLASS = re.compile(r"([A-Z]{1,5})[-/ _.]([A-Z])")


@lru_cache(maxsize=1024)  # the rows of a file name the same few
def symbol_names(text: str) -> tuple[str, ...]:
    """The names in a cell with one or several, also as lists are written: AAPL,MSFT and ['AAPL', 'MSFT']."""
    if re.fullmatch(r"[A-Z.]+( [A-Z.]+)+", text) and foreign_symbol(text) is None:
        return tuple(text.split())
    return tuple(name for one in re.split(r"[,;|]", text) if (name := one.strip(" \t[](){}'\"")))


@lru_cache(maxsize=1024)
def foreign_symbol(text: str) -> Symbol | None:
    """The symbol of the data folder for one that a vendor writes; None for what cannot be one.

    AAPL.US, US.AAPL, NASDAQ:AAPL and AAPL.O are AAPL; sh600519 and 600519.XSHG are 600519.SS; BTCUSD, BTC/USD and
    BTC_USD are BTC-USD; BRK-B and BRK/B are BRK.B.
    """
    name, suffix = _parted(unicodedata.normalize("NFKC", text).strip().lstrip("$").upper().removesuffix(" EQUITY"))
    pair = slashless_pair(name.replace("XBT", "BTC").replace("_", "-")) if suffix in (None, _COINS) else None
    if pair is not None or suffix == _COINS:
        return pair
    if name.isdigit() and suffix in _DIGITS:
        name = f"{int(name):0{_DIGITS[suffix]}d}"
    try:
        found = parse_symbol(_CLASS.sub(r"\1.\2", name) if _CLASS.fullmatch(name) else name)
    except UsageError:
        return None
    return f"{found}.{suffix}" if suffix else found


def _parted(name: str) -> tuple[str, str | None]:
    """A symbol without its exchange, and the suffix of that; None where no known one is named."""
    if before := _BEFORE.fullmatch(name):
        market, rest = [one for one in before.groups() if one is not None]
        if market in SUFFIXES:
            return rest, SUFFIXES[market]
    elif (behind := _BEHIND.fullmatch(name)) and behind[2] in SUFFIXES:
        return behind[1], SUFFIXES[behind[2]]
    return name, None


def is_without_suffix(text: str, symbol: Symbol) -> bool:
    """True for a symbol of digits that has lost its suffix, and perhaps its zeros, and for a pair of any coin without
    its dash, or without its quote currency."""
    stem, _, _ = symbol.partition("-" if is_crypto(symbol) else ".")
    if is_crypto(symbol):
        return re.sub(r"[-/_ ]", "", _parted(text.upper())[0]) in (stem, symbol.replace("-", ""))
    return text.strip().isdigit() and stem.isdigit() and int(text) == int(stem)
