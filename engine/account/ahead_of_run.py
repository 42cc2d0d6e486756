"""Book what an account did with the desk's orders before the next run does: the same rows, which that run finds done.

A fill belongs to the first session whose books are not closed, whoever books it, and names the daily run that is to
close them. The books of a close stay the run's. Nothing is decided, sent, or settled here.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta

from engine.account.activity import WITHIN
from engine.account.booking import Booking
from engine.account.reconciliation import Reconciler
from engine.domain.order import OrderState
from engine.journal.entries import OrderEntry
from engine.journal.reader import JournalReader
from engine.messages.events import OrderFilled, OrderMoved, Publish
from engine.ports import Calendar

ENDED = (OrderState.CANCELED, OrderState.EXPIRED, OrderState.REJECTED)
"""States that are published by themselves; a fill says the others."""


def session_to_close(reader: JournalReader, calendar: Calendar, session: date) -> date:
    """The session of the next daily run: the last completed one until its run is done, then the one that follows."""
    if reader.finished_run(session) is None:
        return session
    return calendar.sessions(session + timedelta(days=1), session + WITHIN)[0]


async def book_ahead(
    reconciler: Reconciler, booking: Booking, *, session: date, patience: timedelta, publish: Publish
) -> bool:
    """Book the states of the desk's orders, the trades and all else that is new in the account, and publish trades and
    orders that ended without one. `session` is the last completed one, `booking` names the run that is to close the
    next books. Return False where nothing is new. Raises BooksDisagree, or EntryAwaited, with nothing written, where
    the new entries do not explain what the account has, and what the broker raises."""
    report = await reconciler.reconcile()
    booking.require_agreement(report, reconciler.desk, patience)
    reader, now = booking.reader, booking.clock.now()
    before = {entry.order.id: entry for entry in reader.orders()}
    filled = [OrderFilled(before[fill.order_id].run, now, fill) for fill in report.activity.fills]
    booking.orders(report, session)
    booking.book(report, events=filled)
    moved = [entry for entry in reader.orders() if entry.order.state is not before[entry.order.id].order.state]
    ended = [_moved(reader, entry, now) for entry in moved if entry.order.state in ENDED]
    for event in ended:
        booking.journal.event(event)
    for told in (*filled, *ended):
        publish(told)
    return bool(report.activity.all or moved)


def _moved(reader: JournalReader, entry: OrderEntry, now: datetime) -> OrderMoved:
    return OrderMoved(entry.run, now, entry.order, reader.order_moves(entry.order.id)[-1].detail)
