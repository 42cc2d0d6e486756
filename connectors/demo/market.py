"""The demo market behind the ports: prices, news and filings of the cast and figures of its economy, from a fixed
beginning to a given day."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from datetime import date
from difflib import get_close_matches

from connectors.demo.cast import load_cast
from connectors.demo.economy import SERIES, economy
from connectors.demo.fund import fund_history
from connectors.demo.newsroom import Newsroom
from connectors.demo.price_path import PricePath, draw_path
from connectors.demo.reports import filing_of
from connectors.demo.tide import Tide, tides
from engine.domain.macro import MacroSeries
from engine.domain.market import CorporateAction, Filing, FilingBatch, NewsBatch, PriceHistory, Symbol
from engine.errors import MissingData, UsageError
from engine.ports import Calendar

EPOCH = date(2021, 1, 4)
"""The first session of every history."""

DEFAULT_WATCHLIST: tuple[Symbol, ...] = ("ORVL", "BXWD", "HLXM", "WRNN-USD")
"""What the demo desk trades."""


class DemoMarket:
    """BarSource, NewsSource, FilingSource and MacroSource of fictional companies, one coin and one fund.

    Bars, actions, news, filings and figures are the seed's and the calendars' alone; a later `through` adds to them and
    changes none of the earlier. Prices are as traded: a split makes them jump, a dividend makes them fall, and
    `actions` lists both, never on the same day; adjusted closes, which later dividends would change, are unknown.

    Raises UsageError for a `through` before EPOCH.
    """

    def __init__(self, seed: int, calendar_for: Callable[[Symbol], Calendar], through: date) -> None:
        if through < EPOCH:
            raise UsageError(f"the demo market begins on {EPOCH}; choose a day after {through}")
        self._seed = seed
        self._calendar_for = calendar_for
        self._through = through
        self._cast = load_cast()
        self._paths: dict[Symbol, PricePath] = {}
        self._moves: list[Tide] = []

    async def symbols(self) -> Sequence[Symbol]:
        """Every symbol of the cast, sorted."""
        return self._symbols()

    async def history(self, symbol: Symbol) -> PriceHistory:
        """All bars of a symbol."""
        self._check(symbol)
        return self._path(symbol).history

    async def actions(self, symbol: Symbol) -> Sequence[CorporateAction] | None:
        """Splits and dividends that have taken effect."""
        self._check(symbol)
        return self._path(symbol).actions

    async def news(self, symbol: Symbol) -> NewsBatch:
        """All news of a symbol dated through the last day; empty for a symbol that is not on this market."""
        if symbol not in self._symbols():
            return NewsBatch()
        room = Newsroom(self._seed, self._calendar_for(symbol), EPOCH, self._through)
        if symbol in self._cast.companies:
            return NewsBatch(room.company(self._cast.companies[symbol], self._path(symbol)))
        if symbol == self._cast.coin.symbol:
            return NewsBatch(room.coin(self._cast.coin, self._path(symbol)))
        return NewsBatch(room.fund(self._cast.fund, self._path(symbol)))

    async def filings(self, symbol: Symbol) -> FilingBatch:
        """All filings of a company through the last day; empty for anything else."""
        company = self._cast.companies.get(symbol)
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
        return economy(self._seed, name, EPOCH, self._through, sessions, self._tides(sessions))

    def _symbols(self) -> list[Symbol]:
        return sorted((*self._cast.companies, self._cast.coin.symbol, self._cast.fund.symbol))

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
        if symbol == self._cast.fund.symbol:
            holdings = [self._path(company) for company in self._cast.companies]
            return PricePath(fund_history(self._cast.fund, holdings), (), (), ())
        if symbol == self._cast.coin.symbol:
            return draw_path(self._seed, self._cast.coin, self._sessions(symbol))
        sessions = self._exchange_sessions()
        return draw_path(self._seed, self._cast.companies[symbol], sessions, self._tides(sessions))

    def _sessions(self, symbol: Symbol) -> array[int]:
        days = self._calendar_for(symbol).sessions(EPOCH, self._through)
        return array("q", (day.toordinal() for day in days))

    def _exchange_sessions(self) -> array[int]:
        return self._sessions(self._cast.fund.symbol)

    def _tides(self, sessions: array[int]) -> list[Tide]:
        self._moves = self._moves or tides(self._seed, sessions)
        return self._moves
