"""The demo market behind the ports: prices, news, filings and macro series, from a fixed beginning to a given day."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from difflib import get_close_matches
from functools import cached_property

from connectors.demo.listings import Company, Listing, load_listings
from connectors.demo.price_path import FactorMove, PricePath, draw_path, factor_moves, price_history
from connectors.demo.seeded_random import SeededRandom
from connectors.demo.texts import NewsWriter, filing_of
from engine.domain.macro import MacroObservation, MacroSeries, end_of_vintage
from engine.domain.market import (
    NANO,
    ActionKind,
    CorporateAction,
    FilingBatch,
    FundHolding,
    NewsBatch,
    PriceHistory,
    Symbol,
    is_crypto,
)
from engine.errors import MissingData, UsageError
from engine.ports import Calendar

CLAIMS, HOURS = "ICSA", "AWHMAN"
SERIES = (CLAIMS, HOURS)
"""Initial claims and average weekly hours in manufacturing, under their FRED ids. Source: TradingGPT §4.1.1 [G2]."""

_MILLION = 1_000_000
_MOOD = 60  # sessions over which the market's mood shows in the economy
_WEEK = timedelta(days=7)


def economy(
    seed: int, name: str, epoch: date, through: date, *, sessions: Sequence[int], moves: Sequence[FactorMove]
) -> MacroSeries:
    """A series of the seed as published through a day; a later day adds to it and changes nothing.

    `moves` are the market factor's, over sessions given as ordinals: an economy does worse while its market falls.
    """

    def mood(day: date) -> int:
        """The market's move of the last sessions before a day, in parts per million, within a third of all."""
        stop = bisect_right(sessions, day.toordinal())
        moved = sum(move.overnight + move.intraday for move in moves[max(0, stop - _MOOD) : stop])
        return max(-_MILLION // 3, min(_MILLION // 3, moved))

    published = _claims if name == CLAIMS else _hours
    days = published(seed, epoch, through, mood)
    return MacroSeries.of(name, (item for item in days if item.known_from <= end_of_vintage(through)))


def _claims(seed: int, epoch: date, through: date, mood: Callable[[date], int]) -> Iterator[MacroObservation]:
    """Claims of the weeks that end on Saturdays: published on the Thursday after, revised a week later."""
    day = epoch + timedelta(days=(5 - epoch.weekday()) % 7)
    level = 225_000
    while day <= through:
        random = SeededRandom(seed, CLAIMS, day.toordinal())
        usual = 225_000 - mood(day) * 180_000 // _MILLION
        level += (usual - level) // 8 + random.normal() * 6_500 // 1000
        level = max(level, 150_000)
        first = level + random.normal() * 1_500 // 1000
        out = day + timedelta(days=5)
        yield MacroObservation(day, Decimal(first // 1000 * 1000), end_of_vintage(out))
        yield MacroObservation(day, Decimal(level // 1000 * 1000), end_of_vintage(out + _WEEK))
        day += _WEEK


def _hours(seed: int, epoch: date, through: date, mood: Callable[[date], int]) -> Iterator[MacroObservation]:
    """Hours of a month: published on the first Friday of the next one, revised a month later."""
    month = epoch.replace(day=1)
    level = 4_070  # hundredths of an hour
    while month <= through:
        following = _next_month(month)
        random = SeededRandom(seed, HOURS, month.toordinal())
        usual = 4_070 + mood(following) * 180 // _MILLION
        level += (usual - level) // 4 + random.normal() * 12 // 1000
        first = level + random.normal() * 6 // 1000
        yield MacroObservation(month, _tenths(first), end_of_vintage(_first_friday(following)))
        yield MacroObservation(month, _tenths(level), end_of_vintage(_first_friday(_next_month(following))))
        month = following


def _tenths(hundredths: int) -> Decimal:
    return Decimal((hundredths + 5) // 10).scaleb(-1)


def _next_month(month: date) -> date:
    return (month + timedelta(days=31)).replace(day=1)


def _first_friday(month: date) -> date:
    return month + timedelta(days=(4 - month.weekday()) % 7)


_CENT = 10_000_000  # in nano-units

EPOCH = date(2021, 1, 4)
"""First session of every history."""

DEFAULT_WATCHLIST: tuple[Symbol, ...] = ("ORVL", "BXWD", "HLXM", "WRNN-USD")
"""Symbols of the demo desk."""


class DemoMarket:
    """BarSource, NewsSource, FilingSource and MacroSource of fictional companies, one crypto asset and one fund.

    Bars, actions, news, filings and figures depend on the seed and the calendars alone; a later `through` adds to them
    and changes none of the earlier. Prices are as traded: a split makes them jump, a dividend makes them fall, and
    `actions` lists both, never on the same day; adjusted closes, which later dividends would change, are unknown.
    Raises UsageError for a `through` before EPOCH.
    """

    def __init__(self, seed: int, calendar_for: Callable[[Symbol], Calendar], through: date) -> None:
        if through < EPOCH:
            raise UsageError(f"the demo market begins on {EPOCH}; choose a day after {through}")
        self._seed = seed
        self._calendar_for = calendar_for
        self._through = through
        self._listings = load_listings()
        self._paths: dict[Symbol, PricePath] = {}

    async def symbols(self) -> Sequence[Symbol]:
        """All symbols, sorted."""
        return sorted(self._listings)

    async def history(self, symbol: Symbol) -> PriceHistory:
        """All bars of a symbol."""
        return self._path(symbol).history

    async def actions(self, symbol: Symbol) -> Sequence[CorporateAction] | None:
        """Splits and dividends in effect."""
        return self._path(symbol).actions

    async def news(self, symbol: Symbol) -> NewsBatch:
        """All news of a symbol dated through the last day; empty for a symbol that is not on this market."""
        if symbol not in self._listings:
            return NewsBatch()
        writer = NewsWriter(self._seed, self._calendar_for(symbol), EPOCH, self._through)
        return NewsBatch(writer.items(self._listings[symbol], self._path(symbol)))

    async def filings(self, symbol: Symbol) -> FilingBatch:
        """All filings of a company through the last day; empty for any other listing."""
        company = self._listings.get(symbol)
        if not isinstance(company, Company):
            return FilingBatch()
        calendar = self._calendar_for(symbol)
        filings = [
            filing_of(self._seed, company, quarter, session, calendar.closes_at(session))
            for session, quarter in self._path(symbol).reports
        ]
        return FilingBatch(tuple(sorted(filings, key=lambda filing: filing.available_at)))

    async def commentary(self) -> NewsBatch:
        """None: no fund of this market says anything."""
        return NewsBatch()

    async def holdings(self) -> Mapping[str, Sequence[FundHolding]]:
        """None: no fund of this market tells what it holds."""
        return {}

    async def names(self) -> Sequence[str]:
        """None: both series are asked for by name."""
        return ()

    async def series(self, name: str) -> MacroSeries:
        """Weekly claims or monthly hours through the last day. Raises MissingData for another series."""
        if name not in SERIES:
            raise MissingData(f"the demo market has no series {name!r}; available: {', '.join(SERIES)}")
        return economy(self._seed, name, EPOCH, self._through, sessions=self._exchange, moves=self._moves)

    def _path(self, symbol: Symbol) -> PricePath:
        if symbol not in self._listings:
            known = sorted(self._listings)
            near = get_close_matches(symbol.upper(), known, n=3, cutoff=0.5) or known
            raise MissingData(f"the demo market has no {symbol!r}; choose from {', '.join(near)}")
        if symbol not in self._paths:
            self._paths[symbol] = self._draw(self._listings[symbol])
        return self._paths[symbol]

    def _draw(self, listing: Listing) -> PricePath:
        if isinstance(listing, Company):
            return draw_path(self._seed, listing, self._exchange, lambda: self._moves)
        if is_crypto(listing.symbol):
            return draw_path(self._seed, listing, self._sessions(listing.symbol))
        companies = [symbol for symbol, one in self._listings.items() if isinstance(one, Company)]
        return PricePath(_fund_history(listing, [self._path(symbol) for symbol in companies]), (), (), ())

    def _sessions(self, symbol: Symbol) -> array[int]:
        days = self._calendar_for(symbol).sessions(EPOCH, self._through)
        return array("q", (day.toordinal() for day in days))

    @cached_property
    def _exchange(self) -> array[int]:
        """Sessions of the companies."""
        return self._sessions(DEFAULT_WATCHLIST[0])

    @cached_property
    def _moves(self) -> list[FactorMove]:
        """The market factor's moves over them."""
        return factor_moves(self._seed, self._exchange)


def _fund_history(listing: Listing, holdings: Sequence[PricePath]) -> PriceHistory:
    """Bars of a fund that is rebalanced every session; all holdings have the same sessions.

    High and low are half way between the move of open and close and the mean of the holdings' own, since these do not
    reach their extremes together.
    """
    sessions = holdings[0].history.sessions
    columns = (array("q"), array("q"), array("q"), array("q"))
    per_share = [_conversions(path) for path in holdings]
    level = listing.price * _CENT
    for row in range(len(sessions)):
        open_, high, low, close = _mean_moves(holdings, per_share, row)
        prices = [level * move // NANO for move in (open_, close)]
        top, bottom = max(prices), min(prices)
        high_, low_ = (top + max(level * high // NANO, top)) // 2, (bottom + min(level * low // NANO, bottom)) // 2
        for column, price in zip(columns, (prices[0], high_, low_, prices[1]), strict=True):
            column.append((price + _CENT // 2) // _CENT * _CENT)
        level = prices[1]
    volumes = (sum(path.history.volume[row] for path in holdings) * 3 // 10 for row in range(len(sessions)))
    return price_history(listing.symbol, sessions, columns, volumes)


def _mean_moves(
    holdings: Sequence[PricePath], per_share: Sequence[dict[int, tuple[int, int, int]]], row: int
) -> tuple[int, int, int, int]:
    """Open, high, low and close over the close before, in billionths, averaged."""
    sums = [0, 0, 0, 0]
    for path, conversions in zip(holdings, per_share, strict=True):
        history = path.history
        before = history.close[row - 1] if row else history.open[0]
        new, old, paid = conversions.get(history.sessions[row], (1, 1, 0))
        for place, column in enumerate((history.open, history.high, history.low, history.close)):
            sums[place] += (column[row] * new // old + paid) * NANO // before
    open_, high, low, close = (total // len(holdings) for total in sums)
    return open_, high, low, close


def _conversions(path: PricePath) -> dict[int, tuple[int, int, int]]:
    """By ex-date: new shares, for old ones, and nano-units of cash for one old share."""
    conversions: dict[int, tuple[int, int, int]] = {}
    for action in path.actions:
        day = action.ex_date.toordinal()
        new, old, paid = conversions.get(day, (1, 1, 0))
        if action.kind is ActionKind.SPLIT:
            by, per = action.value.as_integer_ratio()
            new, old = new * by, old * per
        else:
            paid += int(action.value * NANO)
        conversions[day] = new, old, paid
    return conversions
