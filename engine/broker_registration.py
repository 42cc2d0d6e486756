"""The registration of a broker: everything that the program has to know of one, stated once in the broker's own folder.

`connectors/KIND/registration.py` states it as BROKER, and `broker.kind` names the folder; of a broker of the user's own
it names the file (FILE.py:NAME) or an entry point of the group `paperdesk.brokers`. Other modules read a
registration's properties, never its name. The simulated market is no broker and has none.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from engine.domain.market import AROUND_THE_CLOCK, Exchange
from engine.errors import PaperdeskError, UsageError

if TYPE_CHECKING:
    from datetime import datetime

    from engine.ports import Broker, Clock, LiveFeed, MarketDataService
    from engine.settings.config import BrokerConfig


class BrokerSettings(Protocol):
    """Checked addresses and keys of an account; making them sends no request."""

    @property
    def is_local(self) -> bool:
        """True for an account on this machine, whose clock may run at any speed."""

    @property
    def described(self) -> Mapping[str, str]:
        """Settings by name for `paperdesk doctor`; never a key."""


S = TypeVar("S", bound=BrokerSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistration(Generic[S]):
    """One broker. Its module is read by commands that start quickly, so its callables import what they need.

    title: the account in words, such as `a paper account at Alpaca`.
    key_variables: environment variables that hold the account's keys.
    settings: from the section [broker] and the environment; raises ConfigError, CredentialsRefused.
    open_broker: the account, with the number of attempts per request (None: the broker's own patience).
    now: the broker's time, UTC; blocks for one request. Raises NetworkError and MalformedData.
    open_feed: live prices and news; None where there are none, and so no cycles within a session.
    open_data: bars, actions and news for the data folder; None where the broker provides no data.
    advance: moves the clock of the broker's sandbox to a time; None where it has none. Raises UsageError for an account
        whose clock nobody moves.
    calendar, currency: of the shares that it trades and has data of; its crypto is in the same currency.
    """

    title: str
    settings: Callable[[BrokerConfig, Mapping[str, str]], S]
    open_broker: Callable[[S, int | None], Broker]
    now: Callable[[S], datetime]
    key_variables: tuple[str, ...] = ()
    open_feed: Callable[[S, Clock], LiveFeed] | None = None
    open_data: Callable[[S], MarketDataService] | None = None
    advance: Callable[[S, datetime], None] | None = None
    calendar: str = "XNYS"
    currency: str = "USD"

    def trades(self, exchange: Exchange) -> bool:
        """True where the broker has the symbols of an exchange, or pairs of its currency."""
        return exchange.currency == self.currency and exchange.calendar in (self.calendar, AROUND_THE_CLOCK)

    @property
    def brings_data(self) -> bool:
        """True where a desk at this broker fetches its data folder from it."""
        return self.open_data is not None

    @property
    def is_real_time(self) -> bool:
        """True where prices move between two closes, so that a desk may run cycles within a session."""
        return self.open_feed is not None


@dataclass(frozen=True, slots=True)
class BrokerService:
    """The configured account at a broker.

    What needs its address or keys raises ConfigError for an address that is not a paper account's, CredentialsRefused
    for a missing key.
    """

    config: BrokerConfig
    find: Callable[[], BrokerRegistration[Any]]
    """Finder of the registration, which holds functions and so is not kept in a value that is pickled."""

    @property
    def registration(self) -> BrokerRegistration[Any]:
        """Everything that the broker can do."""
        return self.find()

    @property
    def settings(self) -> BrokerSettings:
        """Addresses and keys."""
        settings: BrokerSettings = self.registration.settings(self.config, os.environ)
        return settings

    def open(self, attempts: int | None = None) -> Broker:
        """The account; `attempts` bounds how often a query is repeated. Nothing is requested yet."""
        return self.registration.open_broker(self.settings, attempts)

    def open_feed(self, clock: Clock) -> LiveFeed | None:
        """The account's live feed; None where there is none. Nothing is requested yet."""
        open_feed = self.registration.open_feed
        return None if open_feed is None else open_feed(self.settings, clock)

    def open_data(self) -> MarketDataService | None:
        """The broker's market data; None where it provides none. Nothing is requested yet."""
        open_data = self.registration.open_data
        return None if open_data is None else open_data(self.settings)

    def advance(self, to: datetime) -> None:
        """Move the clock of a sandbox to a time (UTC). Raises UsageError where the broker has none."""
        advance = self.registration.advance
        if advance is None:
            raise UsageError(f"{self.registration.title} has no clock that can be moved")
        advance(self.settings, to)

    def now(self) -> datetime:
        """The broker's time, requested once and quickly. Raises NetworkError, CredentialsRefused, MalformedData."""
        return self.registration.now(self.settings)

    def time(self) -> datetime | None:
        """The same; None where it does not answer. Raises CredentialsRefused for keys that are not there."""
        settings = self.settings
        try:
            return self.registration.now(settings)
        except PaperdeskError:
            return None  # a caller that needs it asks again, patiently, and gets the reason
