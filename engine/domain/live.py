"""Messages of a live feed, and the feed's own state. A feed is a hint: figures for trades and decisions are requested
again.

Times are aware UTC datetimes, prices Decimal in the quote currency, symbols in the desk's notation.

The ways in which a live feed arrives.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.domain.market import Symbol


@dataclass(frozen=True, slots=True)
class Quote:
    """The best bid and ask of a symbol."""

    symbol: Symbol
    bid: Decimal
    ask: Decimal
    time: datetime


@dataclass(frozen=True, slots=True)
class LastTrade:
    """The price at which a symbol was traded last."""

    symbol: Symbol
    price: Decimal
    time: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class MinuteBar:
    """Prices of one minute, raw.

    begins: the minute, UTC.
    open, high, low, close: in the quote currency.
    volume: shares; None where it is not known.
    """

    begins: datetime
    open: Decimal
    high: Decimal
    low: Decimal
    close: Decimal
    volume: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Headline:
    """A new or changed news item."""

    symbols: tuple[Symbol, ...]
    headline: str
    source: str
    time: datetime


ORDER_NEWS = frozenset({"fill", "partial_fill", "canceled", "expired", "rejected", "replaced", "done_for_day"})
"""The broker's events of an order that change more than that it was taken."""


@dataclass(frozen=True, slots=True)
class OrderHint:
    """An order event at the broker: the desk's order id and the broker's event name. It may come twice, or never."""

    order_id: str
    event: str
    time: datetime


@dataclass(frozen=True, slots=True)
class FeedState:
    """A change in the delivery of a feed (`shares`, `coins`, `news` or `orders`); `detail` is the reason."""

    feed: str
    delivery: Delivery
    since: datetime
    detail: str = ""


FeedMessage = Quote | LastTrade | Headline | OrderHint | FeedState


class Delivery(StrEnum):
    """Way in which a feed arrives."""

    STREAM = "stream"
    POLLING = "polling"
    DOWN = "down"
