"""The configured broker, found by its folder: addresses from configuration and environment, keys from the environment
alone."""

from __future__ import annotations

import difflib
import importlib
import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import connectors
from engine.broker_registration import BrokerRegistration, BrokerSettings
from engine.config import Config
from engine.errors import ConfigError, PaperdeskError

if TYPE_CHECKING:
    from engine.ports import Broker, Clock, LiveFeed, MarketDataService

SIMULATED = "simulated"
"""The `broker.kind` of a desk without a broker: its orders fill in the simulated market."""
DATA_VENDOR = "alpaca"
"""The broker whose data a desk fetches where its own brings none."""


def broker_of(config: Config) -> BrokerRegistration[Any] | None:
    """The registration of the configured broker; None on the simulated market. Raises ConfigError for a kind that no
    broker has."""
    kind = config.broker.kind
    return None if kind == SIMULATED else _registration(kind)


class ConfiguredBroker:
    """BrokerService over the registration of the configured broker; `kind` is the name of its folder."""

    def __init__(self, config: Config) -> None:
        """Raise ConfigError for a kind that no broker has."""
        self.kind = config.broker.kind
        registered = _registration(self.kind)
        self.title = registered.title
        self.key_variables = registered.key_variables
        self.brings_data = registered.brings_data
        self.is_real_time = registered.is_real_time
        self._config = config

    @property
    def described(self) -> Mapping[str, str]:
        """Addresses and limits by name."""
        return self._settings.described

    @property
    def is_local(self) -> bool:
        """True where the account is on this machine."""
        return self._settings.is_local

    def open(self, attempts: int | None = None) -> Broker:
        """The account; the adapter decides how often a question is repeated where `attempts` does not."""
        return self._registered.open_broker(self._settings, attempts)

    def open_feed(self, clock: Clock) -> LiveFeed | None:
        """The account's live feed; None where there is none."""
        return None if self._registered.open_feed is None else self._registered.open_feed(self._settings, clock)

    def open_data(self) -> MarketDataService:
        """The broker's market data, or that of DATA_VENDOR."""
        return open_data(self._config)

    def time(self) -> datetime | None:
        """The broker's time, requested once and quickly."""
        settings = self._settings
        try:
            return self._registered.now(settings)
        except PaperdeskError:
            return None  # a caller that needs it asks again, patiently, and gets the reason

    @property
    def _registered(self) -> BrokerRegistration[Any]:
        # Looked up at each use: a registration holds functions, and this value is pickled.
        return _registration(self.kind)

    @property
    def _settings(self) -> BrokerSettings:
        settings: BrokerSettings = self._registered.settings(self._config.broker, os.environ)
        return settings


def open_data(config: Config) -> MarketDataService:
    """The data service of the desk's broker, or of DATA_VENDOR for a desk whose broker brings none.

    Nothing is requested yet. Raises ConfigError for an address that is not paper, CredentialsRefused for a missing key.
    """
    own = broker_of(config)
    vendor = own if own is not None and own.open_data is not None else _registration(DATA_VENDOR)
    assert vendor.open_data is not None
    return vendor.open_data(vendor.settings(config.broker, os.environ))


def broker_keys() -> tuple[str, ...]:
    """The environment variables of every broker's keys, sorted."""
    return tuple(sorted({variable for kind in _kinds() for variable in _registration(kind).key_variables}))


def _registration(kind: str) -> BrokerRegistration[Any]:
    known = _kinds()
    if kind not in known:
        near = difflib.get_close_matches(kind, [SIMULATED, *known], 1)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join([SIMULATED, *known])}"
        raise ConfigError(f"broker.kind: there is no broker {kind}; {hint}")
    registration: BrokerRegistration[Any] = importlib.import_module(f"connectors.{kind}.registration").BROKER
    return registration


def _kinds() -> list[str]:
    """Every folder of connectors that registers a broker; none of them is imported for that."""
    return sorted(
        {file.parent.name for folder in connectors.__path__ for file in Path(folder).glob("*/registration.py")}
    )
