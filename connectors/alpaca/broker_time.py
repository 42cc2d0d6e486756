"""The broker's time by one plain request: for a daily run with nothing to do, which must not load alpaca-py."""

from __future__ import annotations

from datetime import datetime

from connectors.alpaca.failures import query_refused, query_unanswered
from connectors.alpaca.json_fields import json_object, parse_json
from connectors.alpaca.market_facts import broker_clock
from connectors.alpaca.settings import AlpacaSettings

_CLOCK = "/v2/clock"


def broker_now(settings: AlpacaSettings) -> datetime:
    """The broker's time, UTC; blocks for one request.

    Raises NetworkError, TryAgainLater, CredentialsRefused, MalformedData.
    """
    import httpx

    url = settings.trading_url
    try:
        response = httpx.get(
            f"{url}{_CLOCK}", headers=settings.headers, timeout=settings.timeout, trust_env=not settings.is_local
        )
    except (httpx.TransportError, httpx.DecodingError) as error:
        problem = "no answer in time" if isinstance(error, httpx.TimeoutException) else type(error).__name__
        raise query_unanswered(settings, url, _CLOCK, problem) from None
    if response.status_code != 200:
        raise query_refused(settings, url, _CLOCK, response.status_code, response.text)
    try:
        document = parse_json(response.content)
    except ValueError:
        raise query_unanswered(settings, url, _CLOCK, "HTTP 200 with an answer that is not JSON") from None
    return broker_clock(json_object(document, "the broker's clock")).now
