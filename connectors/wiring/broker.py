"""The configured broker, found by its folder, its file or its entry point: addresses from configuration and
environment, keys from the environment alone."""

from __future__ import annotations

import importlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import connectors
from engine.broker_registration import BrokerRegistration, BrokerService
from engine.domain.market import Exchange
from engine.domain.text import did_you_mean
from engine.errors import ConfigError
from engine.program_files import broken_installation
from engine.settings.config import Config
from engine.settings.user_code import Kind, entry_names, is_file_reference, load_name

if TYPE_CHECKING:
    from engine.ports import MarketDataService

SIMULATED = "simulated"
"""The `broker.kind` of a desk without a broker: its orders fill in the simulated market."""
DATA_VENDOR = "alpaca"
"""The broker whose data a desk fetches where its own brings none."""


def broker_of(config: Config) -> BrokerService | None:
    """The account at the configured broker; None on the simulated market.

    Raises ConfigError for a kind that no broker has.
    """
    kind = config.broker.kind
    return None if kind == SIMULATED else _service(config, kind)


def open_data(config: Config) -> MarketDataService:
    """The data service of the desk's broker, or of DATA_VENDOR for a desk whose broker brings none.

    Nothing is requested yet. Raises ConfigError for an address that is not paper, CredentialsRefused for a missing key.
    """
    source = _data_service(config).open_data()
    assert source is not None
    return source


def offers_data(config: Config, exchange: Exchange) -> bool:
    """True where that data service has the symbols of an exchange."""
    return _data_service(config).registration.trades(exchange)


def broker_keys(config: Config) -> tuple[str, ...]:
    """The environment variables of the keys of every broker that ships, and of the configured one, sorted."""
    kinds = {*_kinds(), config.broker.kind} - {SIMULATED}
    return tuple(sorted({variable for kind in kinds for variable in _registration(kind).key_variables}))


def _data_service(config: Config) -> BrokerService:
    own = broker_of(config)
    return own if own is not None and own.registration.brings_data else _service(config, DATA_VENDOR)


def _service(config: Config, kind: str) -> BrokerService:
    _registration(kind)
    return BrokerService(config.broker, partial(_registration, kind))


def _registration(kind: str) -> BrokerRegistration[Any]:
    shipped = _kinds()
    if kind in shipped:
        registration: BrokerRegistration[Any] = importlib.import_module(f"connectors.{kind}.registration").BROKER
        return registration
    installed = () if is_file_reference(kind) else entry_names(Kind.BROKER)
    if not is_file_reference(kind) and kind not in installed:
        known = [SIMULATED, *shipped, *installed]
        hint = did_you_mean(kind, known, f"available: {', '.join(known)}, and FILE.py:NAME")
        raise ConfigError(f"broker.kind: unknown broker {kind}; {hint}")
    if is_file_reference(kind) and not Path(kind).expanduser().is_absolute():
        raise ConfigError(f"broker.kind: {kind} has to begin with its whole path: a desk runs from any folder")
    found = load_name(kind, Kind.BROKER)
    if not isinstance(found, BrokerRegistration):
        raise ConfigError(f"broker.kind: {kind} is not a BrokerRegistration")
    return found


def _kinds() -> list[str]:
    """Every folder of connectors that registers a broker; none of them is imported for that. Raises InvariantBroken for
    an installation without any."""
    found = {file.parent.name for folder in connectors.__path__ for file in Path(folder).glob("*/registration.py")}
    if not found:
        raise broken_installation([f"connectors/{DATA_VENDOR}/registration.py"])
    return sorted(found)
