"""The broker's time by one plain request: for a daily run that may have nothing to do, and must not load alpaca-py."""

from __future__ import annotations

from datetime import datetime

from connectors.alpaca.failures import question_refused, question_unanswered
from connectors.alpaca.market_facts import broker_clock
from connectors.alpaca.reading import an_object, any_json
from connectors.alpaca.settings import AlpacaSettings

_CLOCK = "/v2/clock"


def broker_now(settings: AlpacaSettings) -> datetime:
    """What time the broker has, UTC; blocks, and asks once. Raises NetworkError, TryAgainLater, CredentialsRefused,
    MalformedData."""
    import httpx

    url = settings.trading_url
    try:
        response = httpx.get(
            f"{url}{_CLOCK}", headers=settings.headers, timeout=settings.timeout, trust_env=not settings.is_local
        )
    except (httpx.TransportError, httpx.DecodingError) as error:
        problem = "no answer in time" if isinstance(error, httpx.TimeoutException) else type(error).__name__
        raise question_unanswered(settings, url, _CLOCK, problem) from None
    if response.status_code != 200:
        raise question_refused(settings, url, _CLOCK, response.status_code, response.text)
    try:
        document = any_json(response.content)
    except ValueError:
        raise question_unanswered(settings, url, _CLOCK, "HTTP 200 with an answer that is not JSON") from None
    return broker_clock(an_object(document, "the broker's clock")).now
