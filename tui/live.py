"""What a live feed has told, for screens: the desk's thread writes it down, a screen looks a few times a second.

A message costs a look-up in a dict, whoever looks pays for the arithmetic, and never more than so often.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from engine.domain.live import Delivery, FeedMessage, FeedState
from engine.market.live_prices import LivePrices

PRICES = frozenset({"shares", "coins"})
"""The feeds without which prices stand still."""
AT_MOST = 0.25
"""Seconds between two views: what came meanwhile is one change."""
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
    """Takes in what a feed tells, and says how it stands."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._prices = LivePrices()
        self._states: dict[str, FeedState] = {}
        self._last: float | None = None
        self._seen: tuple[float, LiveView] | None = None

    def hear(self, heard: FeedMessage) -> None:
        """The feed told something; in the desk's thread."""
        if isinstance(heard, FeedState):
            self._states[heard.feed] = heard
        else:
            self._last = self._clock()
            self._prices.update(heard)

    def view(self, symbols: tuple[str, ...], now: datetime) -> LiveView:
        """How the feed stands; in the screen's thread. `now` is the desk's time."""
        at = self._clock()
        age = None if self._last is None else max(0.0, at - self._last)
        if self._seen is not None and at - self._seen[0] < AT_MOST:
            return self._seen[1]
        states = dict(self._states)
        how = {state.delivery for feed, state in states.items() if feed in PRICES}
        down = tuple(f for f, state in sorted(states.items()) if f not in PRICES and state.delivery is Delivery.DOWN)
        delivery = next((one for one in _WORST if one in how), None)
        view = LiveView(dict(self._prices.prices(symbols, now)), age, delivery, down)
        self._seen = at, view
        return view


def feed_words(live: LiveView, is_open: bool) -> tuple[str, str]:
    """How the feed is said in a word or two, and the ink: `0.4s`, `STALE 45s`, `POLLING 3s`, `DOWN`."""
    missing = f", no {' and '.join(live.down)}" if live.down else ""
    if live.delivery is None:
        return f"connecting{missing}", "warn"
    if live.delivery is Delivery.DOWN:
        return "DOWN", "warn"
    age = "" if live.age is None else f"{live.age:.1f}s" if live.age < 10 else f"{live.age:.0f}s"
    if live.age is not None and live.age >= 100:
        age = f"{live.age / 60:.0f}m"
    if live.delivery is Delivery.POLLING:
        return f"POLLING {age}".strip() + missing, "warn"
    if is_open and live.age is not None and live.age >= STALE:
        return f"STALE {age}{missing}", "warn"
    return (age or "up") + missing, "warn" if missing else "value"
