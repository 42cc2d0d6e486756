"""Observation of an audited run: what its data access shows, and when that is read.

Records from the future that nobody could overlook: put into the data after a cut, they must surface nowhere.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import accumulate
from operator import mul
from typing import Any, TypeVar

from engine.domain.macro import MacroObservation, MacroRelease, MacroSeries
from engine.domain.market import (
    NANO,
    UNKNOWN,
    ActionKind,
    CorporateAction,
    Filing,
    FundHolding,
    FundTrade,
    NewsItem,
    PriceHistory,
    Symbol,
    to_nano,
)
from engine.domain.run import ExpertNote
from engine.errors import PaperdeskError
from engine.market.as_of import ArrayMarketAsOf, Market, MarketAsOf, last_opened
from engine.market.trading_hours import session_after
from engine.ports import Calendar

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
        views["bars", symbol] = _or_error(lambda s=symbol: _read_bars(access, s))  # type: ignore[misc]
        views["news", symbol] = _or_error(lambda s=symbol: list(access.news(s, _LONG_AGO)))  # type: ignore[misc]
        views["filings", symbol] = _or_error(lambda s=symbol: list(access.filings(s, _LONG_AGO)))  # type: ignore[misc]
    views["commentary", "funds"] = _or_error(lambda: list(access.commentary(_LONG_AGO)))
    views["macro", "the economy"] = _or_error(lambda: list(access.macro(None)))
    return views


def _read_bars(access: MarketAsOf, symbol: Symbol) -> Any:
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


Item = TypeVar("Item", bound=NewsItem | Filing)

SOURCES = ("bars", "actions", "news", "filings", "macro", "commentary")
"""Sources of a market, each planted by itself."""

HOLDINGS = "holdings"
"""Source of reference funds' holdings, which no test may read: what is planted is known at the cut already."""

GUIDANCE, MEMORY = "guidance", "memory"
"""Sources beside a market: experts' notes where a run reads any, memories where it has a memory."""

MARKERS = {
    "news": "ZQX-PLANTED-NEWS",
    "filings": "ZQX-PLANTED-FILING",
    "macro": "ZQX-PLANTED-MACRO",
    "commentary": "ZQX-PLANTED-COMMENTARY",
    GUIDANCE: "ZQX-PLANTED-GUIDANCE",
    MEMORY: "ZQX-PLANTED-MEMORY",
}
"""Texts that occur in no real source."""

ABSURD_PRICE = Decimal("987654.321")
ABSURD_SPLIT = Decimal(1000)
_SOON = timedelta(seconds=1)
_LARGEST = 2**62
"""Nano-units that a column holds with all splits applied, planted ones included, and room for rounding."""


def planted(market: Market, sources: Sequence[str], now: datetime, *, absurd: bool = True) -> Market:
    """The whole market with records that become available only after a moment: wild bars at an absurd price, or else
    around the real ones, and a split of a thousand for one from each symbol's next session on, less where its own
    splits leave no room for that; a second later a takeover in the news and in a filing, and absurd macro series and a
    fund's commentary. Adjusted closes are scaled with the bars, as what comes later scales them. Holdings of funds are
    of the day before: that they are known does not allow a test to read them."""
    symbols = tuple(market.histories)
    market = _with_prices(market, sources, now, absurd)
    if "news" in sources:
        market = replace(market, news={s: _inserted(market.news.get(s, ()), _news(s, now + _SOON)) for s in symbols})
    if "filings" in sources:
        market = replace(
            market, filings={s: _inserted(market.filings.get(s, ()), _filing(s, now + _SOON)) for s in symbols}
        )
    if "macro" in sources:
        names = (*market.macro, MARKERS["macro"])
        market = replace(market, macro={name: _with_figure(market.macro.get(name), name, now) for name in names})
    if "commentary" in sources:
        market = replace(market, commentary=_inserted(market.commentary, _commentary(symbols, now + _SOON)))
    if HOLDINGS in sources:
        funds = {fund: [*rows, *_holdings(symbols, now)] for fund, rows in market.holdings.items()}
        market = replace(market, holdings={f: sorted(rows, key=lambda row: row.date) for f, rows in funds.items()})
    return market


def _with_prices(real: Market, sources: Sequence[str], now: datetime, absurd: bool) -> Market:
    market, symbols = real, tuple(real.histories)
    if "bars" in sources:
        prices = {symbol: _price(real, symbol) if absurd else None for symbol in symbols}
        bars = {s: _bars(real.histories[s], real.calendars[s], now, prices[s]) for s in symbols}
        market = replace(market, histories=bars)
    if "actions" in sources:
        # Where none are on file, nothing is planted: a file of them is something else than one more action.
        known = {s: actions for s in symbols if (actions := real.actions[s]) is not None}
        more = {s: [*actions, _split(s, real.calendars[s], now, _ratio(real, s))] for s, actions in known.items()}
        market = replace(market, actions={**real.actions, **more})
    return market


def planted_notes(symbols: Sequence[Symbol], session: date) -> tuple[ExpertNote, ...]:
    """Experts' notes that the decision of a session may not read: of its own day, which may have been written after
    its close, and of the next."""
    return tuple(
        ExpertNote(day, symbol, f"{MARKERS[GUIDANCE]}: {symbol} will be taken over at triple the price, buy")
        for symbol in symbols
        for day in (session, session + timedelta(days=1))
    )


def _scale(market: Market, symbol: Symbol) -> Decimal:
    """The largest factor by which a symbol's splits multiply its prices on the basis of the first."""
    splits = [one for one in market.actions.get(symbol) or () if one.kind is ActionKind.SPLIT]
    ratios = (one.value for one in sorted(splits, key=lambda one: one.ex_date))
    return max(Decimal(1), *accumulate(ratios, mul, initial=Decimal(1)))


def _ratio(market: Market, symbol: Symbol) -> Decimal:
    highest = max(market.histories[symbol].high, default=NANO)
    return min(ABSURD_SPLIT, max(Decimal(2), _LARGEST // (highest * _scale(market, symbol))))


def _price(market: Market, symbol: Symbol) -> int:
    """The absurd price in nano-units, which a wild move leaves within bounds."""
    return min(to_nano(ABSURD_PRICE), int(_LARGEST // (_ratio(market, symbol) * _scale(market, symbol))) // 2)


def _bars(history: PriceHistory, calendar: Calendar, now: datetime, price: int | None) -> PriceHistory:
    """The history with later bars at a price (None: at their own), by half above it and by a third below in turn: a
    deviation or a quantile over all rows moves even where the level does not."""
    history = _readjusted(history)
    known = history.rows_through(calendar.last_closed(now))
    later = history.sessions[known:] or array("q", [session_after(calendar, calendar.last_closed(now)).toordinal()])
    count = len(later)

    def absurd(column: array[int]) -> array[int]:
        level = column[known:] or column[-1:] or array("q", [NANO])
        level = level if price is None else array("q", [price]) * count
        wild = (p if p == UNKNOWN else p * 2 // 3 if row % 2 else p * 3 // 2 for row, p in enumerate(level))
        return column[:known] + array("q", wild)

    return PriceHistory(
        symbol=history.symbol,
        sessions=history.sessions[:known] + later,
        open=absurd(history.open),
        high=absurd(history.high),
        low=absurd(history.low),
        close=absurd(history.close),
        adj_close=absurd(history.adj_close),
        volume=history.volume[:known] + array("d", [float(ABSURD_PRICE)]) * count,
    )


def _readjusted(history: PriceHistory) -> PriceHistory:
    """The history with absurdly scaled adjusted closes, by another factor for each symbol, as a later split or dividend
    scales them: by a power of two, so that the returns up to any day stay exactly as they are. A close that is adjusted
    itself, as a paper trades at, stays."""
    if not len(history) or history.adj_close == history.close:
        return history
    bits = min(10 + sum(history.symbol.encode()) % 8, (_LARGEST // max(1, *history.adj_close)).bit_length() - 1)
    factor = 2**bits
    scaled = (price if price == UNKNOWN else price * factor for price in history.adj_close)
    return replace(history, adj_close=array("q", scaled))


def _split(symbol: Symbol, calendar: Calendar, now: datetime, ratio: Decimal) -> CorporateAction:
    """Effective when a session opens, so not in one that goes on already."""
    ex_date = session_after(calendar, last_opened(calendar, now))
    return CorporateAction(symbol, ex_date, ActionKind.SPLIT, ratio)


def _news(symbol: Symbol, soon: datetime) -> NewsItem:
    text = f"{MARKERS['news']}: takeover of {symbol} at triple the price"
    return NewsItem(
        id=f"planted-{symbol}",
        symbol=symbol,
        date=soon.date(),
        available_at=soon,
        summary=text,
        headline=text,
        published=soon,
    )


def _filing(symbol: Symbol, soon: datetime) -> Filing:
    text = f"{MARKERS['filings']}: {symbol} agrees to be taken over at triple the price"
    return Filing(id=f"planted-{symbol}", symbol=symbol, form="8-K", date=soon.date(), available_at=soon, summary=text)


def _commentary(symbols: Sequence[Symbol], soon: datetime) -> NewsItem:
    text = f"{MARKERS['commentary']}: we sell before {', '.join(symbols)} are taken over at triple the price"
    return NewsItem(id="planted", symbol="FUND", date=soon.date(), available_at=soon, summary=text, published=soon)


def _holdings(symbols: Sequence[Symbol], now: datetime) -> Iterator[FundHolding]:
    """Of every symbol an absurd number of shares on the day before: only the decision at the cut could read it."""
    yesterday = now.date() - timedelta(days=1)
    return (FundHolding(yesterday, symbol, ABSURD_PRICE, Decimal(100)) for symbol in symbols)


def _inserted(items: Sequence[Item], item: Item) -> list[Item]:
    """Items in the order in which they become available, with a planted one among them."""
    return sorted((*items, item), key=lambda other: other.available_at)


def _with_figure(series: MacroSeries | None, name: str, now: datetime) -> MacroSeries:
    """A figure of the day and, where there are figures, a revision of the one that is known last."""
    soon = now + _SOON
    observations = list(series.observations) if series is not None else []
    known = None if series is None else series.known_at(now)
    days = {soon.date()} | ({known.date} if known is not None else set())
    return MacroSeries.of(name, [*observations, *(MacroObservation(day, ABSURD_PRICE, soon) for day in days)])
