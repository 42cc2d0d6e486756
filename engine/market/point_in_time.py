"""Point-in-time access to a market: everything that agents, strategies and the cycle may read of it.

A protocol, because a market comes in more than one form: loaded arrays that a clock moves over (`as_of`), or a tape
that grows while it is read. Bars are visible once their session has closed, all else from when it became available.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Protocol

from engine.domain.macro import MacroRelease
from engine.domain.market import Filing, FundTrade, NewsItem, PriceHistory, Symbol
from engine.ports import Calendar


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
