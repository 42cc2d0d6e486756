"""Bookings that the feed of an account asks for: several requests in a moment are one booking, none beside a run.

Booking of what the broker says has become of the desk's orders, at once and without a run.

Book what an account did with the desk's orders before the next run does: the same rows, which that run finds done.

A fill belongs to the first session whose books are not closed, whoever books it, and names the daily run that is to
close them. The books of a close stay the run's. Nothing is decided, sent, or settled here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import date, datetime, timedelta

from engine.account.activity import WITHIN
from engine.account.booking import Booking
from engine.account.reconciliation import Reconciler
from engine.app.desk.context import desk_account, desk_context
from engine.app.records.desk_journal import DeskJournal
from engine.domain.live import ORDER_NEWS, Delivery, FeedMessage, FeedState, OrderHint
from engine.domain.order import OrderState
from engine.errors import DeskHalted, PaperdeskError, TryAgainLater
from engine.journal.entries import OrderEntry
from engine.journal.reader import JournalReader
from engine.market.as_of import Market
from engine.messages.events import OrderFilled, OrderMoved, Publish
from engine.ports import Calendar
from engine.services import Services
from engine.session.context import run_id

SOON = 0.2
"""Seconds from a request to its booking: what follows within them is booked with it."""
LONGEST = 8.0
"""Seconds between two bookings at most: each that follows soon waits twice as long, as a broker counts requests."""
QUIET = 60.0
"""Seconds without a booking after which the next one is soon again."""
TRIES = 9
"""Attempts while another process has the desk's lock, or the broker cannot say yet: some three minutes, each pause
twice as long as the one before, up to PAUSE."""
PAUSE = 30.0


class BookingQueue:
    """Bookings by requests. An error becomes a line, and the next run deals with what was not booked."""

    def __init__(
        self,
        book: Callable[[], Awaitable[object]],
        notice: Callable[[str, str], None],
        lock: asyncio.Lock,
        idle: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`book` books; `notice` hears a level and a line. A booking holds the `lock`, once `idle` has returned."""
        self._book, self._notice, self._lock, self._idle = book, notice, lock, idle
        self._asked = False
        self._pause, self._last = SOON, -QUIET
        self._task: asyncio.Task[None] | None = None

    def on_message(self, message: FeedMessage) -> None:
        """Ask for a booking where the feed says that an order has moved, or comes in a way that may have missed it."""
        moved = isinstance(message, OrderHint) and message.event in ORDER_NEWS
        state = message if isinstance(message, FeedState) else None
        if moved or (state is not None and state.feed == "orders" and state.delivery is not Delivery.DOWN):
            self._asked = True
            if self._task is None or self._task.done():
                self._task = asyncio.create_task(self._work(), name="booking")

    def drop(self) -> None:
        """Leave the rest to the next run."""
        if self._task is not None:
            self._task.cancel()

    async def _work(self) -> None:
        now = asyncio.get_running_loop().time
        while self._asked:
            self._pause = SOON if now() - self._last >= QUIET else min(2 * self._pause, LONGEST)
            await asyncio.sleep(self._pause)
            try:
                await self._booked()
            except DeskHalted as error:
                self._notice("error", f"account activity not booked: {error}")
            except PaperdeskError as error:
                self._notice("warning", f"account activity left to the next run: {error}")
            except Exception as error:  # a bug must be seen, and must not take the desk down
                self._notice("error", f"a bug: {type(error).__name__}: {error}")
            self._last = now()

    async def _booked(self) -> None:
        for tried in range(TRIES):
            if self._idle is not None:
                await self._idle()
            try:
                async with self._lock:
                    self._asked = False
                    await self._book()
                return
            except TryAgainLater:
                if tried == TRIES - 1:
                    raise
            await asyncio.sleep(min(2.0**tried, PAUSE))


NO_PRICES = Market(histories={}, actions={}, news={}, filings={}, calendars={})
"""Trades and cash are booked without a price; the run that closes the books has them."""


async def book_fills(
    services: Services, publish: Publish = lambda event: None, *, canceled: frozenset[str] = frozenset()
) -> bool:
    """Book what has happened in the desk's account since it was booked last, under the desk's lock; `canceled` are
    orders that the operator has asked the broker to cancel. Return False where
    nothing has, where a desk trades in none, or before its first run. Raises BooksDisagree and EntryAwaited, with
    nothing written, TryAgainLater while a run is at work, and what the broker raises."""
    service, desk = services.broker, services.desk
    with DeskJournal(desk) as journal:
        if service is None or journal.reader is None or journal.reader.account() is None:
            return False
        with journal.locked(brief=True):
            async with desk_account(services, service) as account:
                context = desk_context(services, journal, account=account)
                run = run_id(desk, session_to_close(journal.reader, context.calendar, context.session))
                return await book_ahead(
                    context.reconciler(account),
                    context.booking(account, run, NO_PRICES, ahead=True, canceled=canceled),
                    session=context.session,
                    patience=timedelta(hours=services.config.broker.late_entry_hours),
                    publish=publish,
                )


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
