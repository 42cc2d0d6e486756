"""The sandbox's market at a moment: local or generated daily data, never beyond the clock."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from connectors.sandbox.intraday import Candle, SessionPath
from connectors.sandbox.protocol import not_found, stable_id
from engine.domain.market import CorporateAction, NewsItem, PriceHistory, Symbol, is_crypto
from engine.ports import Calendar

_LONGEST_BREAK = 12
"""Number of days within which every calendar has a session."""


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


class SandboxMarket:
    """The market up to a requested moment; the caller has the clock."""

    def __init__(self, data: MarketData) -> None:
        self.data = data
        self.exchange = data.exchange
        self.renamed: dict[Symbol, str] = {}
        """New names of shares by their old ones."""
        self._last = max((history.session(-1) for history in data.histories.values() if len(history)), default=None)
        self._ids: dict[Symbol, str] = {}
        self._paths: dict[tuple[Symbol, date], SessionPath | None] = {}

    @property
    def last_session(self) -> date | None:
        """The last session of data that cannot be extended; None where it can."""
        return None if self.data.through is not None else self._last

    def extend(self, data: MarketData) -> None:
        """Replace the data by the same market with later days."""
        self.data = data
        self._last = max((history.session(-1) for history in data.histories.values() if len(history)), default=None)

    @property
    def symbols(self) -> list[Symbol]:
        """All listed symbols, sorted."""
        return sorted(self.data.histories)

    def listing(self, symbol: Symbol) -> Listing:
        """Present names of a symbol."""
        crypto = is_crypto(symbol)
        wire = symbol.replace("-", "/") if crypto else self.renamed.get(symbol, symbol)
        if symbol not in self._ids:
            self._ids[symbol] = stable_id("asset", symbol)
        return Listing(symbol, wire, self._ids[symbol], crypto)

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

    def is_open(self, symbol: Symbol, moment: datetime) -> bool:
        """True while the symbol's market is in session."""
        return session_open(self.calendar(symbol), moment) is not None

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
            history, calendar = self.history(symbol), self.calendar(symbol)
            row = history.index(session)
            made = None
            if row is not None:
                made = SessionPath.of(history, row, calendar.opens_at(session), calendar.closes_at(session))
            self._paths[key] = made
        return self._paths[key]

    def price(self, symbol: Symbol, moment: datetime) -> int | None:
        """The last price in nano-units; None before the first bar."""
        session = latest_session(self.calendar(symbol), moment)
        path = self.path(symbol, session)
        if path is not None:
            return path.price(moment)
        history = self.history(symbol)
        row = history.rows_through(session) - 1
        return None if row < 0 else history.close[row]

    def close_before(self, symbol: Symbol, moment: datetime) -> int | None:
        """The close of the session before the latest that has opened; None where there is none."""
        session = latest_session(self.calendar(symbol), moment)
        history = self.history(symbol)
        row = history.rows_through(session - timedelta(days=1)) - 1
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
        found = [item for s in symbols for item in self.data.news.get(s, ()) if after < item.available_at <= until]
        return sorted(found, key=lambda item: (item.available_at, item.id))

    def actions(self, symbol: Symbol, through: date) -> list[CorporateAction]:
        """Corporate actions with an ex-date up to a day, a split before a dividend of the same day."""
        known = self.data.actions.get(symbol) or ()
        return sorted((a for a in known if a.ex_date <= through), key=lambda a: (a.ex_date, a.kind == "dividend"))


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
