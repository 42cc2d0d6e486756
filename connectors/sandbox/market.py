"""The sandbox's market at a moment: local or generated daily data, never beyond the clock.

Daily bars have four prices. Within a session the price goes in straight lines from the open through the low and the
high (on a falling day through the high and the low) to the close, a third of the session each, so that it is known at
every moment and never leaves the bar's range.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from math import isnan

from connectors.sandbox.protocol import INSTANT, not_found, stable_id
from engine.domain.market import NANO, CorporateAction, NewsItem, PriceHistory, Symbol, is_crypto
from engine.ports import Calendar

_LONGEST_BREAK = 12
"""Number of days within which every calendar has a session."""
_CENT = NANO // 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Candle:
    """Prices and volume of a period, in nano-units.

    start: UTC.
    volume: shares; zero where unknown.
    """

    start: datetime
    open: int
    high: int
    low: int
    close: int
    volume: float


@dataclass(frozen=True, slots=True)
class SessionPath:
    """One session of a symbol, from its open to its close (UTC)."""

    opens: datetime
    closes: datetime
    anchors: tuple[int, int, int, int]
    volume: float

    @classmethod
    def of(cls, history: PriceHistory, row: int, calendar: Calendar) -> SessionPath:
        """The path of a bar."""
        first, last, session = history.open[row], history.close[row], history.session(row)
        low, high = history.low[row], history.high[row]
        middle = (low, high) if last >= first else (high, low)
        volume = 0.0 if isnan(history.volume[row]) else history.volume[row]
        return cls(calendar.opens_at(session), calendar.closes_at(session), (first, *middle, last), volume)

    def price(self, moment: datetime) -> int:
        """The price at a moment; before the open it is the open, after the close the close.

        Between the known prices it is in whole cents (below a dollar in hundredths of a cent).
        """
        spent, length = self._elapsed(moment)
        third, rest = divmod(3 * spent, length)
        if third >= 3:
            return self.anchors[3]
        here, there = self.anchors[third], self.anchors[third + 1]
        if not rest:
            return here
        exact = here + (there - here) * rest // length
        step = _CENT if exact >= NANO else _CENT // 100
        rounded = (exact + step // 2) // step * step
        return min(max(rounded, min(here, there)), max(here, there))

    def candle(self, start: datetime, end: datetime) -> Candle:
        """The candle from one moment of the session to a later one."""
        start, end = max(start, self.opens), min(end, self.closes)
        (begun, length), (ended, _) = self._elapsed(start), self._elapsed(end)
        seen = [
            self.price(start),
            *(self.anchors[n] for n in (1, 2) if 3 * begun < n * length < 3 * ended),
            self.price(end),
        ]
        share = (ended - begun) / length
        volume = self.volume * share
        return Candle(start=start, open=seen[0], high=max(seen), low=min(seen), close=seen[-1], volume=volume)

    def _elapsed(self, moment: datetime) -> tuple[int, int]:
        length = (self.closes - self.opens) // INSTANT
        spent = (moment - self.opens) // INSTANT
        return min(max(spent, 0), length), length


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MarketData:
    """All data by symbol, and the exchange's calendar.

    through: the last day for which the data was made, where more can be made; None where it simply ends.
    """

    histories: Mapping[Symbol, PriceHistory]
    actions: Mapping[Symbol, Sequence[CorporateAction] | None]
    news: Mapping[Symbol, Sequence[NewsItem]]
    calendars: Mapping[Symbol, Calendar]
    exchange: Calendar
    through: date | None = None


Load = Callable[[date], Awaitable[MarketData]]
"""Loader of the data up to a day; it may include later days."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A symbol in the desk's notation (BTC-USD) and in Alpaca's (BTC/USD), with its asset id, which survives a
    renaming."""

    symbol: Symbol
    wire: str
    asset_id: str
    crypto: bool

    @property
    def compact(self) -> str:
        """Alpaca's notation without the slash, of positions and news."""
        return self.wire.replace("/", "")

    @property
    def asset_class(self) -> str:
        """Alpaca's name of shares or of crypto."""
        return "crypto" if self.crypto else "us_equity"

    @property
    def exchange(self) -> str:
        """Name of the exchange."""
        return "CRYPTO" if self.crypto else "NASDAQ"


class SandboxMarket:
    """The market up to a requested moment; the caller has the clock."""

    def __init__(self, data: MarketData) -> None:
        self.data = data
        """All data, later ones included; replaced by the same market with later days."""
        self.exchange = data.exchange
        self.renamed: dict[Symbol, str] = {}
        """New names of shares by their old ones."""
        self._paths: dict[tuple[Symbol, date], SessionPath | None] = {}

    @property
    def last_session(self) -> date | None:
        """The last session of data that cannot be extended; None where it can."""
        if self.data.through is not None:
            return None
        return max((history.session(-1) for history in self.data.histories.values() if len(history)), default=None)

    @property
    def symbols(self) -> list[Symbol]:
        """All listed symbols, sorted."""
        return sorted(self.data.histories)

    def listing(self, symbol: Symbol) -> Listing:
        """Present names of a symbol."""
        crypto = is_crypto(symbol)
        wire = symbol.replace("-", "/") if crypto else self.renamed.get(symbol, symbol)
        return Listing(symbol, wire, stable_id("asset", symbol), crypto)

    def find(self, name: str) -> Listing | None:
        """The listing of an asset id or of a present name: AAPL, BTC/USD or BTCUSD."""
        for symbol in self.data.histories:
            listing = self.listing(symbol)
            if name in (listing.wire, listing.compact, listing.asset_id):
                return listing
        return None

    def require(self, name: str, what: str) -> Listing:
        """The listing that `find` returns. Raises ApiError naming what is missing."""
        listing = self.find(name)
        if listing is None:
            raise not_found(f"{what} not found: {name[:40]}")
        return listing

    def calendar(self, symbol: Symbol) -> Calendar:
        """The trading calendar of a symbol."""
        return self.data.calendars[symbol]

    def history(self, symbol: Symbol) -> PriceHistory:
        """All bars of a symbol, later ones included: cut it with `rows`."""
        return self.data.histories[symbol]

    def has_stopped(self, symbol: Symbol, moment: datetime) -> bool:
        """True where the last bar of a symbol is over while others go on."""
        history, calendar = self.history(symbol), self.calendar(symbol)
        if not len(history):
            return True
        own = history.session(-1)
        everyone = [h.session(-1) for s, h in self.data.histories.items() if len(h) and self.calendar(s) == calendar]
        return own < max(everyone) and moment >= calendar.closes_at(own)

    def path(self, symbol: Symbol, session: date) -> SessionPath | None:
        """Prices of a session, None where the symbol has no bar."""
        key = symbol, session
        if key not in self._paths:
            history = self.history(symbol)
            row = history.index(session)
            self._paths[key] = None if row is None else SessionPath.of(history, row, self.calendar(symbol))
        return self._paths[key]

    def price(self, symbol: Symbol, moment: datetime) -> int | None:
        """The last price in nano-units; None before the first bar."""
        session = latest_session(self.calendar(symbol), moment)
        path = self.path(symbol, session)
        return self._last_close(symbol, session) if path is None else path.price(moment)

    def close_before(self, symbol: Symbol, moment: datetime) -> int | None:
        """The close of the session before the latest that has opened; None where there is none."""
        return self._last_close(symbol, latest_session(self.calendar(symbol), moment) - timedelta(days=1))

    def _last_close(self, symbol: Symbol, through: date) -> int | None:
        history = self.history(symbol)
        row = history.rows_through(through) - 1
        return None if row < 0 else history.close[row]

    def rows(self, symbol: Symbol, moment: datetime) -> int:
        """Number of bars that had begun at a moment; the last of them may not be over."""
        return self.history(symbol).rows_through(latest_session(self.calendar(symbol), moment))

    def daily(self, symbol: Symbol, row: int, moment: datetime) -> Candle:
        """The bar of a session up to a moment."""
        session = self.history(symbol).session(row)
        path = self.path(symbol, session)
        assert path is not None
        return path.candle(path.opens, moment)

    def intraday_candles(
        self, symbol: Symbol, first: datetime, last: datetime, length: timedelta, moment: datetime
    ) -> Iterator[Candle]:
        """Candles of equal length that begin from `first` to `last`, and before `moment`, in order."""
        calendar = self.calendar(symbol)
        for session in calendar.sessions(max(first.date() - timedelta(days=1), date(2000, 1, 1)), last.date()):
            path = self.path(symbol, session)
            if path is None or path.closes <= first:
                continue
            begins = path.opens
            while begins < min(path.closes, moment) and begins <= last:
                if begins >= first:
                    yield path.candle(begins, min(begins + length, moment))
                begins += length

    def news(self, symbols: Sequence[Symbol], after: datetime, until: datetime) -> list[NewsItem]:
        """Items that became available within a period, in order."""
        items = [item for s in symbols for item in self.data.news.get(s, ()) if after < item.available_at <= until]
        return sorted(items, key=lambda item: (item.available_at, item.id))

    def actions(self, symbol: Symbol, through: date) -> list[CorporateAction]:
        """Corporate actions with an ex-date up to a day, a split before a dividend of the same day."""
        every = self.data.actions.get(symbol) or ()
        return sorted((a for a in every if a.ex_date <= through), key=lambda a: (a.ex_date, a.kind == "dividend"))


def latest_session(calendar: Calendar, moment: datetime) -> date:
    """The last session that had opened at a moment."""
    today = moment.date()
    days = calendar.sessions(today - timedelta(days=_LONGEST_BREAK), today)
    return next(day for day in reversed(days) if calendar.opens_at(day) <= moment)


def next_session(calendar: Calendar, moment: datetime) -> date:
    """The first session that opens after a moment."""
    today = moment.date()
    days = calendar.sessions(today, today + timedelta(days=_LONGEST_BREAK))
    return next(day for day in days if calendar.opens_at(day) > moment)


def session_open(calendar: Calendar, moment: datetime) -> date | None:
    """The session in progress at a moment, its first moment included, its last one not."""
    session = latest_session(calendar, moment)
    return session if moment < calendar.closes_at(session) else None
