"""The registration of a broker: everything that the program has to know of one, stated once in the broker's own folder.

`connectors/KIND/registration.py` states it as BROKER, and `broker.kind` names the folder. Other modules read a
registration's properties, never its name. The simulated market is no broker and has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from datetime import datetime

    from engine.config import BrokerConfig
    from engine.ports import Broker, Clock, LiveFeed, MarketDataService


class BrokerSettings(Protocol):
    """Checked addresses and keys of an account; making them sends no request."""

    @property
    def is_local(self) -> bool:
        """True for an account on this machine, whose clock may run at any speed."""
        ...

    @property
    def described(self) -> Mapping[str, str]:
        """Settings by name for `paperdesk doctor`; never a key."""
        ...


S = TypeVar("S", bound=BrokerSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistration(Generic[S]):
    """One broker. Its module is read by commands that start quickly, so its callables import what they need.

    title: the account in words, such as `a paper account at Alpaca`.
    key_variables: environment variables that hold the account's keys.
    settings: from the section [broker] and the environment; raises ConfigError, CredentialsRefused.
    open_broker: the account, with the number of attempts per request (None: the broker's own patience).
    now: the broker's time, UTC; blocks for one request. Raises as the port Broker does.
    open_feed: live prices and news; None where there are none, and so no cycles within a session.
    open_data: bars, actions and news for the data folder; None where the broker provides no data.
    """

    title: str
    settings: Callable[[BrokerConfig, Mapping[str, str]], S]
    open_broker: Callable[[S, int | None], Broker]
    now: Callable[[S], datetime]
    key_variables: tuple[str, ...] = ()
    open_feed: Callable[[S, Clock], LiveFeed] | None = None
    open_data: Callable[[S], MarketDataService] | None = None

    @property
    def brings_data(self) -> bool:
        """True where a desk at this broker fetches its data folder from it."""
        return self.open_data is not None

    @property
    def is_real_time(self) -> bool:
        """True where prices move between two closes, so that a desk may run cycles within a session."""
        return self.open_feed is not None
