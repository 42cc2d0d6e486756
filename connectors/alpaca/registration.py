"""The registration of Alpaca: its paper account, or the local sandbox that speaks its protocol."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from connectors.alpaca.settings import BASE_URL, DATA_URL, KEY_ID, SECRET_KEY, AlpacaSettings
from engine.broker_registration import BrokerRegistration

if TYPE_CHECKING:
    from connectors.alpaca.broker import AlpacaBroker
    from connectors.alpaca.data import AlpacaData
    from connectors.alpaca.live import AlpacaLive
    from engine.config import BrokerConfig
    from engine.ports import Clock


def _settings(config: BrokerConfig, environ: Mapping[str, str]) -> AlpacaSettings:
    """Settings with addresses from the environment before the configuration; keys from the environment alone."""
    return AlpacaSettings(
        key=environ.get(KEY_ID, ""),
        secret=environ.get(SECRET_KEY, ""),
        trading_url=environ.get(BASE_URL, "").strip() or config.trading_url,
        data_url=environ.get(DATA_URL, "").strip() or config.data_url,
        timeout=config.timeout,
        feed=config.feed,
    )


def _open_broker(settings: AlpacaSettings, attempts: int | None) -> AlpacaBroker:
    from connectors.alpaca.broker import AlpacaBroker

    return AlpacaBroker(settings) if attempts is None else AlpacaBroker(settings, attempts=attempts)


def _open_feed(settings: AlpacaSettings, clock: Clock) -> AlpacaLive:
    from connectors.alpaca.live import AlpacaLive

    return AlpacaLive(settings, clock)


def _open_data(settings: AlpacaSettings) -> AlpacaData:
    from connectors.alpaca.data import AlpacaData

    return AlpacaData(settings)


def _now(settings: AlpacaSettings) -> datetime:
    from connectors.alpaca.broker_time import broker_now

    return broker_now(settings)


BROKER = BrokerRegistration(
    title="a paper account at Alpaca",
    settings=_settings,
    open_broker=_open_broker,
    now=_now,
    key_variables=(KEY_ID, SECRET_KEY),
    open_feed=_open_feed,
    open_data=_open_data,
)
