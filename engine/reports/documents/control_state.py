"""Halt, pause and open orders of a desk as values: the part of its state that an operator can change.

The module loads nothing but the order, since the app has it before its first paint.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.domain.order import Order
    from engine.execution.controls import Halted, Paused


class Waiting(StrEnum):
    """The state of an open order, for the operator."""

    APPROVAL = "waits"
    """Nothing is sent before it is approved."""
    APPROVED = "approved"
    VETOED = "vetoed"
    LATE = "too late"
    """Its session is no longer the last one: it will not be sent."""
    HELD_BACK = "not sent yet"
    """By a halt, by a desk that only observes, or until the run that is at work comes to it."""
    SENT = "sent"
    UNKNOWN = "unknown"
    """Nobody knows whether the broker has it; the next run looks it up."""


@dataclass(frozen=True, slots=True)
class OpenOrder:
    """An order that something can still follow.

    until: when it is too late to send it, UTC; None where it was sent.
    decided: the order in the size that was decided, where an operator has edited it; else None.
    undoable: True where an answer or an edit can be taken back.
    fills_at: the open at which it fills if it is sent now, UTC; None where it fills at once, or was sent.
    """

    order: Order
    state: Waiting
    until: datetime | None = None
    decided: Order | None = None
    undoable: bool = False
    fills_at: datetime | None = None

    @property
    def waits(self) -> bool:
        """True where it waits for approval."""
        return self.state is Waiting.APPROVAL


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlState:
    """A desk as its operator controls see it: halt and pause, if any, and open orders, those that wait for approval
    first."""

    halted: Halted | None = None
    paused: Paused | None = None
    orders: tuple[OpenOrder, ...] = ()

    @property
    def waiting(self) -> tuple[OpenOrder, ...]:
        """Orders that wait for approval."""
        return tuple(order for order in self.orders if order.waits)

    @property
    def sent(self) -> tuple[OpenOrder, ...]:
        """The orders that were sent and are open."""
        return tuple(one for one in self.orders if one.state is Waiting.SENT)

    @property
    def has_unsent_answers(self) -> bool:
        """True where an order was approved or vetoed, and that was not carried out yet."""
        return any(one.state in (Waiting.APPROVED, Waiting.VETOED) for one in self.orders)

    def after(self, answers: Mapping[str, bool]) -> ControlState:
        """The state once answers on orders that wait, by order id (True: approved), are written."""
        if not any(one.order.id in answers for one in self.waiting):
            return self
        orders = (
            replace(one, state=Waiting.APPROVED if answers[one.order.id] else Waiting.VETOED, undoable=True)
            if one.waits and one.order.id in answers
            else one
            for one in self.orders
        )
        return replace(self, orders=tuple(orders))


@dataclass(frozen=True, slots=True)
class AnsweredOrder:
    """An order that was answered: its state now, in words; `refused` where the answer was not taken, `decided` as in
    OpenOrder."""

    order: Order
    state: str
    refused: bool = False
    decided: Order | None = None
