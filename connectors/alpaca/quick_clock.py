"""What time the broker has, asked once and with little loaded: for whoever only wants to know which session is due."""

from __future__ import annotations

from datetime import datetime

from connectors.alpaca.market_facts import broker_clock
from connectors.alpaca.settings import AlpacaSettings
from engine.errors import PaperdeskError


def broker_now(settings: AlpacaSettings) -> datetime | None:
    """The broker's time, UTC; None where it does not say: whoever needs it then asks properly and gets the reason."""
    import httpx

    try:
        answer = httpx.get(
            f"{settings.trading_url}/v2/clock",
            headers=settings.headers,
            timeout=settings.timeout,
            trust_env=not settings.is_local,
        )
        found = answer.json() if answer.status_code == httpx.codes.OK else None
        return broker_clock(found).now if isinstance(found, dict) else None
    except (httpx.HTTPError, ValueError, PaperdeskError):
        return None
