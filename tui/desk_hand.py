"""What a person can lay a hand on: whether the desk is halted and which orders are open, read from its journal.

The journal is where processes meet, so that what another terminal says shows here as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from engine.domain.order import Order
    from engine.execution.controls import Approval, Halted


class Standing(StrEnum):
    """How an open order stands, for the one who decides about it."""

    WAITS = "waits"
    """For a word; nothing is sent before."""
    APPROVED = "approved"
    VETOED = "vetoed"
    LATE = "too late"
    """Its session is no longer the last one: it will not be sent."""
    KEPT = "kept back"
    """By a halt, by a desk that only observes, or until the run that is at work comes to it."""
    SENT = "sent"
    UNKNOWN = "unknown"
    """Nobody knows whether the broker has it; the next run looks it up."""


@dataclass(frozen=True, slots=True)
class OpenOrder:
    """An order that something can still follow; `until` is when it is too late to send it, None where it was sent."""

    order: Order
    standing: Standing
    until: datetime | None = None

    @property
    def waits(self) -> bool:
        """Whether it waits for a word."""
        return self.standing is Standing.WAITS


@dataclass(frozen=True, slots=True)
class HandView:
    """How the desk stands for the hand on it: halted or not, and its open orders, those that wait for a word first."""

    halted: Halted | None = None
    orders: tuple[OpenOrder, ...] = ()

    @property
    def waiting(self) -> tuple[OpenOrder, ...]:
        """Orders that wait for a word."""
        return tuple(order for order in self.orders if order.waits)

    def with_words(self, said: Mapping[str, bool]) -> HandView:
        """As it will be once words on orders that wait, by order id (True: approved), are written."""
        if not any(one.order.id in said for one in self.waiting):
            return self
        orders = (
            replace(one, standing=Standing.APPROVED if said[one.order.id] else Standing.VETOED)
            if one.waits and one.order.id in said
            else one
            for one in self.orders
        )
        return replace(self, orders=tuple(orders))


def hand_view(journal: Path, asks: bool, stays_until: Callable[[date], datetime], now: datetime | None) -> HandView:
    """Reads a desk's journal; a desk that never ran has nothing open. `asks`: orders are sent only when approved.
    Without `now` nothing is called too late. Raises what JournalReader raises."""
    if not journal.is_file():
        return HandView()
    from engine.execution.controls import approvals, halted
    from engine.journal.reader import JournalReader

    with JournalReader(journal) as reader:
        halt = halted(reader)
        entries = reader.orders(open_only=True)
        words = approvals(reader, [entry.order.id for entry in entries])
    found = [_seen(entry.order, asks, words.get(entry.order.id), stays_until, now) for entry in entries]
    return HandView(halt, tuple(sorted(found, key=lambda one: not one.waits)))


def _seen(
    order: Order, asks: bool, word: Approval | None, stays_until: Callable[[date], datetime], now: datetime | None
) -> OpenOrder:
    from engine.domain.order import OrderState

    if order.state in (OrderState.SUBMITTING, OrderState.UNKNOWN):
        return OpenOrder(order, Standing.UNKNOWN)
    if order.state is not OrderState.INTENDED:
        return OpenOrder(order, Standing.SENT)
    until = stays_until(order.session)
    if word is not None and not word.approved:
        return OpenOrder(order, Standing.VETOED, until)
    if now is not None and now >= until:
        return OpenOrder(order, Standing.LATE, until)
    if not asks:
        return OpenOrder(order, Standing.KEPT, until)
    return OpenOrder(order, Standing.WAITS if word is None else Standing.APPROVED, until)
