"""The registration of Alpaca: its paper account, or the local sandbox that speaks its protocol."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from connectors.alpaca.settings import BASE_URL, DATA_URL, KEY_ID, SECRET_KEY, AlpacaSettings
from engine.broker_registration import BrokerRegistration
from engine.errors import NetworkError, UsageError

if TYPE_CHECKING:
    from connectors.alpaca.broker import AlpacaBroker
    from connectors.alpaca.live_feed import AlpacaLive
    from connectors.alpaca.market_data import AlpacaData
    from engine.ports import Clock
    from engine.settings.config import BrokerConfig


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
    from connectors.alpaca.live_feed import AlpacaLive

    return AlpacaLive(settings, clock)


def _open_data(settings: AlpacaSettings) -> AlpacaData:
    from connectors.alpaca.market_data import AlpacaData

    return AlpacaData(settings)


def _now(settings: AlpacaSettings) -> datetime:
    """The broker's time by one plain request, which blocks: for a daily run that may have nothing to do.

    Raises NetworkError, CredentialsRefused, MalformedData.
    """
    import httpx

    from connectors.alpaca.account import broker_clock
    from connectors.alpaca.failures import credentials_refused, refuses_keys

    url = f"{settings.trading_url}/v2/clock"
    try:
        response = httpx.get(url, headers=settings.headers, timeout=settings.timeout, trust_env=not settings.is_local)
        if refuses_keys(response.status_code, response.text):
            raise credentials_refused(settings, response.status_code)
        document = response.raise_for_status().json()
    except (httpx.HTTPError, ValueError) as error:
        raise NetworkError(f"{url} did not return the time: {type(error).__name__}") from None
    return broker_clock(document).now


def _advance(settings: AlpacaSettings, to: datetime) -> None:
    """Move a sandbox's clock. Raises NetworkError, UsageError for what is no sandbox, or does not reach that far."""
    import httpx

    url = f"{settings.trading_url}/sandbox/clock"
    try:
        done = httpx.post(url, json={"to": to.isoformat()}, timeout=settings.timeout, trust_env=not settings.is_local)
    except httpx.TransportError as error:
        raise NetworkError(f"the sandbox at {settings.trading_url} does not answer: {type(error).__name__}") from None
    if done.status_code == 404:
        raise UsageError(f"the broker at {settings.trading_url} is not a paperdesk sandbox: its clock cannot be moved")
    if done.status_code != 200:
        raise UsageError(f"the sandbox cannot advance to {to:%Y-%m-%d %H:%M} UTC: {done.text[:200]}")


BROKER = BrokerRegistration(
    title="a paper account at Alpaca",
    settings=_settings,
    open_broker=_open_broker,
    now=_now,
    key_variables=(KEY_ID, SECRET_KEY),
    open_feed=_open_feed,
    open_data=_open_data,
    advance=_advance,
)
