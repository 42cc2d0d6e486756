"""Translation of refusals and missing answers into Paperdesk's errors, each with what to do."""

from __future__ import annotations

import json
from typing import Any

from connectors.alpaca.settings import BASE_URL, KEY_ID, SECRET_KEY, AlpacaSettings
from engine.errors import CredentialsRefused, NetworkError, PaperdeskError, TryAgainLater

_LONGEST = 300


class HttpRefusal(Exception):
    """An error status of the broker."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status
        self.text = text


class NoAnswer(Exception):
    """No readable answer. `sent` is False only where the request certainly never left."""

    def __init__(self, problem: str, *, sent: bool = True) -> None:
        super().__init__(problem)
        self.problem = problem
        self.sent = sent


def code_and_message(text: str) -> tuple[int | None, str]:
    """Code (None where there is none) and message of an error body, which may be anything."""
    try:
        found: Any = json.loads(text)
    except ValueError:
        return None, ""
    if not isinstance(found, dict):
        return None, ""
    code, message = found.get("code"), found.get("message")
    detail = " ".join(str(message).split())[:_LONGEST] if message else ""
    return code if isinstance(code, int) and not isinstance(code, bool) else None, detail


def refuses_keys(status: int, text: str) -> bool:
    """True where an error refuses the keys: 401, and 403 with one of 401's codes.

    A 403 without a code refuses them too, unless it is a page of something in between (a refused order has a code).
    """
    if status != 403:
        return status == 401
    code, _ = code_and_message(text)
    return "<" not in text if code is None else str(code).startswith("401")


def credentials_refused(settings: AlpacaSettings, status: int) -> CredentialsRefused:
    """Error for keys that the service does not know."""
    return CredentialsRefused(
        f"{KEY_ID} and {SECRET_KEY} were refused by {settings.trading_url} (HTTP {status}): check that both belong to "
        "this paper account"
    )


def query_refused(settings: AlpacaSettings, what: str, status: int, text: str) -> PaperdeskError:
    """Error for a query (never an order) with an error status that waiting did not change."""
    if refuses_keys(status, text):
        return credentials_refused(settings, status)
    url = settings.trading_url
    message = settings.without_keys(code_and_message(text)[1])
    detail = f"HTTP {status}" + (f": {message}" if message else "")
    if 300 <= status < 400:
        return NetworkError(f"{url} sends elsewhere ({what}, {detail}): check the address, {BASE_URL}")
    return NetworkError(f"{url} refuses the request ({what}, {detail}): check the address, {BASE_URL}")


def outcome_unknown(settings: AlpacaSettings, order_id: str, problem: str) -> TryAgainLater:
    """Error for an order that may have arrived, or not."""
    return TryAgainLater(
        f"order {order_id}: outcome not known ({settings.without_keys(problem)}): it is looked up under its id before "
        f"anything else is sent; run again"
    )
