"""A broker's account history as the journal books it: trades of our orders, named cash flows, and what is neither.

An entry belongs to the first session of the desk whose close is not before it, and never to one whose books are closed
already: what comes late is counted in the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from engine.domain.brokerage import Activity, ActivityKind
from engine.domain.order import Fill, Order
from engine.domain.run import CashFlow
from engine.ports import Calendar

WITHIN = timedelta(days=14)
"""A market opens again within so many days, whatever the holidays."""


@dataclass(frozen=True, slots=True)
class ActivityEntry:
    """One entry of the account's history with the journal's entry for it; None where it is not the desk's: a trade of
    none of its orders, or a note without an amount. `reversals` take back what was adopted in its place."""

    activity: Activity
    entry: Fill | CashFlow | None
    reversals: tuple[CashFlow, ...] = ()


@dataclass(frozen=True, slots=True)
class AccountActivity:
    """The new entries of an account's history, in the broker's order."""

    all: tuple[ActivityEntry, ...]

    @property
    def fills(self) -> tuple[Fill, ...]:
        """The trades of our orders."""
        return tuple(line.entry for line in self.all if isinstance(line.entry, Fill))

    @property
    def flows(self) -> tuple[CashFlow, ...]:
        """Cash and shares that moved without a trade, and adoptions that are taken back."""
        moved = (line.entry for line in self.all if isinstance(line.entry, CashFlow))
        return (*moved, *(reversal for line in self.all for reversal in line.reversals))

    @property
    def booked(self) -> tuple[ActivityEntry, ...]:
        """The entries that are the desk's."""
        return tuple(line for line in self.all if line.entry is not None)


def session_of(calendar: Calendar, time: datetime, first_open: date | None) -> date:
    """The session that something belongs to: the first whose close is not before it, at the earliest the first whose
    books are not closed yet."""
    day = time.date() - timedelta(days=1)  # a session can close on the UTC day after its own
    due = next(s for s in calendar.sessions(day, day + WITHIN) if calendar.closes_at(s) >= time)
    return due if first_open is None else max(due, first_open)


def read_activity(
    activities: Iterable[Activity],
    order_of: Callable[[str], Order | None],
    known_ids: Mapping[str, datetime],
    calendar: Calendar,
    first_open: date | None,
) -> AccountActivity:
    """The new entries of a history. `order_of` gives our order by the broker's id of it."""
    fresh = {activity.id: activity for activity in activities if activity.id not in known_ids}
    return AccountActivity(
        tuple(_line(one, order_of, session_of(calendar, one.time, first_open)) for one in fresh.values())
    )


def _line(activity: Activity, order_of: Callable[[str], Order | None], session: date) -> ActivityEntry:
    if activity.kind is ActivityKind.FILL:
        order = order_of(activity.broker_id)
        if order is None or activity.price is None:
            return ActivityEntry(activity, None)
        fill = Fill(
            order_id=order.id,
            symbol=order.symbol,
            side=order.side,
            session=session,
            quantity=activity.quantity,
            price=activity.price,
            reason=order.reason,
            time=activity.time,
        )
        return ActivityEntry(activity, fill)
    if not activity.amount and not activity.quantity:
        return ActivityEntry(activity, None)
    kind, symbol = activity.kind.value, activity.symbol or ""
    return ActivityEntry(
        activity,
        CashFlow(
            session=session,
            symbol=symbol,
            kind=kind,
            amount=activity.amount,
            quantity=activity.quantity,
            description=activity.description,
        ),
    )
