"""Submit orders one by one in a fixed order; every reason against it is checked again before every request.

An order is written as being submitted before it is sent, so a run that is killed knows what may have left; what may
have arrived is looked up by our id and never assumed, and sent again under the same id only where it is not there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum, auto

from engine.domain.market import Symbol
from engine.domain.order import ZERO, Order, OrderState, OrderUpdate, Portfolio, Side, is_final
from engine.domain.run import TradingMode
from engine.errors import DataError, NetworkError, PaperdeskError, TryAgainLater
from engine.execution.controls import Halted, Paused, approvals, halted, paused
from engine.execution.limits import Price, cash_floor, cost, refused_by_venue, shortfall
from engine.execution.venue import Venue
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.market.trading_hours import session_to_decide
from engine.messages.events import Event, Noticed, OrderMoved
from engine.ports import Calendar, Clock, Pause

ATTEMPTS = 3
"""Attempts to send an order whose arrival cannot be seen."""
LOOKUPS = (0.5, 2.0, 5.0)
"""Seconds to wait before each question of whether an order arrived."""
TRANSIT = timedelta(minutes=1)
"""Time before the next close at which the last order is sent: one that arrives after it would wait for another
session."""


@dataclass(frozen=True, slots=True)
class SubmissionResult:
    """The orders in their present states; `waiting` are those that wait for approval, `halted` says that a person
    stopped the desk before the last was sent."""

    orders: tuple[Order, ...]
    waiting: tuple[Order, ...] = ()
    halted: Halted | None = None


class _Gate(Enum):
    OPEN = auto()
    HALTED = auto()
    WAITING = auto()
    ENDED = auto()


@dataclass(frozen=True, slots=True)
class _Bounds:
    """The bounds of the orders of one call: `floor` is cash (quote currency) that buys must leave."""

    price: Price
    floor: Decimal
    until: datetime | None


class _NotTaken(PaperdeskError):
    """An order that was sent again and again and that the broker, which answers, does not have."""

    def __init__(self, order: Order, problem: PaperdeskError) -> None:
        super().__init__(
            f"order {order.id} was sent {ATTEMPTS} times and the broker does not have it ({problem}): run again later, "
            "its id keeps it from being traded twice"
        )
        self.order, self.kind = order, _kind_of(problem)


def _kind_of(problem: PaperdeskError) -> type[PaperdeskError]:
    """The kind of error for a broker that did not answer, or that asks for patience."""
    return NetworkError if isinstance(problem, NetworkError) else TryAgainLater


def _covering(bounds: _Bounds, order: Order, portfolio: Portfolio) -> _Bounds:
    """The bounds after an order that buys back what was sold short: the cash that is reserved for it need not stay a
    second time for the short position."""
    short = -portfolio.quantity(order.symbol)
    if order.side is not Side.BUY or order.quantity is None or short <= 0:
        return bounds
    cover = replace(order, quantity=min(order.quantity, short))
    return replace(bounds, floor=bounds.floor - cost(cover, bounds.price(order.symbol)))


def _reserving(bounds: _Bounds, order: Order) -> _Bounds:
    """Bounds that keep the cash of a buy which may yet arrive."""
    if order.side is not Side.BUY:
        return bounds
    return replace(bounds, floor=bounds.floor + cost(order, bounds.price(order.symbol)))


class OrderRoute:
    """The way of a run's orders to its venue, and what an operator has stopped. This one leads nowhere: nothing is
    sent, and neither a halt nor a pause counts."""

    def halt(self) -> Halted | None:
        """The halt that an operator has set; None where orders may be sent."""
        return None

    def pause(self) -> Paused | None:
        """The pause that an operator has set; None where a cycle may begin."""
        return None

    async def submit(self, orders: Sequence[Order], price: Price, until: datetime | None = None) -> SubmissionResult:
        """Send every order that was not sent yet; none from `until` on. `price` is what was decided on."""
        return SubmissionResult(tuple(orders))


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission(OrderRoute):
    """The route of a desk's orders to its venue: under the operator's controls, and safe against kills.

    run: id of the run
    session: the last completed session, which was decided on
    symbols: all of the run
    mode: auto, ask or observe, as configured
    cash_floor: the share of the portfolio's value, as a fraction, that buys must leave in cash
    allow_short: a sale may exceed what is held
    venue: where orders are sent
    journal, reader: the desk's journal, to write and to read
    calendar: the desk's sessions
    clock: when orders are sent, UTC
    wait: waits so many seconds
    publish: receives every event
    frozen: symbols of which nothing is sent, because their data contradicts itself or is missing
    while_halted: the orders reduce positions, and are sent while the desk is halted too
    """

    run: str
    session: date
    symbols: tuple[Symbol, ...]
    mode: TradingMode
    cash_floor: Decimal
    allow_short: bool
    venue: Venue
    journal: JournalWriter
    reader: JournalReader
    calendar: Calendar
    clock: Clock
    wait: Pause
    publish: Callable[[Event], None]
    frozen: frozenset[Symbol] = frozenset()
    while_halted: bool = False

    def halt(self) -> Halted | None:
        """The halt that an operator has set."""
        return None if self.while_halted else halted(self.reader)

    def pause(self) -> Paused | None:
        """The pause that an operator has set."""
        return paused(self.reader)

    async def submit(self, orders: Sequence[Order], price: Price, until: datetime | None = None) -> SubmissionResult:
        """Send what was not sent yet. Raises TryAgainLater (NetworkError where nobody answers) where it stays unknown
        whether an order arrived: the next run looks it up again. One that the broker does not take keeps its cash
        reserved, and the others are sent before that is raised."""
        portfolio = self.venue.portfolio
        bounds = _Bounds(price, cash_floor(portfolio, price, self.cash_floor), until)
        submitted: list[Order] = []
        waiting: list[Order] = []
        stopped: Halted | None = None
        lost: list[_NotTaken] = []
        for order in orders:
            gate = _Gate.OPEN
            if order.state in (OrderState.INTENDED, OrderState.SUBMITTING, OrderState.UNKNOWN):
                try:
                    order, gate = await self._send(order, bounds)
                except _NotTaken as error:
                    order, bounds = error.order, _reserving(bounds, error.order)
                    lost.append(error)
                if gate is _Gate.HALTED:
                    stopped = self.halt()
            if gate is _Gate.WAITING:
                waiting.append(order)
            elif order.state not in (OrderState.CANCELED, OrderState.EXPIRED, OrderState.REJECTED):
                bounds = _covering(bounds, order, portfolio)
            submitted.append(order)
            self._publish_left(order)
        if lost:
            kinds = {one.kind for one in lost}
            raise (kinds.pop() if len(kinds) == 1 else TryAgainLater)("; ".join(map(str, lost)))
        return SubmissionResult(tuple(submitted), tuple(waiting), stopped)

    async def _send(self, order: Order, bounds: _Bounds) -> tuple[Order, _Gate]:
        """The order in its final state here, and what kept it from being sent."""
        problem: PaperdeskError | None = None
        for attempt in range(ATTEMPTS):
            if order.state is not OrderState.INTENDED:  # it may have arrived
                update = await self._look_up(order, waits=LOOKUPS if attempt else (0.0, *LOOKUPS))
                if update is not None:
                    return self._arrived(order, update), _Gate.OPEN
            order, gate = await self._gate(order, bounds)
            if gate is not _Gate.OPEN:
                return order, gate
            try:
                return await self._placed(order), _Gate.OPEN
            except (TryAgainLater, NetworkError, DataError) as error:
                problem = error
                order = self._write(order.moved(OrderState.UNKNOWN), detail=str(error))
        update = await self._look_up(order, waits=LOOKUPS)
        if update is not None:
            return self._arrived(order, update), _Gate.OPEN
        assert problem is not None  # every attempt ended with one
        raise _NotTaken(order, problem)

    async def _placed(self, order: Order) -> Order:
        """The order after it was sent. Who cancels the run meanwhile waits for the answer, so that it is written."""
        sent = asyncio.ensure_future(self.venue.place(order))
        try:
            return self._arrived(order, await asyncio.shield(sent))
        except asyncio.CancelledError:
            with suppress(PaperdeskError):  # it is looked up by the next run
                self._arrived(order, await sent)
            raise

    async def _look_up(self, order: Order, waits: Sequence[float]) -> OrderUpdate | None:
        """The state of an order that was sent; None where the broker does not have it, after the first clear answer.
        Raises NetworkError where no answer comes, TryAgainLater where the broker asks for patience."""
        problem: PaperdeskError | None = None
        for wait in waits:
            if wait:
                await self.wait(wait)
            try:
                return await self.venue.lookup(order.id)
            except (TryAgainLater, NetworkError, DataError) as error:
                problem = error
        assert problem is not None  # every wait ended with one
        raise _kind_of(problem)(f"it is unknown whether order {order.id} arrived ({problem}): run again later")

    async def _gate(self, order: Order, bounds: _Bounds) -> tuple[Order, _Gate]:
        """The gate of an order at this moment: open once the order is written as being submitted. One that can never
        pass again is ended with the reason. A command that comes while the broker is asked is read before that."""
        while True:
            seen = self.reader.last_command_number()
            order, gate = self._controls_and_time(self.reader.edited(order), bounds)
            if gate is not _Gate.OPEN:
                return order, gate
            if order.symbol in self.frozen:
                return self._ended(order, OrderState.CANCELED, f"{order.symbol} is frozen: its bars are unusable")
            restriction = await self.venue.restriction(order.symbol) or await self._shortfall(order, bounds)
            if restriction:
                return self._ended(order, OrderState.CANCELED, restriction)
            # Asking the broker takes its time: a close that came meanwhile counts.
            order, gate = self._controls_and_time(order, bounds)
            if gate is not _Gate.OPEN or order.state is OrderState.SUBMITTING:
                return order, gate
            submitting = order.moved(OrderState.SUBMITTING)
            if self.journal.order_submitting(submitting, self.clock.now(), seen=seen):
                return submitting, gate

    def _controls_and_time(self, order: Order, bounds: _Bounds) -> tuple[Order, _Gate]:
        """The gate by the operator's commands so far and by the time that is left."""
        mode = self.mode
        if self.halt() is not None:
            return order, _Gate.HALTED
        if mode is TradingMode.OBSERVE:
            return self._ended(order, OrderState.CANCELED, "the desk observes: nothing is sent")
        approval = approvals(self.reader, [order.id]).get(order.id) if mode is TradingMode.ASK else None
        if approval is not None and not approval.approved:
            return self._ended(
                order, OrderState.CANCELED, f"vetoed: {approval.reason}" if approval.reason else "vetoed"
            )
        late = self._too_late(bounds.until)
        if late:
            return self._ended(order, OrderState.EXPIRED, late)
        return order, _Gate.WAITING if mode is TradingMode.ASK and approval is None else _Gate.OPEN

    async def _shortfall(self, order: Order, bounds: _Bounds) -> str:
        """The cash or shares that the account lacks for an order beside what is open there, or the venue's own limit
        that it would not pass; empty for none."""
        price, power = bounds.price(order.symbol), await self.venue.refresh()
        lacks = shortfall(order, power, price, floor=bounds.floor, allow_short=self.allow_short)
        terms = (await self.venue.terms([order.symbol])).get(order.symbol)
        return lacks or refused_by_venue(order, terms, power, price)

    def _too_late(self, until: datetime | None) -> str:
        """The reason why nothing of the run can be sent any more; empty where it still can."""
        now = self.clock.now()
        if not self.venue.real_time:
            return ""
        if until is not None and now >= until:
            return f"the session in which it was decided is over since {until:%H:%M} UTC"
        if session_to_decide(self.calendar, self.symbols, None, now) != self.session:
            return f"{self.session} is no longer the last completed session"
        if session_to_decide(self.calendar, self.symbols, None, now + TRANSIT) != self.session:
            return f"{self.session} is the last completed session for too short a time to reach the broker"
        return ""

    def _ended(self, order: Order, state: OrderState, reason: str) -> tuple[Order, _Gate]:
        return self._write(order.moved(state), detail=reason), _Gate.ENDED

    def _arrived(self, order: Order, update: OrderUpdate) -> Order:
        if update.detail and not is_final(update.state):
            self.publish(Noticed(self.run, self.clock.now(), "warning", f"order {order.id}: {update.detail}"))
        return self._write(order.moved(update.state), filled=update.filled_quantity, detail=update.detail)

    def _write(self, order: Order, *, filled: Decimal = ZERO, detail: str = "") -> Order:
        self.journal.order_moved(order, self.clock.now(), filled=filled, detail=detail)
        if is_final(order.state) and detail:
            self._publish_state(order, detail)
        return order

    def _publish_left(self, order: Order) -> None:
        """Publish the state in which an order is left; one that ended for a reason was published with it."""
        if not is_final(order.state) or not self.reader.order_moves(order.id)[-1].detail:
            self._publish_state(order)

    def _publish_state(self, order: Order, detail: str = "") -> None:
        self.publish(OrderMoved(self.run, self.clock.now(), order, detail))
