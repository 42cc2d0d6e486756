"""The live feed at a moment, as screens show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from engine.domain.live import Delivery

STALE = 20.0
"""Seconds without any message after which a feed is called stale while the market is open."""


@dataclass(frozen=True, slots=True)
class LiveView:
    """A feed at a moment: prices by symbol, seconds since the last message (None: there was none yet), how prices
    arrive (None: not known yet) and the names of other feeds that are down."""

    prices: Mapping[str, Decimal] = field(default_factory=dict)
    age: float | None = None
    delivery: Delivery | None = None
    down: tuple[str, ...] = ()


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
