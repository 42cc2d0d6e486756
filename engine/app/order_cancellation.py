"""Cancellation of orders that were sent: at the broker, or on the simulated market before their session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from engine.app.demo_time import DemoTime, begins_after
from engine.app.desk_context import desk_account
from engine.app.desk_journal import DeskJournal
from engine.app.fills_booking import book_fills
from engine.domain.order import Order, OrderState
from engine.errors import MissingData, UsageError
from engine.journal.entries import OrderEntry
from engine.journal.reader import JournalReader
from engine.market.trading_hours import session_after
from engine.messages.events import Noticed, Publish
from engine.messages.from_values import order_moved
from engine.reports.documents.control_state import AnsweredOrder
from engine.reports.documents.controls import canceled_document, sent_document
from engine.reports.documents.row_json import Row, minute
from engine.services import Services

SENT = (OrderState.ACKNOWLEDGED, OrderState.PARTIALLY_FILLED)
"""States of an order that can be canceled."""
BY_YOU = "canceled by you"


def sent_orders(reader: JournalReader | None, names: Sequence[str] = ()) -> list[OrderEntry]:
    """The orders of a journal that were sent and are open, or those of them that are named by id or symbol. Raises
    MissingData for a name that no order has, UsageError for one whose orders were not sent, or have ended."""
    every: Sequence[OrderEntry] = () if reader is None else reader.orders()
    sent = [entry for entry in every if entry.order.state in SENT]
    found = [] if names else sent
    for name in names:
        named = [one for one in every if name == one.order.id or name.upper() == one.order.symbol]
        if not named:
            raise MissingData(f"the desk has no order {name}: `paperdesk orders` lists them")
        open_ones = [entry for entry in named if entry in sent]
        if not open_ones:
            raise UsageError(f"{name}: {_why_not(named[-1].order)}")
        found += open_ones
    return list({entry.order.id: entry for entry in found}.values())


def _why_not(order: Order) -> str:
    if order.state is OrderState.INTENDED:
        return "the order was not sent yet: paperdesk veto keeps it from being sent"
    if order.state in (OrderState.SUBMITTING, OrderState.UNKNOWN):
        return "nobody knows yet whether the order has arrived: the next run asks the broker"
    return f"the order is {order.state} already"


async def cancel_orders(services: Services, names: Sequence[str]) -> Row:
    """Cancel the orders that are named by id or symbol, one after another, and the document of it; without a name that
    of the orders that can be canceled. Raises as `cancel_order` does."""
    with DeskJournal(services.desk) as journal:
        found = sent_orders(journal.reader, names)
    if not names:
        return sent_document(services.desk, found)
    return canceled_document(services.desk, [await cancel_order(services, entry.order.id) for entry in found])


async def cancel_order(services: Services, order_id: str, publish: Publish = lambda event: None) -> AnsweredOrder:
    """Cancel an order that was sent, under the desk's lock: ask the broker, and book what became of it; on the
    simulated market end it, until the session has opened that fills it. What has traded stays. Raises as `sent_orders`
    does, TryAgainLater while a run is at work, and what the broker and `book_fills` raise."""
    if begins_after(services) is not None:  # a demo desk stands at the last session that it decided
        services = replace(services, clock=DemoTime(services).clock)
    with DeskJournal(services.desk) as journal, journal.locked():
        (entry,) = sent_orders(journal.reader, [order_id])
        if services.broker is None:
            return _on_simulated_market(services, journal, entry, publish)
        async with desk_account(services, services.broker) as account:
            text = f"your cancellation of {entry.order.side} {entry.order.symbol} goes to the broker"
            event = Noticed(entry.run, account.clock.now(), "info", text)
            journal.writer.event(event)
            publish(event)
            await account.broker.cancel(order_id)
    await book_fills(services, publish)
    with DeskJournal(services.desk) as journal:
        assert journal.reader is not None
        return _came_to(next(one for one in journal.reader.orders() if one.order.id == order_id))


def _on_simulated_market(
    services: Services, journal: DeskJournal, entry: OrderEntry, publish: Publish
) -> AnsweredOrder:
    order, calendar, now = entry.order, services.calendar_for(entry.order.symbol), services.clock.now()
    opens = calendar.opens_at(session_after(calendar, order.session))
    if now >= opens:
        late = f"its session has opened, at {minute(opens)}: the next run books what it has traded"
        return AnsweredOrder(order, late, refused=True, decided=entry.decided)
    ended = order.moved(OrderState.CANCELED)
    journal.writer.order_moved(ended, now, detail=BY_YOU)
    event = order_moved(entry.run, now, ended, BY_YOU)
    journal.writer.event(event)
    publish(event)
    return AnsweredOrder(ended, BY_YOU, decided=entry.decided)


def _came_to(entry: OrderEntry) -> AnsweredOrder:
    order = entry.order
    if order.state in SENT:
        state, refused = f"to be canceled, which the broker has not confirmed yet ({order.state})", False
    else:
        state, refused = str(order.state), order.state is not OrderState.CANCELED
    return AnsweredOrder(order, state, refused=refused, decided=entry.decided)
