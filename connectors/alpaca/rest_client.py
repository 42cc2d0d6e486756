"""alpaca-py's client, with a timeout on every request, no retries of its own, and only answers that it can read.

As measured on alpaca-py 0.44: it sets no timeout, sends a POST up to four times after a 429 or 504, returns None for an
empty body, and raises JSON's errors for a redirect or a page of HTML. Importing this takes half a second, so it is the
only file that imports alpaca.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import requests
from alpaca.common.exceptions import APIError
from alpaca.trading.client import TradingClient
from requests.exceptions import ConnectTimeout, RequestException, Timeout
from urllib3.exceptions import MaxRetryError, NewConnectionError

from connectors.alpaca.failures import HttpRefusal, NoAnswer
from connectors.alpaca.settings import AlpacaSettings


class _Session(requests.Session):
    """requests' session for one account."""

    def __init__(self, settings: AlpacaSettings) -> None:
        super().__init__()
        self._seconds = settings.timeout
        self._without_keys = settings.without_keys
        # A proxy of the environment cannot reach this machine's own addresses.
        self.trust_env = not settings.is_local

    def request(self, method: Any, url: Any, *args: Any, **options: Any) -> requests.Response:
        """One request. Raises NoAnswer for an answer that is neither an error nor JSON."""
        options["timeout"] = self._seconds
        response = super().request(method, url, *args, **options)
        # Every text that is taken from an answer later, for an error or a journal, is without keys.
        response._content = self._without_keys(response.content.decode("utf-8", "replace")).encode()
        response.encoding = "utf-8"
        status = response.status_code
        if 300 <= status < 400:
            raise NoAnswer(f"HTTP {status} sends elsewhere, which is not followed", sent=False)
        if status >= 400 or (str(method).upper() == "DELETE" and not response.content):
            return response
        try:
            response.json()
        except ValueError:
            kind = response.headers.get("content-type", "no type")[:60]
            detail = f"of {kind}" if response.content else "without a body"
            raise NoAnswer(f"HTTP {status} with an answer {detail}, not JSON") from None
        return response


class RestClient:
    """An alpaca-py client for one account. For one thread at a time; all methods block."""

    def __init__(self, settings: AlpacaSettings) -> None:
        self.trading = TradingClient(
            settings.key, settings.secret, raw_data=True, url_override=settings.trading_url, paper=True
        )
        # It offers no way to set these: the constructor takes 0 retries for "not detail", and knows no timeout.
        self.trading._session = _Session(settings)
        self.trading._retry, self.trading._retry_codes = 0, []

    def call(self, request: Callable[[TradingClient], Any]) -> Any:
        """Result of one request. Raises HttpRefusal, NoAnswer."""
        try:
            return request(self.trading)
        except APIError as error:
            response = error.response
            if response is None:
                raise NoAnswer("an error without an answer") from None
            raise HttpRefusal(response.status_code, response.text) from None
        except RequestException as error:
            raise _no_answer(error) from None

    def close(self) -> None:
        """Close connections."""
        self.trading._session.close()


def _no_answer(error: RequestException) -> NoAnswer:
    if isinstance(error, ConnectTimeout):
        return NoAnswer("no connection in time", sent=False)
    if isinstance(error, Timeout):
        return NoAnswer("no answer in time")
    cause = error.args[0] if error.args else None
    if isinstance(cause, MaxRetryError) and isinstance(cause.reason, NewConnectionError):
        return NoAnswer("no connection can be made", sent=False)
    return NoAnswer(f"the connection broke ({type(error).__name__})")
