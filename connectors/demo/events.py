"""What happens to a listing and moves its price: the one account of it that prices and news share."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import IntEnum

from connectors.demo.quarters import Quarter


class Slot(IntEnum):
    """When on a session's day something becomes known."""

    BEFORE_OPEN = 0
    IN_SESSION = 1
    AFTER_CLOSE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that becomes known on a session. `kind` is a section of news.toml, `direction` 1 (good), -1 (bad)
    or 0. `jump` is the move at once and `drift` that of each of the DRIFTS sessions after the one in which a reader
    could first act, both in parts per million. `amount` is a dividend in cents, or at a split the new
    shares for `per` old ones, or with results how many a share of the beginning has become, likewise."""

    row: int
    session: date
    slot: Slot
    kind: str
    direction: int
    jump: int
    drift: int
    quarter: Quarter | None = None
    amount: int = 0
    per: int = 1
    effective: date | None = None
    """The day from which a dividend or split is taken off the price; on a day without a session, the next one."""
    price: int = 0
    """The last close before it, in cents."""


DRIFTS = 6
"""For how many sessions the price goes on into the direction of real news."""

COMPANY_NEWS = ("contract", "product", "analyst", "legal", "supply", "guidance", "management", "capital")
COIN_NEWS = ("adoption", "network", "regulation", "holders")
EARNINGS, DIVIDEND, SPLIT = "earnings", "dividend", "split"
