"""The live feed's messages: the latest of them for the screens, and lines of the log.

The desk's thread writes messages down at the cost of a look-up; a view is made for the screen at most four times a
second.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from engine.domain.live import ORDER_NEWS, Delivery, FeedMessage, FeedState, Headline, LastTrade, OrderHint, Quote
from engine.errors import PaperdeskError
from engine.market.live_prices import FormingMinutes, LivePrices
from tui.text.plain_text import one_line
from tui.view.live_view import LiveView
from tui.view.state import Line

if TYPE_CHECKING:
    from engine.domain.order import Order
    from engine.reports.documents.records import Records
    from tui.view.desk_port import Source

PRICES = frozenset({"shares", "coins"})
"""The feeds without which prices stand still."""
AT_MOST = 0.25
"""Seconds between two views: the messages in between are one change."""
_WORST = (Delivery.DOWN, Delivery.POLLING, Delivery.STREAM)


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


NOT_BOOKED = "; the desk's next run books it"
"""The rest of a line about an order: a feed only gives a hint, and whoever only reads says who books it."""


def order_name(source: Source, order_id: str) -> str:
    """Side, size and symbol of an order in a desk's journal; its id where that does not have it."""
    from engine.reports.documents import row_json
    from tui.text.run_text import terms

    def found(records: Records) -> Order | None:
        order = None if records.reader is None else records.reader.order(order_id)
        return None if records.reader is None or order is None else records.reader.edited(order)

    with suppress(PaperdeskError):  # what is wrong with a journal is said where it is read whole
        if (order := source.read(found)) is not None:
            return terms(row_json.order(order))
    return order_id


def live_line(message: FeedMessage, *, booked: bool, name: Callable[[str], str] = str) -> Line | None:
    """A line for the log; None for what is no news to a person, such as a price. `booked`: what has become of an order
    is booked at once. `name` makes the words for an order of its id."""
    match message:
        case Headline(symbols, headline, source, at):
            about = f"{' '.join(symbols)}: " if symbols else ""
            return Line(at, "info", one_line(f"{about}{headline}{f' ({source})' if source else ''}"), fed=True)
        case OrderHint(order, event, at) if event in ORDER_NEWS:
            text = f"the broker says {event.replace('_', ' ')}: {name(order)}{'' if booked else NOT_BOOKED}"
            return Line(at, "trade", one_line(text), fed=True)
        case FeedState(feed, delivery, since, detail):
            state = "is up" if delivery is Delivery.STREAM else delivery.name
            level = "info" if delivery is Delivery.STREAM else "warning"
            return Line(since, level, one_line(f"feed of {feed} {state}{f': {detail}' if detail else ''}"), fed=True)
        case _:
            return None
