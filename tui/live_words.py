"""What a live feed tells, in words: headlines, hints of orders, and how the feed itself is."""

from __future__ import annotations

from engine.domain.live import Delivery, FeedMessage, FeedState, Headline, OrderHint
from tui.plain_text import one_line
from tui.state import Line

HINTS = frozenset({"fill", "partial_fill", "canceled", "expired", "rejected", "replaced", "done_for_day"})
"""Words on orders that a person wants to hear; that one was sent is said by the desk itself."""


def live_line(heard: FeedMessage) -> Line | None:
    """A line for the log; None for what is no news to a person, such as a price."""
    match heard:
        case Headline():
            about = f"{' '.join(heard.symbols)}: " if heard.symbols else ""
            source = f" ({heard.source})" if heard.source else ""
            return Line(heard.time, "info", one_line(f"{about}{heard.headline}{source}"))
        case OrderHint() if heard.event in HINTS:
            return Line(
                heard.time, "trade", one_line(f"the broker says {heard.event.replace('_', ' ')}: {heard.order_id}")
            )
        case FeedState(feed, delivery, since, detail):
            how = {
                Delivery.STREAM: "is up",
                Delivery.POLLING: "POLLING",
                Delivery.DOWN: "DOWN",
            }[delivery]
            level = "info" if delivery is Delivery.STREAM else "warning"
            return Line(since, level, one_line(f"feed of {feed} {how}{f': {detail}' if detail else ''}"))
        case _:
            return None
