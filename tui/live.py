"""The live feed on screens: its prices and state at a moment, and its messages as lines of the log.

The desk's thread writes messages down at the cost of a look-up; a view is made for the screen at most four times a
second.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from engine.domain.live import ORDER_NEWS, Delivery, FeedMessage, FeedState, Headline, LastTrade, OrderHint, Quote
from engine.market.forming_minutes import FormingMinutes
from engine.market.live_prices import LivePrices
from tui.plain_text import one_line
from tui.state import Line

PRICES = frozenset({"shares", "coins"})
"""The feeds without which prices stand still."""
AT_MOST = 0.25
"""Seconds between two views: the messages in between are one change."""
STALE = 20.0
"""Seconds without any message after which a feed is called stale while the market is open."""
_WORST = (Delivery.DOWN, Delivery.POLLING, Delivery.STREAM)


@dataclass(frozen=True, slots=True)
class LiveView:
    """A feed at a moment: prices by symbol, seconds since the last message (None: there was none yet), how prices
    arrive (None: not known yet) and the names of other feeds that are down."""

    prices: Mapping[str, Decimal] = field(default_factory=dict)
    age: float | None = None
    delivery: Delivery | None = None
    down: tuple[str, ...] = ()


class LiveBoard:
    """The latest messages of a feed: written in the desk's thread, viewed in the screen's.

    minutes: bars of a minute since the feed is followed.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.minutes = FormingMinutes()
        self._clock = clock
        self._prices = LivePrices()
        self._states: dict[str, FeedState] = {}
        self._last: float | None = None
        self._seen: tuple[float, LiveView] | None = None

    def on_message(self, message: FeedMessage) -> None:
        """Store a message."""
        if isinstance(message, FeedState):
            self._states[message.feed] = message
        else:
            self._last = self._clock()
            self._prices.update(message)
        if isinstance(message, Quote | LastTrade):
            price = self._prices.price(message.symbol, message.time)
            if price is not None:
                self.minutes.add(message.symbol, price, message.time)

    def view(self, symbols: tuple[str, ...], now: datetime) -> LiveView:
        """The feed at this moment; `now` is the desk's time."""
        at = self._clock()
        if self._seen is not None and at - self._seen[0] < AT_MOST:
            return self._seen[1]
        age = None if self._last is None else max(0.0, at - self._last)
        states = sorted(dict(self._states).items())
        deliveries = {state.delivery for feed, state in states if feed in PRICES}
        down = tuple(feed for feed, state in states if feed not in PRICES and state.delivery is Delivery.DOWN)
        delivery = next((one for one in _WORST if one in deliveries), None)
        view = LiveView(dict(self._prices.prices(symbols, now)), age, delivery, down)
        self._seen = at, view
        return view


def feed_text(live: LiveView, is_open: bool) -> tuple[str, str]:
    """The state of the feed in a word or two, and its ink: `0.4s`, `STALE 45s`, `POLLING 3s`, `DOWN`."""
    missing = f", no {' and '.join(live.down)}" if live.down else ""
    if live.delivery is None:
        return f"connecting{missing}", "warn"
    if live.delivery is Delivery.DOWN:
        return "DOWN", "warn"
    age = _age(live.age)
    if live.delivery is Delivery.POLLING:
        return f"POLLING {age}".strip() + missing, "warn"
    if is_open and live.age is not None and live.age >= STALE:
        return f"STALE {age}{missing}", "warn"
    return (age or "up") + missing, "warn" if missing else "value"


def _age(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds >= 100:
        return f"{seconds / 60:.0f}m"
    return f"{seconds:.{0 if seconds >= 10 else 1}f}s"


NOT_BOOKED = "; the desk's next run books it"
"""The rest of a line about an order: a feed only gives a hint, and whoever only reads says who books it."""


def live_line(message: FeedMessage, *, booked: bool) -> Line | None:
    """A line for the log; None for what is no news to a person, such as a price. `booked`: what has become of an order
    is booked at once."""
    match message:
        case Headline(symbols, headline, source, at):
            about = f"{' '.join(symbols)}: " if symbols else ""
            return Line(at, "info", one_line(f"{about}{headline}{f' ({source})' if source else ''}"))
        case OrderHint(order, event, at) if event in ORDER_NEWS:
            text = f"the broker says {event.replace('_', ' ')}: {order}{'' if booked else NOT_BOOKED}"
            return Line(at, "trade", one_line(text))
        case FeedState(feed, delivery, since, detail):
            state = "is up" if delivery is Delivery.STREAM else delivery.name
            level = "info" if delivery is Delivery.STREAM else "warning"
            return Line(since, level, one_line(f"feed of {feed} {state}{f': {detail}' if detail else ''}"))
        case _:
            return None
