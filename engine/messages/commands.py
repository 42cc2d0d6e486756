"""Commands of an operator or a schedule, as plain values in the imperative."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from engine.domain.market import Symbol
from engine.domain.order import Order, OrderSize, Side


class MemoryChange(StrEnum):
    """Change that an operator makes to a memory."""

    PIN = "pin"
    UNPIN = "unpin"
    FORGET = "forget"
    RESTORE = "restore"


@dataclass(frozen=True, slots=True)
class Command:
    """Base of all commands."""


@dataclass(frozen=True, slots=True)
class RunCycle(Command):
    """Decide now for the last completed session: all symbols, or one alone."""

    symbol: Symbol | None = None


@dataclass(frozen=True, slots=True)
class Pause(Command):
    """No cycle begins from now on, in any process; one at work finishes its present answer and goes no further."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Unpause(Command):
    """End a pause."""


@dataclass(frozen=True, slots=True)
class Halt(Command):
    """The kill switch: nothing is sent from now on, by any process; waiting orders go on waiting."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Resume(Command):
    """Lift a halt."""


@dataclass(frozen=True, slots=True)
class OrderCommand(Command):
    """Base of commands about an order that was not sent yet."""

    order_id: str


@dataclass(frozen=True, slots=True)
class Approve(OrderCommand):
    """Approve a waiting order."""


@dataclass(frozen=True, slots=True)
class Veto(OrderCommand):
    """Refuse a waiting order."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class ChangeMemory(Command):
    """Pin a memory of the desk to its layer, forget it, or take that back."""

    memory_id: str
    change: MemoryChange
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Edit(OrderCommand):
    """Change the size of an order: `quantity` in shares or `notional` in the quote currency, as the order has it."""

    quantity: Decimal | None = None
    notional: Decimal | None = None

    def applied(self, order: Order) -> Order:
        """The order in its new size."""
        return replace(order, quantity=self.quantity, notional=self.notional)


@dataclass(frozen=True, slots=True)
class ResizeOrder(Command):
    """Edit an order to a size as an operator names it; the desk makes an Edit of it, or refuses."""

    order_id: str
    size: OrderSize


@dataclass(frozen=True, slots=True)
class PlaceOrder(Command):
    """Place an order of the operator's own."""

    symbol: Symbol
    side: Side
    size: OrderSize

    @property
    def description(self) -> str:
        """The order in words: `BUY AAPL for $5000`, `SELL 12 AAPL`."""
        number = f"{self.size.number:f}"
        return f"{self.side} {self.symbol} for ${number}" if self.size.money else f"{self.side} {number} {self.symbol}"


@dataclass(frozen=True, slots=True)
class CancelOrder(Command):
    """Cancel an order that was sent."""

    order_id: str


@dataclass(frozen=True, slots=True)
class TakeBackOrder(Command):
    """Drop the operator's last order that is not on its way yet."""


@dataclass(frozen=True, slots=True)
class Undo(OrderCommand):
    """Take back the last approval, veto or edit of an order that still holds."""


@dataclass(frozen=True, slots=True)
class Shutdown(Command):
    """Finish the requests in flight and stop."""


CONTROLS = (Halt, Resume, Pause, Unpause, Approve, Veto, Edit, Undo)
"""The commands of an operator that take effect by being written."""


def in_force(
    commands: Iterable[tuple[datetime, OrderCommand]],
) -> Mapping[str, Sequence[tuple[datetime, OrderCommand]]]:
    """The commands that hold by order id, each with its time, in the order in which they were given: an Undo takes back
    the last one before it. An approval that a veto followed holds no more, whatever becomes of the veto: somebody else
    may have vetoed meanwhile what is undone as an approval, and the order must not be sent then."""
    found: defaultdict[str, list[tuple[datetime, OrderCommand]]] = defaultdict(list)
    for time, command in commands:
        held = found[command.order_id]
        if not isinstance(command, Undo):
            held.append((time, command))
        elif held and isinstance(held.pop()[1], Veto):
            held[:] = [one for one in held if not isinstance(one[1], Approve)]
    return found
