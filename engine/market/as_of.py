"""Data access: market data as known at a moment, and nothing later.

A daily bar is visible once its session has closed; news, filings and macro figures from the time they became available,
each figure in the vintage of the day. Prices are as traded; bars before a split are put on the basis of the last
visible session, by the splits known by then. All decisions read through here, so look-ahead can be tested in one place.

Point-in-time access to a market: everything that agents, strategies and the cycle may read of it.

A protocol, because a market comes in more than one form: loaded arrays that a clock moves over (`as_of`), or a tape
that grows while it is read. Bars are visible once their session has closed, all else from when it became available.
"""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from math import isnan, prod
from operator import attrgetter, mul
from typing import TYPE_CHECKING, Protocol, TypeVar

from engine.domain.json_text import to_json
from engine.domain.macro import MacroRelease, MacroSeries
from engine.domain.market import (
    COLUMNS,
    NANO,
    UNKNOWN,
    ActionKind,
    CorporateAction,
    Dropped,
    Filing,
    FilingBatch,
    FundHolding,
    FundTrade,
    NewsBatch,
    NewsItem,
    PriceHistory,
    Symbol,
    from_nano,
    in_effect,
    without_adjusted,
)
from engine.errors import MissingData
from engine.market.price_faults import Comparison, PriceFault, compare
from engine.market.trading_hours import session_after
from engine.ports import BarSource, Calendar, MarketSource

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


T = TypeVar("T", NewsItem, Filing)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)  # asyncio.run formats what it returns: every bar
class Market:
    """All data of a run.

    histories: bars by symbol.
    actions: corporate actions by symbol; None where the source has none on file.
    news, filings: by symbol, in order of availability.
    calendars: by symbol.
    dropped: source items that could not be used.
    macro: macro series by name.
    commentary: of all funds, in order of availability.
    holdings: of reference funds by name, in order of their days.
    faults: bars and actions that contradict each other.
    compared: bars, actions and adj_close held against each other, by symbol.
    """

    histories: Mapping[Symbol, PriceHistory]
    actions: Mapping[Symbol, Sequence[CorporateAction] | None]
    news: Mapping[Symbol, Sequence[NewsItem]]
    filings: Mapping[Symbol, Sequence[Filing]]
    calendars: Mapping[Symbol, Calendar]
    dropped: tuple[Dropped, ...] = ()
    macro: Mapping[str, MacroSeries] = field(default_factory=dict)
    commentary: Sequence[NewsItem] = ()
    holdings: Mapping[str, Sequence[FundHolding]] = field(default_factory=dict)
    faults: tuple[PriceFault, ...] = ()
    compared: Mapping[Symbol, Comparison] = field(default_factory=dict)
    _growth: dict[Symbol, tuple[PriceHistory, object, NDArray[np.float64]]] = field(default_factory=dict)

    def at(self, now: datetime) -> MarketAsOf:
        """The market as known at a moment."""
        return ArrayMarketAsOf(self, now)

    def growth(self, symbol: Symbol) -> NDArray[np.float64]:
        """By row what one share has become by splits and reinvested dividends, on any scale; NaN where that is not
        known. By the actions up to the row or, without any on file, by the column of adjusted closes."""
        history, actions = self.histories[symbol], self.actions[symbol]
        found = self._growth.get(symbol)
        # An arena's market grows in place.
        grown = found is not None and len(found[2]) != len(history)
        if found is None or grown or found[0] is not history or found[1] is not actions:
            found = history, actions, _growth(history, actions)
            self._growth[symbol] = found
        return found[2]

    def ended(self, ends: Mapping[Symbol, date]) -> Market:
        """The same market with the bars and actions of some symbols up to a day, each."""
        histories, actions = dict(self.histories), dict(self.actions)
        for symbol, end in ends.items():
            histories[symbol] = histories[symbol].slice(0, histories[symbol].rows_through(end))
            actions[symbol] = [one for one in actions[symbol] or () if one.ex_date <= end]
        return replace(self, histories=histories, actions=actions)

    def cut(self, now: datetime) -> Market:
        """The same market without anything later than a moment: the input of the truncation test.

        A corporate action is known from the open of its ex-date.
        """
        histories: dict[Symbol, PriceHistory] = {}
        actions: dict[Symbol, Sequence[CorporateAction] | None] = {}
        for symbol, history in self.histories.items():
            closed = self.calendars[symbol].last_closed(now)
            histories[symbol] = history.slice(0, history.rows_through(closed))
            known = self.actions[symbol]
            opened = last_opened(self.calendars[symbol], now)
            actions[symbol] = None if known is None else [a for a in known if a.ex_date <= opened]
        return replace(
            self,
            histories=histories,
            actions=actions,
            news={s: [n for n in items if n.available_at <= now] for s, items in self.news.items()},
            filings={s: [f for f in items if f.available_at <= now] for s, items in self.filings.items()},
            macro={name: series.cut(now) for name, series in self.macro.items()},
            commentary=[item for item in self.commentary if item.available_at <= now],
            holdings={fund: [row for row in rows if row.date < now.date()] for fund, rows in self.holdings.items()},
        )


def data_fingerprint(market: Market, now: datetime) -> str:
    """SHA-256 over all data that is known at a moment: equal for equal data, whatever came later."""
    known, digest = market.cut(now), hashlib.sha256()
    for symbol, history in sorted(known.histories.items()):
        digest.update(symbol.encode())
        for column in COLUMNS:
            digest.update(getattr(history, column).tobytes())
    digest.update(to_json([known.actions, known.news, known.filings, known.macro, known.commentary]).encode())
    if known.holdings:
        digest.update(to_json(known.holdings).encode())
    return digest.hexdigest()


def last_opened(calendar: Calendar, now: datetime) -> date:
    """The last session that had opened at a moment: the one after the last closed one, once it has opened."""
    closed = calendar.last_closed(now)
    following = session_after(calendar, closed)
    return following if calendar.opens_at(following) <= now else closed


async def load_market(
    bars: BarSource,
    texts: MarketSource | None,
    symbols: Sequence[Symbol],
    calendar_of: Callable[[Symbol], Calendar],
    *,
    macro: Mapping[str, MacroSeries] | None = None,
    holdings: Mapping[str, Sequence[FundHolding]] | None = None,
) -> Market:
    """Read the data on symbols: bars, and the news, filings and commentary of `texts`, none without one; `macro` and
    `holdings` are loaded already. Raises the sources' errors."""
    histories: dict[Symbol, PriceHistory] = {}
    actions: dict[Symbol, Sequence[CorporateAction] | None] = {}
    items: dict[Symbol, Sequence[NewsItem]] = {}
    reports: dict[Symbol, Sequence[Filing]] = {}
    said = NewsBatch() if texts is None else await texts.commentary()
    dropped = [*said.dropped]
    compared: dict[Symbol, Comparison] = {}
    faults: list[PriceFault] = []
    for symbol in symbols:
        histories[symbol] = await bars.history(symbol)
        on_file = await bars.actions(symbol)
        compared[symbol] = compare(histories[symbol], on_file)
        faults += compared[symbol].faults
        actions[symbol] = in_effect(on_file)
        batch = NewsBatch() if texts is None else await texts.news(symbol)
        reported = FilingBatch() if texts is None else await texts.filings(symbol)
        items[symbol], reports[symbol] = batch.items, reported.items
        dropped += [*batch.dropped, *reported.dropped]
    calendars = {symbol: calendar_of(symbol) for symbol in symbols}
    return Market(
        histories=histories,
        actions=actions,
        news=items,
        filings=reports,
        calendars=calendars,
        dropped=tuple(dropped),
        macro=macro or {},
        commentary=said.items,
        holdings=holdings or {},
        faults=tuple(faults),
        compared=compared,
    )


class ArrayMarketAsOf:
    """A loaded market as known at `now`, UTC (MarketAsOf)."""

    __slots__ = ("_market", "now")

    def __init__(self, market: Market, now: datetime) -> None:
        self._market = market
        self.now = now

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        return tuple(self._market.histories)

    def calendar(self, symbol: Symbol) -> Calendar:
        return self._market.calendars[symbol]

    def last_session(self, symbol: Symbol) -> date:
        return self._history(symbol).session(self._visible(symbol) - 1)

    def close(self, symbol: Symbol) -> Decimal:
        return from_nano(self._history(symbol).close[self._visible(symbol) - 1])

    def close_of(self, symbol: Symbol, session: date) -> Decimal:
        """The close of a visible bar, as traded. Raises MissingData for a session without one."""
        history = self._history(symbol)
        row = history.index(session)
        if row is None or row >= self._visible(symbol):
            raise MissingData(f"{symbol} has no close of {session} by {self.now:%Y-%m-%d}")
        return from_nano(history.close[row])

    def count(self, symbol: Symbol) -> int:
        history = self._history(symbol)
        return history.rows_through(self._market.calendars[symbol].last_closed(self.now))

    def bars(self, symbol: Symbol, count: int) -> PriceHistory:
        stop = self._visible(symbol)
        window = self._history(symbol).slice(max(0, stop - count), stop)
        return self._with_adjusted(symbol, _on_last_basis(window, self._market.actions[symbol] or ()), stop)

    def adjusted(self, symbol: Symbol, count: int) -> PriceHistory:
        stop = self._visible(symbol)
        window = self._history(symbol).slice(max(0, stop - count), stop)
        actions = self._market.actions[symbol]
        if actions is None:
            return _by_adjusted_closes(window)
        window = _on_last_basis(window, actions, dividends=True)
        return replace(window, adj_close=window.close)

    def news(self, symbol: Symbol, after: datetime) -> Sequence[NewsItem]:
        return self._available(self._market.news.get(symbol, ()), after)

    def filings(self, symbol: Symbol, after: datetime) -> Sequence[Filing]:
        return self._available(self._market.filings.get(symbol, ()), after)

    def commentary(self, after: datetime) -> Sequence[NewsItem]:
        return self._available(self._market.commentary, after)

    def macro(self, after: datetime | None) -> Sequence[MacroRelease]:
        releases = (series.release(after, self.now) for series in self._market.macro.values())
        return tuple(release for release in releases if release is not None)

    def fund_trade(self, fund: str, symbol: Symbol) -> FundTrade | None:
        rows = self._market.holdings.get(fund, ())
        known = rows[: bisect_left(rows, self.now.date(), key=attrgetter("date"))]
        if not known or known[0].date == known[-1].date:
            return None
        last = known[-1].date
        earlier = known[: bisect_left(known, last, key=attrgetter("date"))]
        before, after = _held(earlier, earlier[-1].date, symbol), _held(known, last, symbol)
        if before is None and after is None:
            return None
        actions = self._market.actions.get(symbol) or ()
        splits = [a.value for a in actions if a.kind is ActionKind.SPLIT and earlier[-1].date < a.ex_date <= last]
        return FundTrade(
            fund=fund,
            before=earlier[-1].date,
            session=last,
            shares_before=Decimal(0) if before is None else prod(splits, start=before.shares),
            shares=Decimal(0) if after is None else after.shares,
            weight=Decimal(0) if after is None else after.weight,
        )

    def hindsight(self, symbol: Symbol, count: int, until: datetime) -> PriceHistory:
        """The last `count` visible bars and later ones known at `until`: for reflections in warm-up alone.

        Source: FinAgent appendix C [A9]; InvestorBench A [I7].
        """
        history, seen = self._history(symbol), self._visible(symbol)
        stop = max(seen, history.rows_through(self._market.calendars[symbol].last_closed(until)))
        window = history.slice(max(0, seen - count), stop)
        return self._with_adjusted(symbol, _on_last_basis(window, self._market.actions[symbol] or ()), stop)

    def peek(self, symbol: Symbol) -> Decimal | None:
        row = self._visible(symbol)
        history = self._history(symbol)
        return from_nano(history.close[row]) if row < len(history) else None

    def _with_adjusted(self, symbol: Symbol, window: PriceHistory, stop: int) -> PriceHistory:
        """A window that ends before row `stop`, with its adjusted closes as they were known at its last bar: a file's
        column is adjusted by all that came later."""
        if not len(window):
            return window
        growth = self._market.growth(symbol)[stop - len(window) : stop]
        if isnan(growth.sum()):
            return without_adjusted(window)
        # At the last row the quotient is 1 exactly, so that its adjusted close is the close.
        known = self._history(symbol).close[stop - len(window) : stop]
        adjusted = (growth / growth[-1] * known).round().astype("int64")
        return replace(window, adj_close=array("q", adjusted.tobytes()))

    def _available(self, items: Sequence[T], after: datetime) -> Sequence[T]:
        available_at = attrgetter("available_at")
        return items[bisect_right(items, after, key=available_at) : bisect_right(items, self.now, key=available_at)]

    def _history(self, symbol: Symbol) -> PriceHistory:
        history = self._market.histories.get(symbol)
        if history is None:
            raise MissingData(f"{symbol} is not among the symbols of this run")
        return history

    def _visible(self, symbol: Symbol) -> int:
        rows = self.count(symbol)
        if rows == 0:
            raise MissingData(f"{symbol} has no prices by {self.now:%Y-%m-%d}; import earlier ones or begin later")
        return rows


def _held(rows: Sequence[FundHolding], day: date, symbol: Symbol) -> FundHolding | None:
    """A fund's holding of a symbol on a day, which is the last of its rows."""
    own = rows[bisect_left(rows, day, key=attrgetter("date")) :]
    return next((row for row in own if row.symbol == symbol), None)


def _on_last_basis(
    window: PriceHistory, actions: Sequence[CorporateAction], *, dividends: bool = False
) -> PriceHistory:
    """Divide prices before each split inside the window by its ratio, and multiply the volumes; with `dividends` scale
    prices before each dividend by 1 - dividend / last close before it as well."""
    if not len(window):
        return window
    first, last = window.session(0), window.session(-1)
    inside = [a for a in actions if first < a.ex_date <= last and (dividends or a.kind is ActionKind.SPLIT)]
    if not inside:
        return window
    # Bars from the last action on stay as they are.
    scaled = bisect_right(window.sessions, max(action.ex_date for action in inside).toordinal() - 1)
    ratios, factors = [Decimal(1)] * scaled, [Decimal(1)] * scaled
    for action in inside:
        before = bisect_right(window.sessions, action.ex_date.toordinal() - 1)
        if action.kind is ActionKind.SPLIT:
            ratios[:before] = [ratio * action.value for ratio in ratios[:before]]
        else:
            close = from_nano(window.close[before - 1])
            factors[:before] = [factor * (1 - action.value / close) for factor in factors[:before]]
    return replace(
        window.repriced(
            lambda price, row: price if price == UNKNOWN else int(price * factors[row] / ratios[row]), scaled
        ),
        volume=array("d", map(mul, window.volume, map(float, ratios))) + window.volume[scaled:],
    )


def _growth(history: PriceHistory, actions: Sequence[CorporateAction] | None) -> NDArray[np.float64]:
    import numpy as np

    if actions is None:
        adjusted = np.array(history.adj_close, dtype=np.float64)
        known = np.where(adjusted == UNKNOWN, np.nan, adjusted)
        return np.asarray(known / np.array(history.close, dtype=np.float64))
    steps = np.ones(len(history))
    for action in actions:
        row = bisect_left(history.sessions, action.ex_date.toordinal())
        if 0 < row < len(history):
            left = 1 - float(action.value) * NANO / history.close[row - 1]  # of a dividend, by the close before it
            growth = float(action.value) if action.kind is ActionKind.SPLIT else 1 / left if left > 0 else np.nan
            steps[row] *= growth
    return np.asarray(np.cumprod(steps), dtype=np.float64)


def _by_adjusted_closes(window: PriceHistory) -> PriceHistory:
    """Scale prices so that they return what the adjusted closes return, the last close as it is: by what is adjusted
    later all are scaled alike, so nothing of it shows. As traded where an adjusted close is unknown."""
    if not len(window) or UNKNOWN in window.adj_close:
        return without_adjusted(window)
    raw, adjusted = window.close, window.adj_close
    window = window.repriced(lambda price, row: price * raw[-1] * adjusted[row] // (adjusted[-1] * raw[row]))
    return replace(window, adj_close=window.close)


class MarketAsOf(Protocol):
    """The market as known at one moment."""

    @property
    def now(self) -> datetime:
        """The moment, UTC."""

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        """All symbols of the run."""

    def calendar(self, symbol: Symbol) -> Calendar:
        """The trading calendar of a symbol of the run."""

    def last_session(self, symbol: Symbol) -> date:
        """The session of the last visible bar. Raises MissingData where none is visible."""

    def close(self, symbol: Symbol) -> Decimal:
        """The last visible close, as traded. Raises MissingData where none is visible."""

    def close_of(self, symbol: Symbol, session: date) -> Decimal:
        """The close of a visible bar, as traded. Raises MissingData for a session without one."""

    def count(self, symbol: Symbol) -> int:
        """Number of visible bars."""

    def bars(self, symbol: Symbol, count: int) -> PriceHistory:
        """The last `count` visible bars (fewer where there are fewer), on the split basis of the last of them; their
        adj_close is adjusted by what was known there, so that the last is the close, or unknown. Raises MissingData
        where none is visible."""

    def adjusted(self, symbol: Symbol, count: int) -> PriceHistory:
        """The same bars with prices adjusted for the splits and dividends up to the last of them, which stays as
        traded; adj_close is the close. Where the actions are not known the returns of the adjusted closes count, as far
        as they are known. Source: InvestorBench appendix D [I5]."""

    def news(self, symbol: Symbol, after: datetime) -> Sequence[NewsItem]:
        """News that became available after a moment and by now, oldest first."""

    def filings(self, symbol: Symbol, after: datetime) -> Sequence[Filing]:
        """Filings that became available after a moment and by now, oldest first."""

    def commentary(self, after: datetime) -> Sequence[NewsItem]:
        """Commentary of funds that became available after a moment and by now, oldest first."""

    def macro(self, after: datetime | None) -> Sequence[MacroRelease]:
        """The latest figure of every series with a release after a moment; without a moment, of all series."""

    def fund_trade(self, fund: str, symbol: Symbol) -> FundTrade | None:
        """The trade of a fund in a symbol by its last two days of holdings before today, splits in between undone: a
        day's holdings are published after its close. None where there are no two, or the fund held none on either.
        Source: TradingGPT §4.2 [G8]."""

    def hindsight(self, symbol: Symbol, count: int, until: datetime) -> PriceHistory:
        """The last `count` visible bars and later ones known at `until`: for reflections in warm-up alone.

        Source: FinAgent appendix C [A9]; InvestorBench A [I7].
        """

    def peek(self, symbol: Symbol) -> Decimal | None:
        """Tomorrow's close, which nobody can know: it exists for the preset that the audit must catch. None where the
        market ends."""
