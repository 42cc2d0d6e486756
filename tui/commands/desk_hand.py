"""What the commands that lay a hand on a desk share: its journal, up to date, and what waits in it, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import places
from engine.errors import UsageError
from tui.commands.journals import desk_name
from tui.invocation import Invocation

if TYPE_CHECKING:
    from datetime import datetime

    from engine.domain.order import Order
    from engine.execution.controls import Halted
    from engine.journal.entries import OrderEntry


@dataclass(frozen=True, slots=True)
class Hand:
    """A desk and its journal, which need not be there."""

    desk: str
    journal: Path

    @property
    def head(self) -> dict[str, Any]:
        """What every JSON document begins with."""
        return {"schema": 1, "desk": self.desk}


def hand_on(invocation: Invocation) -> Hand:
    """The desk of a call. A journal of an older program is brought up to date, for which no run may be at work; else
    nobody waits for a lock. Raises UsageError for a run that was named, TryAgainLater, ConfigError."""
    from engine.journal.upgrade import bring_up_to_date, older_version

    if invocation.run is not None:
        raise UsageError("--run names one run, and this concerns the whole desk: leave it out")
    desk = desk_name(invocation)
    journal = places.desk_journal(desk)
    if older_version(journal) is not None:
        from engine.app.desk_lock import desk_lock

        with desk_lock(desk):
            bring_up_to_date(journal)
    return Hand(desk, journal)


def moment(time: datetime) -> str:
    """A moment as these commands write it."""
    return f"{time:%Y-%m-%d %H:%M} UTC"


def since_words(halted: Halted) -> str:
    """`since 2026-11-21 14:02 UTC: news`."""
    from tui.plain_text import one_line

    return f"since {moment(halted.since)}" + (f": {one_line(halted.reason)}" if halted.reason else "")


def halted_json(halted: Halted | None) -> dict[str, str] | None:
    """A halt as JSON's own types; null where the desk is not halted."""
    return None if halted is None else {"since": halted.since.isoformat(), "reason": halted.reason}


@dataclass(frozen=True, slots=True)
class OpenOrders:
    """The orders that something can still follow: those that were never handed over, and those that were."""

    kept: tuple[OrderEntry, ...] = ()
    sent: tuple[OrderEntry, ...] = ()


def open_orders(journal: Path) -> OpenOrders:
    """The open orders of a journal."""
    from engine.execution.controls import not_sent
    from engine.journal.reader import JournalReader

    with JournalReader(journal) as reader:
        kept = not_sent(reader)
        known = {entry.order.id for entry in kept}
        return OpenOrders(kept, tuple(e for e in reader.orders(open_only=True) if e.order.id not in known))


def listed(orders: Sequence[OrderEntry]) -> Iterator[str]:
    """An order per line, without its state."""
    return (f"  {asked(entry.order)}" for entry in orders)


def asked(order: Order) -> str:
    """`BUY ORVL for 7,000.00`, `SELL 12 ORVL`."""
    from tui.commands.run_text import order_words

    return order_words(order).rpartition(":")[0]


def counted(orders: Sequence[object]) -> str:
    """`1 order`, `3 orders`."""
    return f"{len(orders)} order{'' if len(orders) == 1 else 's'}"
