"""Observation of an audited run: what its data access shows, and when that is read."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, TypeVar

from engine.domain.macro import MacroRelease
from engine.domain.market import Filing, FundTrade, NewsItem, PriceHistory, Symbol
from engine.errors import PaperdeskError
from engine.lab.planting import HOLDINGS
from engine.market.as_of import ArrayMarketAsOf, Market
from engine.market.point_in_time import MarketAsOf

T = TypeVar("T", NewsItem, Filing, MacroRelease)

BARS_SHOWN = 400
"""Bars that are compared of a symbol: more than any agent reads."""
_LONG_AGO = datetime(1900, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class Inputs:
    """Items that were read of one source. `latest` became available at the least distance before the decision that read
    it, which was taken at `decision`; `last_decision` is the last that read any (all UTC)."""

    items: set[Hashable] = field(default_factory=set)
    latest: datetime | None = None
    decision: datetime | None = None
    last_decision: datetime | None = None

    @property
    def from_the_future(self) -> bool:
        """True where anything was read before it was available."""
        return self.latest is not None and self.decision is not None and self.latest > self.decision

    def add(self, items: Iterable[Hashable], latest: datetime, decision: datetime) -> None:
        """Count what a decision read; `latest` is when the last of it became available."""
        self.items.update(items)
        self.last_decision = decision if self.last_decision is None else max(self.last_decision, decision)
        if self.latest is None or self.decision is None or latest - decision >= self.latest - self.decision:
            self.latest, self.decision = latest, decision


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedMarket(Market):
    """A market that remembers, by source, what was read of it."""

    read: dict[str, Inputs] = field(default_factory=dict)

    @classmethod
    def of(cls, market: Market) -> WatchedMarket:
        """The same market, nothing read yet."""
        return cls(**{part.name: getattr(market, part.name) for part in fields(Market)})

    def at(self, now: datetime) -> MarketAsOf:
        """The market as known at a moment; reading it is noted."""
        return _WatchedAsOf(self, now)

    def note(self, source: str, items: Iterable[Hashable], latest: datetime, now: datetime) -> None:
        """Count items of a source that were read at a moment; the last of them became available at `latest`."""
        self.read.setdefault(source, Inputs()).add(items, latest, now)


class _WatchedAsOf(ArrayMarketAsOf):
    __slots__ = ()
    _market: WatchedMarket

    def bars(self, symbol: Symbol, count: int) -> PriceHistory:
        window = super().bars(symbol, count)
        if len(window):
            self._note_bars(symbol, window.sessions, window.session(-1))
        return window

    def adjusted(self, symbol: Symbol, count: int) -> PriceHistory:
        window = super().adjusted(symbol, count)
        if len(window):
            self._note_bars(symbol, window.sessions, window.session(-1))
        return window

    def news(self, symbol: Symbol, after: datetime) -> Sequence[NewsItem]:
        return self._noted("news", super().news(symbol, after))

    def filings(self, symbol: Symbol, after: datetime) -> Sequence[Filing]:
        return self._noted("filings", super().filings(symbol, after))

    def commentary(self, after: datetime) -> Sequence[NewsItem]:
        return self._noted("commentary", super().commentary(after))

    def macro(self, after: datetime | None) -> Sequence[MacroRelease]:
        return self._noted("macro", super().macro(after))

    def fund_trade(self, fund: str, symbol: Symbol) -> FundTrade | None:
        trade = super().fund_trade(fund, symbol)
        if trade is not None:
            published = datetime.combine(trade.session + timedelta(days=1), time(), tzinfo=UTC)
            self._market.note(HOLDINGS, [(fund, symbol, trade.session)], published, self.now)
        return trade

    def peek(self, symbol: Symbol) -> Decimal | None:
        tomorrow = super().peek(symbol)
        if tomorrow is not None:
            session = self._market.histories[symbol].session(self.count(symbol))
            self._note_bars(symbol, [session.toordinal()], session)
        return tomorrow

    def _note_bars(self, symbol: Symbol, sessions: Iterable[int], last: date) -> None:
        closed = self._market.calendars[symbol].closes_at(last)
        self._market.note("bars", ((symbol, day) for day in sessions), closed, self.now)

    def _noted(self, source: str, items: Sequence[T]) -> Sequence[T]:
        if items:
            names = (("" if isinstance(item, MacroRelease) else item.symbol, item.id) for item in items)
            self._market.note(source, names, max(item.available_at for item in items), self.now)
        return items


def shown(market: Market, now: datetime) -> Mapping[tuple[str, Symbol], Any]:
    """Everything that the data access shows at a moment, by source and symbol; an error is shown data, too."""
    access = market.at(now)
    views: dict[tuple[str, Symbol], Any] = {}
    for symbol in market.histories:
        views["bars", symbol] = _or_error(lambda s=symbol: _bars(access, s))  # type: ignore[misc]
        views["news", symbol] = _or_error(lambda s=symbol: list(access.news(s, _LONG_AGO)))  # type: ignore[misc]
        views["filings", symbol] = _or_error(lambda s=symbol: list(access.filings(s, _LONG_AGO)))  # type: ignore[misc]
    views["commentary", "funds"] = _or_error(lambda: list(access.commentary(_LONG_AGO)))
    views["macro", "the economy"] = _or_error(lambda: list(access.macro(None)))
    return views


def _bars(access: MarketAsOf, symbol: Symbol) -> Any:
    count = access.count(symbol)
    if not count:
        return 0
    bars = access.bars(symbol, BARS_SHOWN)
    adjusted = access.adjusted(symbol, BARS_SHOWN)
    known = (bars.sessions, bars.open, bars.high, bars.low, bars.close, bars.volume)
    columns = (*known, bars.adj_close, adjusted.close, adjusted.adj_close)
    return count, access.close(symbol), access.last_session(symbol), tuple(column.tobytes() for column in columns)


def _or_error(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except (LookupError, PaperdeskError) as error:
        return type(error).__name__, str(error)
