"""Ports: everything that the desk needs from outside, on one page; each port has one to a few methods.

Adapters are in `connectors`; one contract suite per port (tests/contracts) runs over all of them. Times are aware UTC
datetimes, sessions are dates of the symbol's trading calendar, money is Decimal.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Protocol

from engine.domain.brokerage import Activity, Asset, BrokerAccount, BrokerClock, BrokerOrder, SessionHours
from engine.domain.chart import ChartSpec
from engine.domain.live import FeedMessage, MinuteBar
from engine.domain.macro import MacroSeries
from engine.domain.market import (
    Bar,
    CorporateAction,
    FilingBatch,
    FundHolding,
    NewsBatch,
    NewsItem,
    PriceHistory,
    Symbol,
    SymbolActions,
)
from engine.domain.model_call import ModelRequest, ModelResult
from engine.domain.order import Order, OrderUpdate

Pause = Callable[[float], Awaitable[None]]
"""A coroutine that waits for seconds; tests pass one that does not."""


class Clock(Protocol):
    """The only source of time in the desk."""

    def now(self) -> datetime:
        """The current moment, aware, UTC."""


class Calendar(Protocol):
    """The trading sessions of a market."""

    @property
    def name(self) -> str:
        """Name of the calendar, such as XNYS or 24/7."""

    def sessions(self, first: date, last: date) -> Sequence[date]:
        """All sessions from first to last, both included."""

    def opens_at(self, session: date) -> datetime:
        """Open of a session, UTC."""

    def closes_at(self, session: date) -> datetime:
        """Close of a session, UTC (early closes included)."""

    def last_closed(self, now: datetime) -> date:
        """The last session that had closed at a moment."""

    def number(self, session: date) -> int:
        """Ordinal of a session in the count of all sessions: the step of an agent's clock."""

    def session_at(self, number: int) -> date:
        """The session of a number."""


class BarSource(Protocol):
    """Daily prices and corporate actions."""

    async def symbols(self) -> Sequence[Symbol]:
        """All symbols with prices, sorted."""

    async def history(self, symbol: Symbol) -> PriceHistory:
        """All bars of a symbol. Raises MissingData for an unknown symbol, MalformedData naming file and line."""

    async def actions(self, symbol: Symbol) -> Sequence[CorporateAction] | None:
        """Corporate actions by ex-date.

        None where the source has no file of them; then closes are taken as traded and no dividends are paid.
        """


class NewsSource(Protocol):
    """News by symbol."""

    async def news(self, symbol: Symbol) -> NewsBatch:
        """All news of a symbol in order of availability; empty where there is none."""


class FilingSource(Protocol):
    """Regulatory filings by symbol."""

    async def filings(self, symbol: Symbol) -> FilingBatch:
        """All filings of a symbol in order of availability; empty where there are none."""


class FundSource(Protocol):
    """Funds' commentary and holdings. Source: TradingGPT §4.1.1 [G2]."""

    async def commentary(self) -> NewsBatch:
        """Commentary of all funds in order of availability, a fund's name as the symbol; empty where there is none."""

    async def holdings(self) -> Mapping[str, Sequence[FundHolding]]:
        """Holdings by fund, by date. Raises MalformedData naming file and line."""


class MarketSource(BarSource, NewsSource, FilingSource, FundSource, Protocol):
    """One source of prices, news, filings and what funds say and hold."""


class MacroSource(Protocol):
    """Macro series, with all vintages."""

    async def series(self, name: str) -> MacroSeries:
        """All vintages of a series by its FRED id or its file's name.

        Raises MissingData for an unknown one, or for one without vintages.
        """


class MacroFolder(MacroSource, Protocol):
    """Macro series of a run, some of which are read without being asked for."""

    async def names(self) -> Sequence[str]:
        """The series that are read beside the configured ones, sorted: those that were put into a data folder."""


class LanguageModel(Protocol):
    """A provider of answers to agents' questions: a vendor's model, recorded answers, or rules."""

    spec: str
    """The model spec, such as `offline` or `openai:MODEL`."""

    label: str
    """Name on every display; the rules say that they are no language model."""

    sees: bool
    """True where charts reach it as images; otherwise the prompt has to carry the figures as text."""

    async def answer(self, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> ModelResult:
        """Answer one request; `on_delta` receives text as it streams.

        Never raises for a fault of the model or its service, which is a failure value.
        """


class ChartPainter(Protocol):
    """Renders charts as images."""

    version: str
    """A version that changes whenever equal charts would look different."""

    async def paint(self, spec: ChartSpec) -> bytes:
        """A PNG of about 1000 x 800 pixels."""


class Account(Protocol):
    """The account at the broker, and its history."""

    async def account(self) -> BrokerAccount:
        """Cash, positions and trading blocks, now."""

    async def activities(self, after: datetime) -> Sequence[Activity]:
        """Account activity since a moment, oldest first, all pages. Entries may repeat earlier ones (by id), none is
        left out."""

    async def equity_history(self, first: date, last: date) -> Mapping[date, Decimal]:
        """The account's value at the close of each session, as far as the broker has it."""


class Orders(Protocol):
    """Orders at the broker, by our own order ids."""

    async def place(self, order: Order) -> OrderUpdate:
        """Submit an order once, without a retry of its own.

        A refusal is REJECTED with the broker's reason; an id that the broker has already is answered with that order's
        state. Raises TryAgainLater where the outcome is unknown (look it up, never assume), CredentialsRefused where
        the keys are refused.
        """

    async def lookup(self, order_id: str, broker_id: str = "") -> BrokerOrder | None:
        """The order of an id of ours, else of the broker's where that is given; None where the broker does not find
        it."""

    async def orders_since(self, after: datetime) -> Sequence[BrokerOrder]:
        """All orders that were entered after a moment (UTC), of any origin, whatever has become of them, all pages."""

    async def open_orders(self) -> Sequence[BrokerOrder]:
        """All orders that are not final, of any origin, all pages."""

    async def cancel(self, order_id: str) -> None:
        """Request an order's cancellation; a final order stays as it is. The result has to be looked up."""


class Exchange(Protocol):
    """The broker's market: clock, calendar, instruments."""

    async def clock(self) -> BrokerClock:
        """The broker's time."""

    async def session_hours(self, first: date, last: date) -> Sequence[SessionHours]:
        """The sessions of the broker's calendar, both days included."""

    async def asset(self, symbol: Symbol) -> Asset | None:
        """An instrument, or None where the broker has none of that symbol."""


class Broker(Account, Orders, Exchange, Protocol):
    """A complete broker.

    All methods raise NetworkError where the broker cannot be reached, TryAgainLater where it limits requests,
    CredentialsRefused where it refuses the keys.
    """

    async def aclose(self) -> None:
        """Close connections."""


class MarketDataService(Protocol):
    """A vendor's history, from which the data folder is filled.

    All requests raise CredentialsRefused, ConfigError where address or feed are not the account's, MissingData for what
    cannot be a symbol, NetworkError and TryAgainLater.
    """

    vendor: str
    """The vendor's name in messages."""

    feed: str
    """The vendor's price feed for shares; bars of two feeds are not mixed in one file."""

    def bars(self, symbols: Sequence[Symbol], first: date, last: date) -> AsyncIterator[tuple[Symbol, Sequence[Bar]]]:
        """Raw daily bars from one session to another, both included, shares and crypto in requests of their own. A bar
        of a session that is not over may be among them."""

    async def closes(self, symbols: Sequence[Symbol], day: date) -> Mapping[Symbol, Decimal]:
        """The closes of a session among the last two, as the vendor's snapshots of the symbols have them, in the quote
        currency; shares and crypto in requests of their own."""

    async def minutes(self, symbol: Symbol, first: datetime, last: datetime) -> Sequence[MinuteBar]:
        """Raw bars of the minutes that began within a period, both ends included, in order; the last may not be
        over."""

    async def actions(self, symbols: Sequence[Symbol], first: date, last: date) -> Mapping[Symbol, SymbolActions]:
        """Split and dividends by ex-date, both days included."""

    def news(self, symbols: Sequence[Symbol], first: datetime, last: datetime) -> AsyncIterator[Sequence[NewsItem]]:
        """News by the moment of its last change, a page at a time."""

    async def aclose(self) -> None:
        """Close connections."""


class LiveFeed(Protocol):
    """Quotes, trades, headlines and order hints in real time."""

    async def follow(self, symbols: Sequence[Symbol], on_message: Callable[[FeedMessage], None]) -> None:
        """Pass every message to `on_message` until cancelled.

        A broken feed is reconnected and polled in the meantime; each change is a FeedState. Raises CredentialsRefused
        where the keys are refused.
        """

    async def latest(self, symbols: Sequence[Symbol]) -> Sequence[FeedMessage]:
        """The latest quotes and trades, requested now. Raises NetworkError, TryAgainLater, CredentialsRefused."""


class Notifier(Protocol):
    """A recipient of the summaries of runs."""

    name: str
    """Name in a warning, without secrets."""

    async def notify(self, summary: Mapping[str, Any]) -> None:
        """Send a run's summary, of JSON's own types. Raises NotificationFailed."""
