"""Settings of a paper account: two addresses, two keys, and the rule that only paper is traded."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from connectors.loopback import is_loopback
from engine.errors import ConfigError, CredentialsRefused
from engine.settings import places

KEY_ID, SECRET_KEY = "APCA_API_KEY_ID", "APCA_API_SECRET_KEY"
BASE_URL, DATA_URL = "APCA_API_BASE_URL", "APCA_API_DATA_URL"
PAPER_HOST, LIVE_HOST = "paper-api.alpaca.markets", "api.alpaca.markets"
PAPER_URL = f"https://{PAPER_HOST}"
DATA_HOSTS = frozenset({"data.alpaca.markets", "data.sandbox.alpaca.markets"})
"""The broker's own hosts of market data; the keys that trade go nowhere else."""
HIDDEN = "(a key)"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlpacaSettings:
    """Keys and addresses of a paper account.

    key, secret: never shown.
    trading_url, data_url: without a slash at the end, without /v2.
    timeout: seconds per request.
    feed: the stock price feed that the account may read.
    Raises ConfigError for a trading address that is neither the paper host nor this machine, or a data address that
    is neither the broker's own, over https, nor this machine; CredentialsRefused for keys that are missing or invalid.
    """

    key: str = field(repr=False)
    secret: str = field(repr=False)
    trading_url: str = PAPER_URL
    data_url: str = "https://data.alpaca.markets"
    timeout: float = 15.0
    feed: str = "iex"

    def __post_init__(self) -> None:
        # Checked here, so that no settings exist that were not checked.
        object.__setattr__(self, "trading_url", checked_trading_url(self.trading_url))
        object.__setattr__(self, "data_url", checked_data_url(self.data_url))
        object.__setattr__(self, "key", _checked_key(KEY_ID, self.key))
        object.__setattr__(self, "secret", _checked_key(SECRET_KEY, self.secret))

    @property
    def headers(self) -> dict[str, str]:
        """Headers of every request."""
        return {"APCA-API-KEY-ID": self.key, "APCA-API-SECRET-KEY": self.secret}

    @property
    def is_local(self) -> bool:
        """True for an account on this machine: the sandbox, which is reached without a proxy."""
        return is_loopback(self.trading_url)

    @property
    def described(self) -> dict[str, str]:
        """Both addresses, with timeout and feed."""
        return {
            "address": f"{self.trading_url}, given up after {self.timeout:g} s",
            "data address": f"{self.data_url}, feed {self.feed}",
        }

    def without_keys(self, text: str) -> str:
        """A foreign text without our keys."""
        return text.replace(self.secret, HIDDEN).replace(self.key, HIDDEN)


def checked_trading_url(url: str) -> str:
    """The normalised address of an account. Raises ConfigError for anything but the paper host and this machine."""
    parts = _split(url, "trading")
    if is_loopback(parts.geturl()):
        return _tidy(parts)
    if parts.hostname == PAPER_HOST and parts.scheme == "https" and parts.port in (None, 443):
        return PAPER_URL
    if parts.hostname == LIVE_HOST:
        raise ConfigError(f"{LIVE_HOST} trades real money and is never used: set the trading address to {PAPER_URL}")
    raise ConfigError(
        f"{_shown(parts)} is not a trading address: only {PAPER_URL} or an address of this machine is used; correct "
        f"broker.trading_url or {BASE_URL}"
    )


def checked_data_url(url: str) -> str:
    """The normalised address of market data. Raises ConfigError for one that is neither a host of the broker's, over
    https, nor this machine."""
    parts = _split(url, "data")
    if not is_loopback(parts.geturl()) and not _is_own(parts):
        raise ConfigError(
            f"{_shown(parts)} is not a market data address: keys are only sent over https to the broker's own hosts "
            f"({', '.join(sorted(DATA_HOSTS))}) or to this machine; correct broker.data_url or {DATA_URL}"
        )
    return _tidy(parts)


def _is_own(parts: SplitResult) -> bool:
    return parts.hostname in DATA_HOSTS and parts.scheme == "https" and parts.port in (None, 443)


def _split(url: str, what: str) -> SplitResult:
    problem = ""
    try:
        parts = urlsplit(url.strip())
        _ = parts.port  # a port that is none raises here
    except ValueError:
        problem = "it cannot be read"
    else:
        if parts.scheme not in ("http", "https") or not parts.hostname:
            problem = "it has to begin with https:// or http://, and to name a host"
        elif parts.username or parts.password:
            problem = "keys belong into the environment, not into it"
        elif parts.query or parts.fragment:
            problem = "it ends with the host, or a path"
    if problem:
        variable, setting = (BASE_URL, "trading_url") if what == "trading" else (DATA_URL, "data_url")
        raise ConfigError(f"the {what} address is invalid: {problem}; correct broker.{setting} or {variable}")
    return parts


def _tidy(parts: SplitResult) -> str:
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/').removesuffix('/v2').rstrip('/')}"


def _shown(parts: SplitResult) -> str:
    return f"{parts.scheme}://{parts.hostname}"


def _checked_key(variable: str, key: str) -> str:
    key = key.strip()
    if not key:
        raise CredentialsRefused(
            f"{variable} is not set: the paper account's keys come from {places.keys_file()}, or from the environment, "
            f"{KEY_ID} and {SECRET_KEY}"
        )
    # An HTTP library that gets such a header quotes it in its error.
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise CredentialsRefused(f"{variable} contains characters that no key has: copy it again")
    return key
