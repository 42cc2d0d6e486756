"""An order of the operator's own: its effect, and its way from the ticket through limits and journal to the venue.

No agent decides it and nobody has to approve it; a halt keeps it from being taken.

Cancellation of orders that were sent: at the broker, or on the simulated market before their session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

from engine.account.booking import BY_YOU
from engine.account.reconciliation import journal_snapshot
from engine.app.desk.booking_queue import book_fills
from engine.app.desk.context import DeskContext, desk_account, desk_clock, desk_context, refuse_bound
from engine.app.desk.demo_history import by_desk_time
from engine.app.desk.market import DeskMarket, desk_market, load_market
from engine.app.orders.approvals import last_prices, order_times
from engine.app.orders.controls import controlled_journal
from engine.app.records.desk_journal import DeskJournal
from engine.broker_registration import BrokerService
from engine.domain.brokerage import BrokerOrder
from engine.domain.market import Symbol
from engine.domain.order import NO_CYCLE, YOU, ZERO, Order, OrderState, Side, is_own, own_order_id
from engine.domain.run import RunKind, RunOutcome, TradingMode
from engine.errors import (
    NO,
    ConfigError,
    DeskHalted,
    MissingData,
    NetworkError,
    PaperdeskError,
    TryAgainLater,
    UsageError,
)
from engine.execution.controls import halted
from engine.execution.limits import Price, buying_power, cash_floor, own_order, own_refusal, refused_by_venue
from engine.execution.submission import Submission
from engine.execution.venue import OrderTerms, Venue
from engine.journal.entries import OrderEntry, RunEntry
from engine.journal.reader import JournalReader
from engine.market.live_prices import LivePrices
from engine.market.trading_hours import decision_time, fill_session
from engine.messages.commands import PlaceOrder
from engine.messages.events import Event, Noticed, OrderFilled, OrderMoved, Publish, RunFinished
from engine.ports import Broker
from engine.preset import Preset, load_preset
from engine.reports.documents.control_state import AnsweredOrder
from engine.reports.documents.controls import canceled_document, sent_document
from engine.reports.documents.order_effect import Ticket, order_effect
from engine.reports.documents.records import records_in
from engine.reports.documents.row_json import Row, minute
from engine.services import Services
from engine.session.outcomes import publish_settled
from engine.session.owner_books import has_books
from engine.session.run import book_sent
from engine.settings import places

LEFT = "the program that accepted it ended before it was sent"
STOPPED = "the desk was halted before it was sent"


def ticket_now(services: Services, wanted: PlaceOrder) -> Ticket:
    """The ticket at the price that the broker has now, if any, as the order is sized when it is placed. Raises as
    `order_ticket` does, and ConfigError and CredentialsRefused of the broker."""
    services = replace(services, clock=desk_clock(services))
    return order_ticket(services, wanted, asyncio.run(_live_price(services, wanted.symbol)))


def order_ticket(services: Services, wanted: PlaceOrder, live: Decimal | None = None) -> Ticket:
    """The order that a wish comes to, by the books and at a `live` price, else at the last close, beside the open
    orders; nothing is written, and the account is asked only when it is placed. Raises UsageError for what cannot be
    ordered here, MissingData for a desk that has not run or a symbol without a price."""
    preset = _preset(services)
    with records_in(places.desk_journal(services.desk), services.desk) as records:
        reader, symbol = records.required, wanted.symbol
        snapshot = journal_snapshot(reader)
        if snapshot.books is None:
            raise MissingData(records.absence)
        portfolio, session = snapshot.portfolio(), snapshot.books.session
        _check_symbol(services, symbol, portfolio.quantity(symbol))
        price = _with_live(last_prices(services, records, portfolio, symbol), symbol, live)
        waiting = [entry.order for entry in reader.orders(open_only=True)]
        identity = own_order_id(services.desk, session, symbol, wanted.side, 1)
        order = own_order(identity, wanted, price(symbol), session, held=portfolio.quantity(symbol))
        floor = cash_floor(portfolio, price, preset.sizing.cash_floor)
        refused = _halt_words(reader, order, portfolio.quantity(symbol)) or own_refusal(
            order, buying_power(portfolio, waiting, price), price(symbol), floor=floor
        )
        value = portfolio.value({one: price(one) for one in portfolio.positions})
        time = None if live is None else services.clock.now()
        fills = order_times(services).fills_at(order, services.clock.now())
        effect = order_effect(
            order, price, session, portfolio=portfolio, value=value, others=waiting, time=time, fills_at=fills
        )
        return Ticket(order=order, effect=effect, refused=refused)


async def place_order(services: Services, wanted: PlaceOrder, publish: Publish = lambda event: None) -> Ticket:
    """Settle the books, hold the order against the desk's limits, write it down and send it, under the desk's lock. One
    of the same terms whose outcome is not known yet is the same order: it is looked up, and sent again under its own id
    only where it never arrived. Raises as `order_ticket` and `run_daily` do."""
    preset = _preset(services)
    services = by_desk_time(services)
    with DeskJournal(services.desk) as journal:
        if journal.reader is None or not journal.reader.equity():
            raise MissingData(f"the desk {services.desk} has not run yet: paperdesk --daily")
        with journal.locked():
            if services.broker is None:
                return await _placed(desk_context(services, journal), preset, wanted, publish)
            async with desk_account(services, services.broker) as account:
                context = desk_context(services, journal, account=account)
                return await _placed(context, preset, wanted, publish)


async def _placed(context: DeskContext, preset: Preset, wanted: PlaceOrder, publish: Publish) -> Ticket:
    reader, journal = context.journal.reader, context.journal.writer
    assert reader is not None  # a desk with books has a journal
    identity = _identity(context, reader, wanted)
    run, now = f"{RunKind.ORDER}-{identity}", context.clock.now()

    def record(event: Event) -> None:
        journal.event(event)
        publish(event)

    market, late = await load_market(context, run, publish)
    _end_left_over(context, reader)
    entry = RunEntry(
        id=run,
        kind=RunKind.ORDER,
        name=preset.name,
        started=now,
        label=YOU,
        symbols=context.symbols,
        session=context.session,
        cycle=NO_CYCLE,
    )
    journal.run_started(entry)
    traded = desk_market(context, run, market, late, record)
    placing = _Placing(context=context, preset=preset, wanted=wanted, traded=traded, publish=record)
    outcome, detail, code = RunOutcome.FAILED, "", PaperdeskError.exit_code
    try:
        ticket = await placing.play(identity)
        outcome, detail = (RunOutcome.FAILED if ticket.refused else RunOutcome.DONE), ticket.refused
        code = NO if ticket.refused else 0
    except PaperdeskError as error:
        outcome, detail = RunOutcome.HALTED if isinstance(error, DeskHalted) else RunOutcome.FAILED, str(error)
        code = error.exit_code
        raise
    finally:
        now, detail = context.clock.now(), f"{wanted.description}: {detail}" if detail else ""
        journal.run_finished(run, outcome, now, detail=detail, extra={"exit_code": code})
        record(RunFinished(run, now, outcome, None, detail))
    return ticket


@dataclass(frozen=True, slots=True, kw_only=True)
class _Placing:
    """One order on its way.

    context: the desk and the session.
    preset: has the cash floor.
    wanted: what the operator asked for.
    traded: the market and the journal.
    publish: writes an event down, and publishes it.
    """

    context: DeskContext
    preset: Preset
    wanted: PlaceOrder
    traded: DeskMarket
    publish: Publish

    async def play(self, identity: str) -> Ticket:
        """Settle, and place the order; publish the trades that were booked for the session that goes on."""
        context, traded = self.context, self.traded
        recorder = traded.recorder(bars=1)
        venue, known = traded.venue(recorder), len(traded.reader.fills(traded.run))
        settlement = await venue.settle(context.session)
        for text in settlement.warnings:
            self.publish(Noticed(traded.run, context.clock.now(), "warning", text))
        publish_settled(traded.run, recorder, context.clock, self.publish, settlement.sessions)
        try:
            return await self._place(identity, venue)
        finally:
            books = venue.books
            assert books is not None  # settling has opened them
            for fill in traded.reader.fills(traded.run)[known:]:
                if fill.session > books.session:
                    self.publish(OrderFilled(traded.run, context.clock.now(), fill))

    async def _place(self, identity: str, venue: Venue) -> Ticket:
        """Size, hold against the limits, write down and send."""
        context, traded, symbol = self.context, self.traded, self.wanted.symbol
        _check_symbol(context.services, symbol, venue.portfolio.quantity(symbol))
        live = await _live_price(replace(context.services, clock=context.clock), symbol)
        close = traded.market.at(decision_time(context.calendar, context.session)).close
        price = _with_live(close, symbol, live)
        known = next((one.order for one in traded.reader.orders() if one.order.id == identity), None)
        order, refused = known, ""
        if order is None:
            order, refused = await self._limited(identity, venue, price)
        effect = self._effect(order, venue, price, None if live is None else context.clock.now())
        if refused:
            return Ticket(order=order, effect=effect, refused=refused)
        if known is None:
            traded.journal.order_intended(
                OrderEntry(
                    order=order,
                    run=traded.run,
                    desk=context.desk,
                    cycle=NO_CYCLE,
                    time=context.clock.now(),
                    owner=YOU,
                )
            )
        order = await self._sent(order, venue, price)
        detail = traded.reader.order_moves(order.id)[-1].detail
        return Ticket(order=order, effect=effect, detail=detail)

    async def _limited(self, identity: str, venue: Venue, price: Price) -> tuple[Order, str]:
        """The order, and why it is not taken, empty where it is."""
        symbol, power = self.wanted.symbol, await venue.refresh()
        whole = symbol in await venue.whole_shares([symbol])
        held, terms = power.held.get(symbol, ZERO), (await venue.terms([symbol])).get(symbol)
        step = OrderTerms().step if terms is None else terms.step
        order = own_order(identity, self.wanted, price(symbol), self.context.session, held=held, whole=whole, step=step)
        if symbol in {one.symbol for one in self.traded.frozen}:
            return order, f"{symbol} is frozen: its bars are unusable"
        floor = cash_floor(venue.portfolio, price, self.preset.sizing.cash_floor)
        refused = _halt_words(self.traded.reader, order, held) or await venue.restriction(symbol)
        refused = refused or own_refusal(order, power, price(symbol), floor=floor)
        return order, refused or refused_by_venue(order, terms, power, price(symbol))

    def _effect(self, order: Order, venue: Venue, price: Price, time: datetime | None) -> Row:
        portfolio = venue.portfolio
        value = portfolio.value({symbol: price(symbol) for symbol in portfolio.positions})
        others = [entry.order for entry in self.traded.reader.orders(open_only=True)]
        fills = order_times(self.context.services).fills_at(order, self.context.clock.now())
        session = self.context.session
        return order_effect(
            order, price, session, portfolio=portfolio, value=value, others=others, time=time, fills_at=fills
        )

    async def _sent(self, order: Order, venue: Venue, price: Price) -> Order:
        """The order after it was sent, and what has filled is booked. A halt that came meanwhile ends it."""
        context, traded = self.context, self.traded
        submission = Submission(
            run=traded.run,
            session=context.session,
            symbols=context.symbols,
            mode=TradingMode.AUTO,  # whoever gives an order has approved it
            cash_floor=self.preset.sizing.cash_floor,
            allow_short=False,
            venue=venue,
            journal=traded.journal,
            reader=traded.reader,
            calendar=context.calendar,
            clock=context.clock,
            wait=asyncio.sleep,
            publish=self.publish,
            frozen=frozenset(one.symbol for one in traded.frozen),
            while_halted=_reduces(order, venue.portfolio.quantity(order.symbol)),
        )
        done = await submission.submit([order], price)
        if done.halted is not None and done.orders[0].state is OrderState.INTENDED:
            stopped = order.moved(OrderState.CANCELED)
            traded.journal.order_moved(stopped, context.clock.now(), detail=STOPPED)
            return stopped
        if venue.real_time:
            await book_sent(venue, asyncio.sleep, context.session, done.orders)
        return next(entry.order for entry in traded.reader.orders() if entry.order.id == order.id)


async def _live_price(services: Services, symbol: Symbol) -> Decimal | None:
    """The price of a symbol that the broker's feed has at this moment; None where there is none."""
    feed = None if services.broker is None else services.broker.open_feed(services.clock)
    if feed is None:
        return None
    live = LivePrices()
    with suppress(PaperdeskError):  # the close is a price as well; the limits are held against it then
        for one in await feed.latest([symbol]):
            live.update(one)
    return live.price(symbol, services.clock.now())


def _with_live(close: Price, symbol: Symbol, live: Decimal | None) -> Price:
    """The last closes, but for a symbol its live price where there is one."""
    return close if live is None else lambda one: live if one == symbol else close(one)


def _preset(services: Services) -> Preset:
    """The desk's preset. Raises UsageError for a desk that takes no order of the operator's."""
    if services.config.broker.mode is TradingMode.OBSERVE:
        raise UsageError(
            f"the desk {services.desk} is in observe mode and sends nothing: set broker.mode to auto or ask"
        )
    preset = load_preset(services.config.desk.preset)
    if has_books(preset):
        raise UsageError(f"the owners of {preset.name} keep separate books, and your own order belongs to none of them")
    return preset


def _check_symbol(services: Services, symbol: Symbol, held: Decimal) -> None:
    if symbol not in services.symbols and not held:
        raise UsageError(
            f"{symbol} is neither traded nor held by the desk: it trades {', '.join(services.symbols)} (desk.symbols)"
        )


def _halt_words(reader: JournalReader, order: Order, held: Decimal) -> str:
    halt = halted(reader)
    if halt is None or _reduces(order, held):
        return ""
    return (
        f"the desk is halted since {halt.since:%Y-%m-%d %H:%M} UTC, and only orders that reduce a position are "
        "accepted: press K or run `paperdesk resume`"
    )


def _reduces(order: Order, held: Decimal) -> bool:
    """True for an order against what is held; the limits keep it from going further."""
    return held > 0 if order.side is Side.SELL else held < 0


def _identity(context: DeskContext, reader: JournalReader, wanted: PlaceOrder) -> str:
    """The id of the order: that of the last one of the same terms whose outcome is not known, else a new one. Raises
    TryAgainLater where the outcome of one of other terms is not known."""
    before = [
        entry.order
        for entry in reader.orders(symbol=wanted.symbol, session=context.session)
        if is_own(entry.order.id) and entry.order.side is wanted.side
    ]
    for order in before:
        if order.state in (OrderState.SUBMITTING, OrderState.UNKNOWN):
            if _same_size(order, wanted):
                return order.id
            raise TryAgainLater(
                f"it is unknown whether your order {order.id} arrived: repeat the same order, or run paperdesk "
                "--daily, before placing another one"
            )
    return own_order_id(context.desk, context.session, wanted.symbol, wanted.side, len(before) + 1)


def _same_size(order: Order, wanted: PlaceOrder) -> bool:
    """True where an order may have come of the same wish: one of its two sizes is what was asked for, or was sized by a
    price."""
    asked = order.notional if wanted.size.money else order.quantity
    return asked is None or asked == wanted.size.number


def _end_left_over(context: DeskContext, reader: JournalReader) -> None:
    """End orders of the operator that were written down by a program that was killed before it sent them."""
    left: Sequence[OrderEntry] = [one for one in reader.orders(open_only=True) if is_own(one.order.id)]
    for entry in left:
        if entry.order.state is OrderState.INTENDED:
            ended = entry.order.moved(OrderState.CANCELED)
            context.journal.writer.order_moved(ended, context.clock.now(), detail=LEFT)


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
        return "the order was not sent yet: reject it with `paperdesk veto`"
    if order.state in (OrderState.SUBMITTING, OrderState.UNKNOWN):
        return "it is unknown yet whether the order has arrived: the next run asks the broker"
    return f"the order is {order.state} already"


def _on_simulated_market(
    services: Services, journal: DeskJournal, entry: OrderEntry, publish: Publish
) -> AnsweredOrder:
    order, now, reader = entry.order, services.clock.now(), journal.reader
    assert reader is not None  # the order is in it
    _, fills = fill_session(services.desk_calendar(services.symbols), order, reader.sent_at(order.id))
    if now >= fills:
        late = f"its session has opened, at {minute(fills)}: the next run books its fills"
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
        state = f"not canceled yet, its state at the broker is {theirs or 'unknown'}: try again"
    return AnsweredOrder(order, state, refused=refused, decided=entry.decided)
