"""The configured broker: its addresses from configuration and environment, its keys from the environment alone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from connectors.alpaca.settings import BASE_URL, DATA_URL, KEY_ID, SECRET_KEY, AlpacaSettings
from engine.config import Config
from engine.errors import PaperdeskError
from engine.ports import Clock, LiveFeed

if TYPE_CHECKING:
    from connectors.alpaca.broker import AlpacaBroker


def broker_settings(config: Config, environ: Mapping[str, str] = os.environ) -> AlpacaSettings:
    """Where the paper account is and who asks. Raises ConfigError for an address that is not paper, CredentialsRefused
    for a key that is missing."""
    return AlpacaSettings(
        key=environ.get(KEY_ID, ""),
        secret=environ.get(SECRET_KEY, ""),
        trading_url=environ.get(BASE_URL, "").strip() or config.broker.trading_url,
        data_url=environ.get(DATA_URL, "").strip() or config.broker.data_url,
        timeout=config.broker.timeout,
        feed=config.broker.feed,
    )


def open_broker(config: Config, environ: Mapping[str, str] = os.environ) -> AlpacaBroker:
    """The paper account. Nothing is asked yet. Raises as `broker_settings` does."""
    from connectors.alpaca.broker import AlpacaBroker

    return AlpacaBroker(broker_settings(config, environ))


def open_feed(config: Config, clock: Clock) -> LiveFeed | None:
    """The live feed of the desk's account; None on the simulated market. Nothing is asked yet. Raises as
    `broker_settings` does."""
    if config.broker.kind == "simulated":
        return None
    from connectors.alpaca.live import AlpacaLive

    return AlpacaLive(broker_settings(config), clock)


def broker_time(config: Config, environ: Mapping[str, str] = os.environ) -> datetime | None:
    """The broker's time, asked once and quickly; None where it does not say. Raises as `broker_settings` does."""
    from connectors.alpaca.broker_time import broker_now

    settings = broker_settings(config, environ)
    try:
        return broker_now(settings)
    except PaperdeskError:
        return None  # whoever needs it asks again, patiently, and gets the reason
