"""The configured broker, found by its folder: addresses from configuration and environment, keys from the environment
alone."""

from __future__ import annotations

import difflib
import importlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
"""Whose data a desk fetches whose own broker brings none."""


def broker_of(config: Config) -> BrokerRegistration[Any] | None:
    """The registration of the configured broker; None on the simulated market. Raises ConfigError for a kind that no
    broker has."""
    kind = config.broker.kind
    return None if kind == SIMULATED else _registration(kind)


@dataclass(frozen=True, slots=True)
class ConfiguredBroker:
    """BrokerService over the registration of the configured broker."""

    config: Config

    @property
    def kind(self) -> str:
        """The broker's name, which is its folder's."""
        return self.config.broker.kind

    @property
    def title(self) -> str:
        """The account in words."""
        return self._known.title

    @property
    def key_variables(self) -> Sequence[str]:
        """Environment variables of the account's keys."""
        return self._known.key_variables

    @property
    def brings_data(self) -> bool:
        """Whether it fills the desk's data folder."""
        return self._known.brings_data

    @property
    def is_real_time(self) -> bool:
        """Whether it has live prices."""
        return self._known.is_real_time

    @property
    def described(self) -> Mapping[str, str]:
        """Addresses and limits by name."""
        return self._settings.described

    @property
    def is_local(self) -> bool:
        """Whether the account is on this machine."""
        return self._settings.is_local

    def open(self, attempts: int | None = None) -> Broker:
        """The account; the adapter decides how often a question is repeated where `attempts` does not."""
        return self._known.open_broker(self._settings, attempts)

    def open_feed(self, clock: Clock) -> LiveFeed | None:
        """The account's live feed; None where there is none."""
        return None if self._known.open_feed is None else self._known.open_feed(self._settings, clock)

    def open_data(self) -> MarketDataService:
        """The broker's market data, or that of DATA_VENDOR."""
        return open_data(self.config)

    def time(self) -> datetime | None:
        """The broker's time, asked once and quickly."""
        settings = self._settings
        try:
            return self._known.now(settings)
        except PaperdeskError:
            return None  # whoever needs it asks again, patiently, and gets the reason

    @property
    def _known(self) -> BrokerRegistration[Any]:
        return _registration(self.kind)

    @property
    def _settings(self) -> BrokerSettings:
        settings: BrokerSettings = self._known.settings(self.config.broker, os.environ)
        return settings


def open_data(config: Config) -> MarketDataService:
    """The data service of the desk's broker, or of DATA_VENDOR for a desk whose broker brings none. Nothing is asked
    yet. Raises ConfigError for an address that is not paper, CredentialsRefused for a key that is missing."""
    own = broker_of(config)
    known = own if own is not None and own.open_data is not None else _registration(DATA_VENDOR)
    assert known.open_data is not None
    return known.open_data(known.settings(config.broker, os.environ))


def broker_keys() -> tuple[str, ...]:
    """The environment variables of every broker's keys, sorted."""
    return tuple(sorted({variable for kind in _kinds() for variable in _registration(kind).key_variables}))


def _registration(kind: str) -> BrokerRegistration[Any]:
    known = _kinds()
    if kind not in known:
        near = difflib.get_close_matches(kind, [SIMULATED, *known], 1)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join([SIMULATED, *known])}"
        raise ConfigError(f"broker.kind: there is no broker {kind}; {hint}")
    found: BrokerRegistration[Any] = importlib.import_module(f"connectors.{kind}.registration").BROKER
    return found


def _kinds() -> list[str]:
    """Every folder of connectors that registers a broker; none of them is imported for that."""
    return sorted(
        {file.parent.name for folder in connectors.__path__ for file in Path(folder).glob("*/registration.py")}
    )
