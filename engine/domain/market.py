"""Market data: prices by session, corporate actions, news and filings, each with the time at which it became known.

Prices are kept as whole nano-units (1e-9 of the quote currency) in flat arrays: exact like Decimal, small like floats.
Money leaves this module as Decimal.

A symbol that a desk knows of, for those who search one.

Exchanges by the suffix of a symbol: the trading calendar, the currency and the time zone that it is quoted in.

A symbol without a suffix is a share of the United States, as are share classes (BRK.B), units and warrants. A pair
such as BTC-EUR trades around the clock in its quote currency. exchanges.toml holds the suffixes that are known; the
configuration adds others ([calendars.SUFFIX]).
"""

from __future__ import annotations

import re
import tomllib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import ROUND_HALF_EVEN, Decimal
from enum import StrEnum
from functools import cache
from itertools import count
from math import isnan
from pathlib import Path
from typing import Any

from engine.errors import UsageError
from engine.program_files import program_text

Symbol = str

NANO = 1_000_000_000
_NANO_DECIMAL = Decimal(NANO)
UNKNOWN = -1
"""Value of an unknown figure in a column of nano-units."""
CORRECT_SYMBOLS = "; correct desk.symbols or --symbols"
"""The advice after a symbol that a service does not have, where a command was given symbols."""


def to_nano(price: Decimal) -> int:
    """Whole nano-units of a price; digits beyond the ninth decimal are rounded half to even."""
    return int((price * _NANO_DECIMAL).to_integral_value(ROUND_HALF_EVEN))


def from_nano(nano: int) -> Decimal:
    """The exact Decimal of whole nano-units, without trailing zeros after the point."""
    return Decimal(nano) / _NANO_DECIMAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """Prices of one session in the quote currency.

    session: the trading day.
    open, high, low, close: as traded.
    adj_close: corrected for later splits and dividends; None where unknown.
    volume: shares; None where unknown.
    """

    session: date
    open: Decimal
    high: Decimal
    low: Decimal
    close: Decimal
    adj_close: Decimal | None = None
    volume: Decimal | None = None


PRICES = ("open", "high", "low", "close")
COLUMNS = ("sessions", *PRICES, "adj_close", "volume")
"""The columns of a price history."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PriceHistory:
    """Bars of a symbol by session, strictly increasing, as columns of equal length.

    sessions: proleptic ordinals (`date.toordinal`).
    open, high, low, close: nano-units.
    adj_close: nano-units, UNKNOWN where not known.
    volume: shares; NaN where not known.
    impossible: rows of its file that are left out because no market can have made them, each with the reason.
    rounded: sessions whose prices lay outside of the day's range by rounding, and were put onto its bounds.
    """

    symbol: Symbol
    sessions: array[int]
    open: array[int]
    high: array[int]
    low: array[int]
    close: array[int]
    adj_close: array[int]
    volume: array[float]
    impossible: Mapping[date, str] = field(default_factory=dict)
    rounded: tuple[date, ...] = ()
    _closes: list[Decimal | None] = field(default_factory=list, init=False, repr=False)

    @classmethod
    def of(cls, symbol: Symbol, bars: Iterable[Bar]) -> PriceHistory:
        """Build columns from bars in order; the caller has checked them (see connectors.files)."""
        rows = list(bars)
        prices: dict[str, Any] = {name: array("q", [to_nano(getattr(b, name)) for b in rows]) for name in PRICES}
        return cls(
            symbol=symbol,
            sessions=array("q", (b.session.toordinal() for b in rows)),
            **prices,
            adj_close=array("q", (UNKNOWN if b.adj_close is None else to_nano(b.adj_close) for b in rows)),
            volume=array("d", (float("nan") if b.volume is None else float(b.volume) for b in rows)),
        )

    def __len__(self) -> int:
        return len(self.sessions)

    def __iter__(self) -> Iterator[Bar]:
        return (self.bar(i) for i in range(len(self)))

    def session(self, index: int) -> date:
        """The session at a row; negative rows count from the end."""
        return date.fromordinal(self.sessions[index])

    def close_at(self, row: int) -> Decimal:
        """The close of a row, counted from the first, made once: every book that is valued at it has the same one."""
        known = self._closes
        if row >= len(known):  # also of a market that grows in place
            known.extend([None] * (len(self.close) - len(known)))
        price = known[row]
        if price is None:
            price = known[row] = from_nano(self.close[row])
        return price

    def bar(self, index: int) -> Bar:
        """The bar at a row; negative rows count from the end."""
        adjusted, volume = self.adj_close[index], self.volume[index]
        return Bar(
            session=self.session(index),
            open=from_nano(self.open[index]),
            high=from_nano(self.high[index]),
            low=from_nano(self.low[index]),
            close=from_nano(self.close[index]),
            adj_close=None if adjusted == UNKNOWN else from_nano(adjusted),
            volume=None if isnan(volume) else Decimal(repr(volume)).normalize(),
        )

    def index(self, session: date) -> int | None:
        """The row of a session, or None where there is no bar for it."""
        ordinal = session.toordinal()
        row = bisect_left(self.sessions, ordinal)
        return row if row < len(self.sessions) and self.sessions[row] == ordinal else None

    def rows_through(self, session: date) -> int:
        """Number of rows dated at or before a session."""
        return bisect_right(self.sessions, session.toordinal())

    def slice(self, start: int, stop: int) -> PriceHistory:
        """The rows from start (included) to stop (excluded), as a history of its own."""
        return PriceHistory(symbol=self.symbol, **{name: getattr(self, name)[start:stop] for name in COLUMNS})

    def repriced(self, price: Callable[[int, int], int], rows: int | None = None) -> PriceHistory:
        """The same bars with every open, high, low and close computed from its nano-units and its row; those of the
        first `rows` alone where that is given."""
        stop = len(self) if rows is None else rows
        columns: dict[str, array[int]] = {name: getattr(self, name) for name in PRICES}
        changed: dict[str, Any] = {
            name: array("q", map(price, column[:stop], count())) + column[stop:] for name, column in columns.items()
        }
        return replace(self, **changed)


def without_adjusted(history: PriceHistory) -> PriceHistory:
    """The same bars with adj_close unknown: a file's is adjusted by all that came later, and tells it."""
    return replace(history, adj_close=array("q", [UNKNOWN]) * len(history))


class ActionKind(StrEnum):
    """Kind of a corporate action. A confirmed move is none: a person vouches for a jump of the bars."""

    SPLIT = "split"
    DIVIDEND = "dividend"
    CONFIRMED = "confirmed"


@dataclass(frozen=True, slots=True)
class CorporateAction:
    """A split (`value`: new shares per old one), a cash dividend (`value`: per share), or a confirmed move (`value`:
    the price over the close before).

    It takes effect at the open of `ex_date`; a confirmed move has none.
    """

    symbol: Symbol
    ex_date: date
    kind: ActionKind
    value: Decimal


def in_effect(actions: Sequence[CorporateAction] | None) -> Sequence[CorporateAction] | None:
    """The splits and dividends among actions; None where they are not known."""
    return None if actions is None else [one for one in actions if one.kind is not ActionKind.CONFIRMED]


@dataclass(frozen=True, slots=True)
class SymbolActions:
    """A symbol's corporate actions in order of ex-date, one of a kind on a day.

    `unsupported` are ex-date and description of actions that change the value of a share and are neither split nor
    dividend.
    """

    actions: tuple[CorporateAction, ...] = ()
    unsupported: tuple[tuple[date, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewsItem:
    """One item of news.

    date: the day of publication.
    available_at: the time (UTC) from which the desk may see it.
    published: UTC; None for an item dated without a time.
    url: the full text's address.
    """

    id: str
    symbol: Symbol
    date: date
    available_at: datetime
    summary: str
    headline: str | None = None
    published: datetime | None = None
    source: str | None = None
    sentiment: str | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Filing:
    """A regulatory filing as a summary.

    form: 10-Q, 10-K, 8-K ...
    date: the day of filing.
    available_at: the time (UTC) from which the desk may see it.
    """

    id: str
    symbol: Symbol
    form: str
    date: date
    available_at: datetime
    summary: str


@dataclass(frozen=True, slots=True)
class FundHolding:
    """A fund's holding of a symbol at the end of a day: shares, and its weight in the fund in percent. It guides
    training alone. Source: TradingGPT §4.1.1, §4.2 [G2, G8]."""

    date: date
    symbol: Symbol
    shares: Decimal
    weight: Decimal


@dataclass(frozen=True, slots=True)
class FundTrade:
    """The trade of a fund in a symbol by its holdings at the ends of two days; shares are zero where it held none.
    `weight` is that of the later day, in percent of the fund."""

    fund: str
    before: date
    session: date
    shares_before: Decimal
    shares: Decimal
    weight: Decimal

    @property
    def change(self) -> float:
        """The change of its shares as a fraction of those before: -1 where it left, 1 where it entered."""
        if not self.shares_before:
            return 1.0 if self.shares else 0.0
        return float(self.shares / self.shares_before - 1)


@dataclass(frozen=True, slots=True)
class Dropped:
    """Count of a source's items that could not be used, by reason."""

    source: str
    reason: str
    count: int


@dataclass(frozen=True, slots=True)
class NewsBatch:
    """News in order of availability, with the items dropped on the way."""

    items: Sequence[NewsItem] = ()
    dropped: Sequence[Dropped] = ()


@dataclass(frozen=True, slots=True)
class FilingBatch:
    """Filings in order of availability, with the items dropped on the way."""

    items: Sequence[Filing] = ()
    dropped: Sequence[Dropped] = ()


_COINS = ("BTC", "ETH", "SOL", "XRP", "ADA", "DOGE", "LTC", "BCH", "DOT", "AVAX", "BNB", "TRX", "USDT", "USDC", "DAI")
"""Coins whose pairs are known in any currency."""
_CURRENCIES = ("USD", "EUR", "GBP", "JPY", "CHF", "CAD", "AUD", "NZD", "CNY", "HKD", "KRW", "SGD", "INR", "BRL", "TRY")
"""Currencies in which the pairs of any coin are known."""


def has_crypto_among_shares(symbols: Collection[Symbol]) -> bool:
    """True where crypto is traded beside shares: a session is over once its UTC day is."""
    return 0 < sum(map(is_crypto, symbols)) < len(symbols)


def is_crypto(symbol: Symbol) -> bool:
    """True for a pair that trades around the clock, such as BTC-EUR (BTC/EUR at a broker): by its quote currency, or by
    its coin. A share's class is one letter."""
    if "-" not in symbol and "/" not in symbol:
        return False
    base, _, quote = symbol.replace("/", "-").rpartition("-")
    return bool(base) and (quote in (*_CURRENCIES, *_COINS) or (base in _COINS and quote.isalpha() and len(quote) > 2))


def slashless_pair(name: str) -> Symbol | None:
    """The pair that a name is where its dash may be missing, such as BTCUSD for BTC-USD; None for another symbol."""
    if is_crypto(name):
        return name.replace("/", "-")
    for quote in (*_CURRENCIES, *_COINS):
        if name.removesuffix(quote) in _COINS and name.removesuffix(quote) != name:
            return f"{name.removesuffix(quote)}-{quote}"
    return None


def parse_symbol(text: str) -> Symbol:
    """Parse a symbol as the data folder writes it: upper case, a pair with a dash. Raises UsageError for what cannot
    be a symbol."""
    name = text.strip().upper().replace("/", "-")
    if not re.fullmatch(r"[A-Z0-9^][A-Z0-9.=^_-]{0,23}", name):
        raise UsageError(f"{text!r} is not a symbol; write letters, digits, dot or dash, such as BRK.B or BTC-USD")
    return name


@dataclass(frozen=True, slots=True)
class KnownSymbol:
    """A symbol; `name` is its company's, empty where that is not known, and `sources` are the places that have it, such
    as `desk`, `core` (a group of the watchlist), `data`, `runs`."""

    symbol: Symbol
    name: str = ""
    sources: tuple[str, ...] = ()


AROUND_THE_CLOCK = "24/7"
"""Name of the calendar on which every UTC day is a session."""

_CLASSES = re.compile(r"[A-Z]|PR[A-Z]|W[SIT]?|RT|UN")
"""Suffixes of a share's class, or of a unit, warrant, right or preferred share, which name no exchange."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """The terms on which a symbol is quoted.

    calendar: the trading calendar, as exchange_calendars names it, or AROUND_THE_CLOCK.
    currency: of prices and cash, three letters or a coin's name.
    zone: the time zone of its days.
    periods: sessions in a year.
    minor: a hundredth of the currency, in which vendors may write prices (GBX); empty where there is none.
    """

    calendar: str
    currency: str
    zone: str = "UTC"
    periods: int = 252
    minor: str = ""

    @property
    def described(self) -> str:
        """`XNYS in USD`, `around the clock in EUR`."""
        where = "around the clock" if self.calendar == AROUND_THE_CLOCK else f"on {self.calendar}"
        return f"{where} in {self.currency}"


@dataclass(frozen=True, slots=True)
class Exchanges:
    """Known exchanges by suffix; `own` are those of the configuration, which outrank the others."""

    own: Mapping[str, Exchange] = field(default_factory=dict)

    def of(self, symbol: Symbol) -> Exchange:
        """The exchange of a symbol. Raises UsageError for a suffix that is not known, and for a symbol of digits alone,
        which has lost its suffix."""
        if is_crypto(symbol):
            quote = re.split("[-/]", symbol)[-1]
            return Exchange(calendar=AROUND_THE_CLOCK, currency=quote, periods=365)
        _, dot, suffix = symbol.upper().rpartition(".")
        known = _by_suffix()
        if not dot:
            if symbol.isdigit():
                raise UsageError(f"{symbol} needs the suffix of its exchange, such as {symbol}.SS or {symbol}.T")
            return known[""]
        found = self.own.get(suffix) or known.get(suffix)
        if found is not None:
            return found
        if _CLASSES.fullmatch(suffix):
            return known[""]
        raise UsageError(
            f"{symbol}: no exchange is known by the suffix .{suffix}; name its calendar and currency in the "
            f'configuration ([calendars.{suffix}] calendar = "XLON", currency = "GBP")'
        )

    def of_portfolio(self, symbols: Iterable[Symbol]) -> Exchange:
        """The exchange of a portfolio: that of its shares, beside which crypto of the same currency may stand. Raises
        UsageError naming two symbols that cannot be in one portfolio, and as `of` does."""
        first: tuple[Symbol, Exchange] | None = None
        for symbol in symbols:
            here = self.of(symbol)
            if first is None:
                first = symbol, here
                continue
            other, there = first
            both_shares = AROUND_THE_CLOCK not in (here.calendar, there.calendar)
            if here.currency != there.currency or (both_shares and here.calendar != there.calendar):
                raise UsageError(
                    f"{other} trades {there.described} and {symbol} {here.described}: a portfolio has one currency and "
                    "one exchange calendar; trade them in portfolios of their own"
                )
            if there.calendar == AROUND_THE_CLOCK:
                first = symbol, here
        if first is None:
            return _by_suffix()[""]
        return first[1]


LISTED = Exchanges()
"""The exchanges of exchanges.toml alone."""


@cache
def _by_suffix() -> Mapping[str, Exchange]:
    """Exchanges of exchanges.toml by suffix; the empty one is the exchange of symbols without."""
    tables = tomllib.loads(program_text(Path(__file__).with_name("exchanges.toml")))
    found: dict[str, Exchange] = {}
    for calendar, table in tables.items():
        suffixes = table.pop("suffixes") or [""]
        found |= dict.fromkeys(suffixes, Exchange(calendar=calendar, **table))
    return found
