"""Events of a listing that move its price: the one record shared by prices and news."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import IntEnum

from connectors.demo.quarters import Quarter


class Slot(IntEnum):
    """Time of a session's day at which something becomes known."""

    BEFORE_OPEN = 0
    IN_SESSION = 1
    AFTER_CLOSE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event that becomes known on a session.

    row, session: when.
    slot: time of day.
    kind: a section of news.toml.
    direction: 1 (good), -1 (bad) or 0.
    jump: the immediate move, in parts per million.
    drift: the move of each of the DRIFTS sessions after the first in which a reader could act, in parts per million.
    quarter: the results, if it reports any.
    amount, per: a dividend in cents; of a split the new shares for `per` old ones; with results the present shares for
        `per` shares of the beginning.
    effective: day from which a dividend or split is taken off the price; without a session, the next one.
    price: the last close before it, in cents.
    """

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
    price: int = 0


DRIFTS = 6
"""Number of sessions for which the price continues in the direction of real news."""

COMPANY_NEWS = ("contract", "product", "analyst", "legal", "supply", "guidance", "management", "capital")
CRYPTO_NEWS = ("adoption", "network", "regulation", "holders")
EARNINGS, DIVIDEND, SPLIT = "earnings", "dividend", "split"
