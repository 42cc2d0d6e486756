"""Cancellation of orders that were sent: at the broker, or on the simulated market before their session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.account.booking import BY_YOU
from engine.app.desk.booking_queue import book_fills
from engine.app.desk.context import desk_account, refuse_bound
from engine.app.desk.demo_history import by_desk_time
from engine.app.orders.controls import controlled_journal
from engine.app.records.desk_journal import DeskJournal
from engine.broker_registration import BrokerService
from engine.domain.brokerage import BrokerOrder
from engine.domain.order import Order, OrderState
from engine.errors import ConfigError, MissingData, NetworkError, PaperdeskError, TryAgainLater, UsageError
from engine.journal.entries import OrderEntry
from engine.journal.reader import JournalReader
from engine.market.trading_hours import fill_session
from engine.messages.events import Noticed, OrderMoved, Publish
from engine.ports import Broker
from engine.reports.documents.control_state import AnsweredOrder
from engine.reports.documents.controls import canceled_document, sent_document
from engine.reports.documents.row_json import Row, minute
from engine.services import Services

SENT = (OrderState.ACKNOWLEDGED, OrderState.PARTIALLY_FILLED)
"""States of an order that can be canceled."""
NOT_BOOKED = "canceled at the broker, and not booked yet"

BrokerStates = Mapping[str, OrderState | PaperdeskError | None]
"""The broker's state of each order, by its id, after it was asked to cancel it: None for one that it does not know, the
error where it is not known."""


@dataclass(frozen=True, slots=True)
class Canceled:
    """Orders whose cancellation was asked for, each with the state that it came to.

    desk: its name.
    orders: as they are now.
    error: kept an order's state from being known, or booked; None where nothing did.
    """

    desk: str
    orders: Sequence[AnsweredOrder]
    error: PaperdeskError | None = None

    @property
    def document(self) -> Row:
        """As `paperdesk cancel` prints it."""
        return canceled_document(self.desk, self.orders)


def open_sent_orders(services: Services) -> Row:
    """The document of the orders of a desk that can be canceled. Raises as `controlled_journal` does."""
    controlled_journal(services.desk)
    with DeskJournal(services.desk) as journal:
        return sent_document(services.desk, _sent(journal.reader))


async def cancel_orders(services: Services, names: Sequence[str], publish: Publish = lambda event: None) -> Canceled:
    """Cancel the orders that were sent and are named by id or symbol, under the desk's lock: ask the broker for each,
    and book what became of them; on the simulated market end them, until the session has opened that fills them. What
    has traded stays. Raises MissingData for a name that no order has, UsageError for one whose orders were not sent, or
    have ended, ConfigError where the desk's books are of another market than the configuration's, TryAgainLater while a
    run is at work, and what opening the account raises."""
    controlled_journal(services.desk)
    services = by_desk_time(services)
    with DeskJournal(services.desk) as journal, journal.locked():
        found = _named(journal.reader, names)
        assert journal.reader is not None  # it has the orders
        if services.broker is None:
            refuse_bound(journal.reader, services.desk)
            ended = [_on_simulated_market(services, journal, entry, publish) for entry in found]
            return Canceled(services.desk, ended)
        if journal.reader.account() is None:
            raise ConfigError(
                f"the desk {services.desk} trades on the simulated market: set broker.kind to simulated, or give the "
                "account a desk of its own (desk.name)"
            )
        asked = await _at_broker(services, services.broker, journal, found, publish)
    return await _booked(services, asked, publish)


def _sent(reader: JournalReader | None) -> list[OrderEntry]:
    return [] if reader is None else [entry for entry in reader.orders(open_only=True) if entry.order.state in SENT]


def _named(reader: JournalReader | None, names: Sequence[str]) -> list[OrderEntry]:
    every: Sequence[OrderEntry] = () if reader is None else reader.orders()
    found: dict[str, OrderEntry] = {}
    for name in names:
        named = [one for one in every if name == one.order.id or name.upper() == one.order.symbol]
        if not named:
            raise MissingData(f"the desk has no order {name}: `paperdesk orders` lists them")
        sent = {one.order.id: one for one in named if one.order.state in SENT}
        if not sent:
            raise UsageError(f"{name}: {_why_not(named[-1].order)}")
        found |= sent
    return list(found.values())


def _why_not(order: Order) -> str:
    if order.state is OrderState.INTENDED:
        return "the order was not sent yet: paperdesk veto keeps it from being sent"
    if order.state in (OrderState.SUBMITTING, OrderState.UNKNOWN):
        return "nobody knows yet whether the order has arrived: the next run asks the broker"
    return f"the order is {order.state} already"


def _on_simulated_market(
    services: Services, journal: DeskJournal, entry: OrderEntry, publish: Publish
) -> AnsweredOrder:
    order, now, reader = entry.order, services.clock.now(), journal.reader
    assert reader is not None  # the order is in it
    _, fills = fill_session(services.desk_calendar(services.symbols), order, reader.sent_at(order.id))
    if now >= fills:
        late = f"its session has opened, at {minute(fills)}: the next run books what it has traded"
        return AnsweredOrder(order, late, refused=True, decided=entry.decided)
    ended = order.moved(OrderState.CANCELED)
    event = OrderMoved(entry.run, now, ended, BY_YOU)
    with journal.writer.together():
        journal.writer.order_moved(ended, now, detail=BY_YOU)
        journal.writer.event(event)
    publish(event)
    return AnsweredOrder(ended, BY_YOU, decided=entry.decided)


async def _at_broker(
    services: Services, service: BrokerService, journal: DeskJournal, found: Sequence[OrderEntry], publish: Publish
) -> BrokerStates:
    """Ask the broker to cancel each order."""
    asked: dict[str, OrderState | PaperdeskError | None] = {}
    async with desk_account(services, service) as account:
        for order in (entry.order for entry in found):
            text = f"your cancellation of {order.side} {order.symbol} goes to the broker"
            event = Noticed("", account.clock.now(), "info", text)
            journal.writer.event(event)
            publish(event)
            try:
                theirs = await _canceled(account.broker, order.id)
            except (NetworkError, TryAgainLater) as error:  # the others are asked for all the same
                asked[order.id] = error
                continue
            asked[order.id] = None if theirs is None else theirs.state
    return asked


async def _canceled(broker: Broker, order_id: str) -> BrokerOrder | None:
    """The order at the broker after its cancellation, also where only a look-up tells that it came through."""
    try:
        await broker.cancel(order_id)
    except (NetworkError, TryAgainLater):
        theirs = await broker.lookup(order_id)
        if theirs is None or theirs.state is not OrderState.CANCELED:
            raise
        return theirs
    return await broker.lookup(order_id)


async def _booked(services: Services, asked: BrokerStates, publish: Publish) -> Canceled:
    """Book what became of the orders, and what each came to, booked or not."""
    error = next((one for one in asked.values() if isinstance(one, PaperdeskError)), None)
    try:
        await book_fills(services, publish, canceled=frozenset(asked))
    except PaperdeskError as problem:
        error = problem
    with DeskJournal(services.desk) as journal:
        assert journal.reader is not None
        entries = [entry for entry in journal.reader.orders() if entry.order.id in asked]
    return Canceled(services.desk, [_came_to(entry, asked[entry.order.id]) for entry in entries], error)


def _came_to(entry: OrderEntry, theirs: OrderState | PaperdeskError | None) -> AnsweredOrder:
    order = entry.order
    state, refused = str(order.state), order.state is not OrderState.CANCELED
    if order.state in SENT and isinstance(theirs, PaperdeskError):
        state = f"not known to be canceled: {theirs}"
    elif order.state in SENT and theirs is OrderState.CANCELED:
        state, refused = NOT_BOOKED, False
    elif order.state in SENT:
        state = f"not canceled yet, the broker has it as {theirs or 'unknown'}: ask again"
    return AnsweredOrder(order, state, refused=refused, decided=entry.decided)
