"""All that the desk needs from outside, on one page; each port is one or two questions.

Adapters stand in `connectors`; one contract suite per port (tests/contracts) runs over every one of them.
Times are aware UTC datetimes, sessions are dates of the symbol's trading calendar, money is Decimal.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Protocol

from engine.domain.brokerage import Activity, Asset, BrokerAccount, BrokerClock, BrokerOrder, SessionHours
from engine.domain.chart import ChartSpec
from engine.domain.live import FeedMessage
from engine.domain.macro import MacroSeries
from engine.domain.market import (
    Bar,
    CorporateAction,
    FilingBatch,
    NewsBatch,
    NewsItem,
    PriceHistory,
    Symbol,
    SymbolActions,
)
from engine.domain.model_call import ModelRequest, ModelResult
from engine.domain.order import Order, OrderUpdate

Pause = Callable[[float], Awaitable[None]]
"""Waits so many seconds; tests pass one that does not."""


class Clock(Protocol):
    """Tells the time; nothing else in the desk does."""

    def now(self) -> datetime:
        """The current moment, aware, UTC."""
        ...


class Calendar(Protocol):
    """The trading sessions of a market."""

    @property
    def name(self) -> str:
        """Such as XNYS or 24/7."""
        ...

    def sessions(self, first: date, last: date) -> Sequence[date]:
        """All sessions from first to last, both included."""
        ...

    def opens_at(self, session: date) -> datetime:
        """When a session opens, UTC."""
        ...

    def closes_at(self, session: date) -> datetime:
        """When a session closes, UTC (early closes included)."""
        ...

    def last_closed(self, now: datetime) -> date:
        """The last session that had closed at a moment."""
        ...

    def number(self, session: date) -> int:
        """The place of a session in the count of all sessions: the step of an agent's clock."""
        ...

    def session_at(self, number: int) -> date:
        """The session of a number."""
        ...


class BarSource(Protocol):
    """Daily prices and corporate actions."""

    async def symbols(self) -> Sequence[Symbol]:
        """Every symbol that the source has prices for, sorted."""
        ...

    async def history(self, symbol: Symbol) -> PriceHistory:
        """All bars of a symbol. Raises MissingData for an unknown symbol, MalformedData naming file and line."""
        ...

    async def actions(self, symbol: Symbol) -> Sequence[CorporateAction] | None:
        """Corporate actions by ex-date, or None where the source does not know of any file of them (then closes
        are taken as traded and no dividends are paid)."""
        ...


class NewsSource(Protocol):
    """News by symbol."""

    async def news(self, symbol: Symbol) -> NewsBatch:
        """All news of a symbol in order of availability; empty where there is none."""
        ...


class FilingSource(Protocol):
    """Regulatory filings by symbol."""

    async def filings(self, symbol: Symbol) -> FilingBatch:
        """All filings of a symbol in order of availability; empty where there are none."""
        ...


class MacroSource(Protocol):
    """Figures of the economy, with every vintage."""

    async def series(self, name: str) -> MacroSeries:
        """All vintages of a series by its FRED id or its file's name. Raises MissingData for an unknown one, or for
        one of which nobody kept what was known when."""
        ...


class LanguageModel(Protocol):
    """Something that answers an agent's question: a vendor's model, recorded answers, or rules."""

    spec: str
    """The model spec that names it, such as `offline` or `openai:MODEL`."""

    label: str
    """How it is introduced wherever it speaks; the rules say that they are no language model."""

    sees: bool
    """Whether charts reach it as pictures; without, the request's prompt has to carry the figures as text."""

    async def answer(self, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> ModelResult:
        """Answers one request; never raises for what a model or its service does wrong (that is a failure value).
        `on_delta` receives text as it streams."""
        ...


class ChartPainter(Protocol):
    """Turns a chart into a picture."""

    version: str
    """Changes whenever equal charts would look different."""

    async def paint(self, spec: ChartSpec) -> bytes:
        """A PNG of about 1000 x 800 pixels."""
        ...


class Account(Protocol):
    """What the broker says we own, and what moved it."""

    async def account(self) -> BrokerAccount:
        """Cash, positions and what blocks trading, now."""
        ...

    async def activities(self, after: datetime) -> Sequence[Activity]:
        """Everything that moved cash or shares since a moment, oldest first, all pages; a line may come again that
        was there before (its id tells), none is left out."""
        ...

    async def equity_history(self, first: date, last: date) -> Mapping[date, Decimal]:
        """The account's value at the close of each session, as far as the broker has it."""
        ...


class Orders(Protocol):
    """The order book at the broker, by our own order ids."""

    async def place(self, order: Order) -> OrderUpdate:
        """Hands an order over, once: no attempt of its own after a fault. A refusal is REJECTED with the broker's
        words; an id that the broker has already is answered with how that order stands. Raises TryAgainLater where
        the outcome is not known (look it up, never assume), CredentialsRefused where the keys are refused."""
        ...

    async def lookup(self, order_id: str) -> BrokerOrder | None:
        """How an order stands, or None where the broker has never seen its id."""
        ...

    async def open_orders(self) -> Sequence[BrokerOrder]:
        """Every order that is not final, whoever placed it, all pages."""
        ...

    async def cancel(self, order_id: str) -> None:
        """Asks for an order to be canceled; one that is final already is left as it is. What came of it is looked
        up."""
        ...


class Exchange(Protocol):
    """What the broker says of its market."""

    async def clock(self) -> BrokerClock:
        """The broker's time."""
        ...

    async def session_hours(self, first: date, last: date) -> Sequence[SessionHours]:
        """The sessions of the broker's calendar, both days included."""
        ...

    async def asset(self, symbol: Symbol) -> Asset | None:
        """An instrument, or None where the broker has none of that symbol."""
        ...


class Broker(Account, Orders, Exchange, Protocol):
    """A broker's account, whole. Every method raises NetworkError where the broker cannot be reached, TryAgainLater
    where it asks for patience, CredentialsRefused where it refuses the keys."""

    async def aclose(self) -> None:
        """Ends connections."""
        ...


class MarketDataService(Protocol):
    """A vendor's history, from which the data folder is filled. Every question raises CredentialsRefused, ConfigError
    where address or feed are not the account's, MissingData for what cannot be a symbol, NetworkError and
    TryAgainLater."""

    vendor: str
    """The vendor's name in messages."""

    feed: str
    """Which of the vendor's prices of shares these are; bars of two feeds are not mixed in one file."""

    def bars(self, symbols: Sequence[Symbol], first: date, last: date) -> AsyncIterator[tuple[Symbol, Sequence[Bar]]]:
        """Raw daily bars from one session to another, both included, shares and crypto in requests of their own. A bar
        of a session that is not over may be among them."""
        ...

    async def actions(self, symbols: Sequence[Symbol], first: date, last: date) -> Mapping[Symbol, SymbolActions]:
        """Splits and dividends by ex-date, both days included."""
        ...

    def news(self, symbols: Sequence[Symbol], first: datetime, last: datetime) -> AsyncIterator[Sequence[NewsItem]]:
        """News by the moment of its last change, a page at a time."""
        ...

    async def aclose(self) -> None:
        """Ends connections."""
        ...


class LiveFeed(Protocol):
    """Quotes, trades, headlines and hints of orders as they happen."""

    async def follow(self, symbols: Sequence[Symbol], hear: Callable[[FeedMessage], None]) -> None:
        """Tells `hear` of everything until it is cancelled. A feed that breaks is connected again and asked for in
        the meantime, each told as a FeedState. Raises CredentialsRefused where the keys are refused."""
        ...

    async def latest(self, symbols: Sequence[Symbol]) -> Sequence[FeedMessage]:
        """The latest quotes and trades, asked for at this moment. Raises NetworkError, TryAgainLater,
        CredentialsRefused."""
        ...


class Notifier(Protocol):
    """Somebody who wants to hear what runs came to."""

    name: str
    """How it is called in a warning, without anything secret."""

    async def tell(self, summary: Mapping[str, Any]) -> None:
        """Tells what a run came to, as JSON's own types. Raises NotToldError."""
        ...
