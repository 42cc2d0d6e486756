"""Booking of what the broker says has become of the desk's orders, at once and without a run."""

from __future__ import annotations

from datetime import timedelta

from engine.account.ahead_of_run import book_ahead, session_to_close
from engine.app.desk.context import desk_account, desk_context
from engine.app.records.desk_journal import DeskJournal
from engine.market.as_of import Market
from engine.messages.events import Publish
from engine.services import Services
from engine.session.context import run_id

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
