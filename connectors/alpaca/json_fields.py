"""Fields of Alpaca's JSON: those that money depends on are required, others may be missing or new.

Symbols have three notations: BTC-USD at the desk, BTC/USD in Alpaca's orders and prices, BTCUSD in its positions and
news; shares are alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

from engine.domain.market import Symbol, is_crypto
from engine.errors import MalformedData

Raw = Mapping[str, Any]

_ADVICE = "the broker's answer does not match its documentation: check the account there before trading continues"
_QUOTES = ("USDT", "USDC", "USD")
_LONGEST_TICKER = 5
"""Letters of the longest ticker of a share: a longer name that ends in a currency is a pair."""


def json_object(document: Any, where: str) -> Raw:
    """A document as an object. Raises MalformedData."""
    if not isinstance(document, dict):
        raise MalformedData(f"{where}: not a JSON object but {_shown(document)}; {_ADVICE}")
    return document


def json_objects(document: Any, where: str) -> list[Raw]:
    """A document as a list of objects. Raises MalformedData."""
    if not isinstance(document, list):
        raise MalformedData(f"{where}: not a JSON list but {_shown(document)}; {_ADVICE}")
    return [json_object(one, where) for one in document]


def text_of(raw: Raw, name: str) -> str:
    """A text, empty where it is missing."""
    value = raw.get(name)
    return "" if value is None else str(value)


@dataclass(frozen=True, slots=True)
class Fields:
    """One JSON object of the broker's, read by field; `where` names it in errors. Raises MalformedData."""

    raw: Raw
    where: str

    def text(self, name: str) -> str:
        """A text, empty where it is missing."""
        return text_of(self.raw, name)

    def required(self, name: str) -> str:
        """A text that must exist."""
        return self.text(name) or self._missing(name)

    def flag(self, name: str) -> bool:
        """True where a field says so; a missing one is False."""
        return str(self.raw.get(name)).lower() == "true"

    def number(self, name: str) -> Decimal:
        """A number that money depends on, written as text or not."""
        number = self.number_or_none(name)
        return self._missing(name) if number is None else number

    def number_or_none(self, name: str) -> Decimal | None:
        """A number as `number` reads it; None where it is missing, null or empty."""
        value = self.raw.get(name)
        if value is None or value == "":
            return None
        try:
            number = Decimal("NaN") if isinstance(value, bool) else Decimal(str(value))
        except InvalidOperation:
            number = Decimal("NaN")
        if not number.is_finite():
            raise MalformedData(f"{self.where}: {name} is not a number but {_shown(value)}; {_ADVICE}")
        return number

    def moment(self, name: str) -> datetime:
        """A time in UTC; one without an offset is UTC already, a bare date its beginning."""
        moment = self.moment_or_none(name)
        if moment is None:
            raise MalformedData(f"{self.where}: {name} is not a time but {_shown(self.raw.get(name))}; {_ADVICE}")
        return moment

    def moment_or_none(self, name: str) -> datetime | None:
        """A time as `moment` reads it; None where it is missing or cannot be read."""
        try:
            moment = datetime.fromisoformat(self.text(name))
        except ValueError:
            return None
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)

    def _missing(self, name: str) -> NoReturn:
        raise MalformedData(f"{self.where}: {name} is missing; {_ADVICE}")


def exact(value: object) -> Decimal:
    """A number of a JSON document. Raises TypeError for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise TypeError(f"{str(value)[:40]!r} is no number")
    return Decimal(value)


def positive(value: object) -> Decimal:
    """A price or a rate of a JSON document. Raises TypeError, ValueError for anything but a number above zero."""
    number = exact(value)
    if not number > 0:
        raise ValueError(f"{number} is not above zero")
    return number


def utc(text: str) -> datetime:
    """A time with its offset, as UTC. Raises ValueError, TypeError for anything else."""
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError(f"{text[:40]} has no time zone")
    return found.astimezone(UTC)


def utc_text(time: datetime, timespec: str = "auto") -> str:
    """A time in the notation of a query, with as many decimals of a second as `timespec` says."""
    return f"{time.astimezone(UTC).replace(tzinfo=None).isoformat(timespec=timespec)}Z"


def to_wire(symbol: Symbol) -> str:
    """A symbol in the notation of Alpaca's orders."""
    return symbol.replace("-", "/") if is_crypto(symbol) else symbol


def from_wire(name: str, asset_class: str = "") -> Symbol:
    """A symbol of Alpaca's in the desk's notation; `asset_class` is its class where given. An unknown name stays as it
    is."""
    if "/" in name:
        return name.replace("/", "-")
    if asset_class == "crypto" or (not asset_class and name.isalpha() and len(name) > _LONGEST_TICKER):
        quote = next((q for q in _QUOTES if name.endswith(q) and len(name) > len(q)), None)
        if quote is not None:
            return f"{name.removesuffix(quote)}-{quote}"
    return name


def compact(symbol: Symbol) -> str:
    """A symbol in the notation of news."""
    return to_wire(symbol).replace("/", "")


def by_wire(symbols: Iterable[Symbol]) -> dict[str, Symbol]:
    """Our symbols by each of Alpaca's notations."""
    return {name: symbol for symbol in symbols for name in (to_wire(symbol), compact(symbol))}


def _shown(value: Any) -> str:
    return repr(value)[:60]
