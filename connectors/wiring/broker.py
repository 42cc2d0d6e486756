"""The configured broker, found by its folder: its addresses from configuration and environment, its keys from the
environment alone."""

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
"""Whose data a desk fetches whose own broker brings none."""


def broker_of(config: Config) -> BrokerRegistration[Any] | None:
    """The registration of the configured broker; None on the simulated market. Raises ConfigError for a kind that no
    broker has."""
    kind = config.broker.kind
    return None if kind == SIMULATED else _registration(kind)


def configured_broker(config: Config) -> BrokerRegistration[Any]:
    """The registration of the configured broker. Raises ConfigError on the simulated market."""
    found = broker_of(config)
    if found is None:
        raise ConfigError(f"broker.kind is {SIMULATED}: this needs an account at a broker ({', '.join(_kinds())})")
    return found


def goes_by_broker(config: Config) -> bool:
    """Whether the desk's time is its broker's."""
    return config.broker.clock == "broker" and broker_of(config) is not None


def fetches_data(config: Config) -> bool:
    """Whether the desk's broker fills its data folder."""
    broker = broker_of(config)
    return broker is not None and broker.brings_data


def broker_settings(config: Config, environ: Mapping[str, str] = os.environ) -> BrokerSettings:
    """Where the account is and who asks. Raises ConfigError for an address that is not paper, CredentialsRefused for a
    key that is missing."""
    settings: BrokerSettings = configured_broker(config).settings(config.broker, environ)
    return settings


def open_broker(config: Config, environ: Mapping[str, str] = os.environ, attempts: int | None = None) -> Broker:
    """The account; nothing is asked yet. Raises as `broker_settings` does."""
    known = configured_broker(config)
    return known.open_broker(known.settings(config.broker, environ), attempts)


def open_feed(config: Config, clock: Clock) -> LiveFeed | None:
    """The live feed of the desk's account; None where there is none. Nothing is asked yet. Raises as `broker_settings`
    does."""
    known = broker_of(config)
    if known is None or known.open_feed is None:
        return None
    return known.open_feed(known.settings(config.broker, os.environ), clock)


def open_data(config: Config) -> MarketDataService:
    """The data service of the desk's broker, or Alpaca's for a desk whose broker brings none. Nothing is asked yet.
    Raises as `broker_settings` does."""
    own = broker_of(config)
    known = own if own is not None and own.open_data is not None else _registration(DATA_VENDOR)
    assert known.open_data is not None
    return known.open_data(known.settings(config.broker, os.environ))


def broker_time(config: Config, environ: Mapping[str, str] = os.environ) -> datetime | None:
    """The broker's time, asked once and quickly; None where it does not say. Raises as `broker_settings` does."""
    known = configured_broker(config)
    settings = known.settings(config.broker, environ)
    try:
        return known.now(settings)
    except PaperdeskError:
        return None  # whoever needs it asks again, patiently, and gets the reason


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
