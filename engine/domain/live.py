"""What a live feed brings while the market moves, and how the feed itself is. A feed is a hint: what is traded or
decided on is always asked for again.

Times are aware UTC datetimes, prices Decimal in the quote currency, symbols as the desk writes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

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


@dataclass(frozen=True, slots=True)
class Headline:
    """News came, or was changed."""

    symbols: tuple[Symbol, ...]
    headline: str
    source: str
    time: datetime


@dataclass(frozen=True, slots=True)
class OrderHint:
    """Something happened to an order: its id at the desk and the broker's word. It may come twice, or never."""

    order_id: str
    word: str
    time: datetime


class Delivery(StrEnum):
    """How a feed arrives."""

    STREAM = "stream"
    POLLING = "polling"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class FeedState:
    """A feed (`shares`, `coins`, `news` or `orders`) changed the way in which it arrives; `detail` says why."""

    feed: str
    delivery: Delivery
    since: datetime
    detail: str = ""


FeedMessage = Quote | LastTrade | Headline | OrderHint | FeedState
