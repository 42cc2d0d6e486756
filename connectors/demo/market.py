"""The demo market behind the ports: prices, news, filings and macro series, from a fixed beginning to a given day."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from datetime import date
from difflib import get_close_matches

from connectors.demo.economy import SERIES, economy
from connectors.demo.fund import fund_history
from connectors.demo.listings import load_listings
from connectors.demo.market_factor import FactorMove, factor_moves
from connectors.demo.news import NewsWriter
from connectors.demo.price_path import PricePath, draw_path
from connectors.demo.reports import filing_of
from engine.domain.macro import MacroSeries
from engine.domain.market import CorporateAction, Filing, FilingBatch, NewsBatch, PriceHistory, Symbol
from engine.errors import MissingData, UsageError
from engine.ports import Calendar

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
        self._moves: list[FactorMove] = []

    async def symbols(self) -> Sequence[Symbol]:
        """All symbols, sorted."""
        return self._symbols()

    async def history(self, symbol: Symbol) -> PriceHistory:
        """All bars of a symbol."""
        self._check(symbol)
        return self._path(symbol).history

    async def actions(self, symbol: Symbol) -> Sequence[CorporateAction] | None:
        """Splits and dividends in effect."""
        self._check(symbol)
        return self._path(symbol).actions

    async def news(self, symbol: Symbol) -> NewsBatch:
        """All news of a symbol dated through the last day; empty for a symbol that is not on this market."""
        if symbol not in self._symbols():
            return NewsBatch()
        writer = NewsWriter(self._seed, self._calendar_for(symbol), EPOCH, self._through)
        if symbol in self._listings.companies:
            return NewsBatch(writer.company(self._listings.companies[symbol], self._path(symbol)))
        if symbol == self._listings.crypto.symbol:
            return NewsBatch(writer.crypto(self._listings.crypto, self._path(symbol)))
        return NewsBatch(writer.fund(self._listings.fund, self._path(symbol)))

    async def filings(self, symbol: Symbol) -> FilingBatch:
        """All filings of a company through the last day; empty for any other listing."""
        company = self._listings.companies.get(symbol)
        if company is None:
            return FilingBatch()
        calendar = self._calendar_for(symbol)
        found: list[Filing] = [
            filing_of(self._seed, company, quarter, session, calendar.closes_at(session))
            for session, quarter in self._path(symbol).reports
        ]
        return FilingBatch(tuple(sorted(found, key=lambda filing: filing.available_at)))

    async def series(self, name: str) -> MacroSeries:
        """Weekly claims or monthly hours through the last day. Raises MissingData for another series."""
        if name not in SERIES:
            raise MissingData(f"the demo market has no series {name!r}; it has {', '.join(SERIES)}")
        sessions = self._exchange_sessions()
        return economy(self._seed, name, EPOCH, self._through, sessions=sessions, moves=self._factor_moves(sessions))

    def _symbols(self) -> list[Symbol]:
        return sorted((*self._listings.companies, self._listings.crypto.symbol, self._listings.fund.symbol))

    def _check(self, symbol: Symbol) -> None:
        known = self._symbols()
        if symbol not in known:
            near = get_close_matches(symbol.upper(), known, n=3, cutoff=0.5) or known
            raise MissingData(f"the demo market has no {symbol!r}; choose from {', '.join(near)}")

    def _path(self, symbol: Symbol) -> PricePath:
        if symbol not in self._paths:
            self._paths[symbol] = self._draw(symbol)
        return self._paths[symbol]

    def _draw(self, symbol: Symbol) -> PricePath:
        if symbol == self._listings.fund.symbol:
            holdings = [self._path(company) for company in self._listings.companies]
            return PricePath(fund_history(self._listings.fund, holdings), (), (), ())
        if symbol == self._listings.crypto.symbol:
            return draw_path(self._seed, self._listings.crypto, self._sessions(symbol))
        sessions = self._exchange_sessions()
        return draw_path(self._seed, self._listings.companies[symbol], sessions, self._factor_moves(sessions))

    def _sessions(self, symbol: Symbol) -> array[int]:
        days = self._calendar_for(symbol).sessions(EPOCH, self._through)
        return array("q", (day.toordinal() for day in days))

    def _exchange_sessions(self) -> array[int]:
        return self._sessions(self._listings.fund.symbol)

    def _factor_moves(self, sessions: array[int]) -> list[FactorMove]:
        self._moves = self._moves or factor_moves(self._seed, sessions)
        return self._moves
