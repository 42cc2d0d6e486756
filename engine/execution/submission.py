"""Hands orders over, one by one in a fixed order: every reason not to is looked for again before every request.

An order is written as being submitted before it is sent, so a run that is killed knows what may have left; what may
have arrived is looked up by our id and never assumed, and sent again under the same id only where it is not there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum, auto

from engine.domain.market import Symbol
from engine.domain.order import Order, OrderState, OrderUpdate, Side, is_final
from engine.domain.portfolio import ZERO
from engine.domain.run import TradingMode
from engine.errors import DataError, NetworkError, PaperdeskError, TryAgainLater
from engine.execution.controls import Halted, approvals, halted
from engine.execution.limits import cost
from engine.execution.venue import Venue
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.market.trading_hours import session_to_decide
from engine.messages.events import Event, OrderMoved
from engine.ports import Calendar, Clock, Pause

ATTEMPTS = 3
"""How often an order is sent whose arrival cannot be seen."""
LOOKS = (0.5, 2.0, 5.0)
"""Seconds to wait before each question of whether an order arrived."""
ON_ITS_WAY = timedelta(minutes=1)
"""How long before the next close the last order is sent: one that arrives after it would wait for another session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionTerms:
    """What binds every order of a run. `floor` is cash (quote currency) that buys must leave; `mode` as configured;
    `prices` gives the close, or the price of the moment, that was decided on; nothing is sent from `until` on."""

    run: str
    session: date
    symbols: tuple[Symbol, ...]
    mode: TradingMode
    floor: Decimal
    allow_short: bool
    prices: Callable[[Symbol], Decimal]
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class SubmissionResult:
    """Where the orders stand now; `waiting` are those that wait for approval, `halted` says that a person stopped
    the desk before the last was sent."""

    orders: tuple[Order, ...]
    waiting: tuple[Order, ...] = ()
    halted: Halted | None = None


class _Gate(Enum):
    OPEN = auto()
    HALTED = auto()
    WAITING = auto()
    ENDED = auto()


class Submission:
    """Hands a run's orders over to a venue."""

    def __init__(
        self,
        terms: SubmissionTerms,
        venue: Venue,
        journal: JournalWriter,
        calendar: Calendar,
        clock: Clock,
        pause: Pause,
        publish: Callable[[Event], None],
    ) -> None:
        self._terms = terms
        self._venue = venue
        self._journal = journal
        self._calendar = calendar
        self._clock = clock
        self._pause = pause
        self._publish = publish

    async def hand_over(self, orders: Sequence[Order]) -> SubmissionResult:
        """Hands over what was not handed over yet. Raises TryAgainLater where it stays unknown whether an order
        arrived: it is looked up again by the next run."""
        handed: list[Order] = []
        waiting: list[Order] = []
        stopped: Halted | None = None
        for order in orders:
            gate = _Gate.OPEN
            if order.state in (OrderState.INTENDED, OrderState.SUBMITTING, OrderState.UNKNOWN):
                order, gate = await self._send(order)
                if gate is _Gate.HALTED:
                    stopped = self._halted()
            if gate is _Gate.WAITING:
                waiting.append(order)
            handed.append(order)
            self._tell(order)
        return SubmissionResult(tuple(handed), tuple(waiting), stopped)

    async def _send(self, order: Order) -> tuple[Order, _Gate]:
        """The order as it stands in the end, and what kept it from being sent."""
        problem = ""
        for attempt in range(ATTEMPTS):
            if order.state is not OrderState.INTENDED:  # it may have arrived
                standing = await self._look_up(order, waits=LOOKS if attempt else (0.0, *LOOKS))
                if standing is not None:
                    return self._arrived(order, standing), _Gate.OPEN
            order, gate = await self._gate(order)
            if gate is not _Gate.OPEN:
                return order, gate
            if order.state is not OrderState.SUBMITTING:
                order = self._write(order.moved(OrderState.SUBMITTING))
            try:
                return await self._placed(order), _Gate.OPEN
            except (TryAgainLater, NetworkError, DataError) as error:
                problem = str(error)
                order = self._write(order.moved(OrderState.UNKNOWN), detail=problem)
        standing = await self._look_up(order, waits=LOOKS)
        if standing is not None:
            return self._arrived(order, standing), _Gate.OPEN
        raise TryAgainLater(
            f"order {order.id} was sent {ATTEMPTS} times and the broker does not have it ({problem}): run again later, "
            "its id keeps it from being traded twice"
        )

    async def _placed(self, order: Order) -> Order:
        """Sends an order. Who cancels the run meanwhile waits for the answer, so that it is written down."""
        sent = asyncio.ensure_future(self._venue.place(order))
        try:
            return self._arrived(order, await asyncio.shield(sent))
        except asyncio.CancelledError:
            with suppress(PaperdeskError):  # it is looked up by the next run
                self._arrived(order, await sent)
            raise

    async def _look_up(self, order: Order, waits: Sequence[float]) -> OrderUpdate | None:
        """How an order that was sent stands; None where the broker does not have it, after the first clear answer.
        Raises TryAgainLater where no answer comes."""
        problem = ""
        for wait in waits:
            if wait:
                await self._pause(wait)
            try:
                return await self._venue.lookup(order.id)
            except (TryAgainLater, NetworkError, DataError) as error:
                problem = str(error)
        raise TryAgainLater(f"it is not known whether order {order.id} arrived ({problem}): run again later")

    async def _gate(self, order: Order) -> tuple[Order, _Gate]:
        """Whether an order may be sent at this moment; one that never may again is ended with the reason."""
        order, gate = self._word_and_time(order)
        if gate is not _Gate.OPEN:
            return order, gate
        objection = await self._venue.objection(order.symbol) or await self._lacking(order)
        if objection:
            return self._ended(order, OrderState.CANCELED, objection)
        # Asking the broker takes its time: what the person said meanwhile counts, and so does a close.
        return self._word_and_time(order)

    def _word_and_time(self, order: Order) -> tuple[Order, _Gate]:
        """What the person has said by now, and whether there is still time."""
        terms = self._terms
        with JournalReader(self._journal.path) as reader:
            stopped = halted(reader)
            word = approvals(reader, [order.id]).get(order.id) if terms.mode is TradingMode.ASK else None
        if stopped is not None:
            return order, _Gate.HALTED
        if terms.mode is TradingMode.OBSERVE:
            return self._ended(order, OrderState.CANCELED, "the desk observes: nothing is sent")
        if word is not None and not word.approved:
            return self._ended(order, OrderState.CANCELED, f"vetoed: {word.reason}" if word.reason else "vetoed")
        late = self._too_late()
        if late:
            return self._ended(order, OrderState.EXPIRED, late)
        return order, _Gate.WAITING if terms.mode is TradingMode.ASK and word is None else _Gate.OPEN

    async def _lacking(self, order: Order) -> str:
        """What the account lacks for an order, whatever else is still open there."""
        means, price = await self._venue.refresh(), self._terms.prices(order.symbol)
        if order.side is Side.BUY:
            left = means.cash - means.reserved - cost(order, price)
            if left < self._terms.floor:
                return f"it would leave {left:.2f} in cash, and {self._terms.floor:.2f} has to stay"
            return ""
        free = means.held.get(order.symbol, ZERO) - means.queued.get(order.symbol, ZERO)
        wanted = order.quantity or ZERO
        if self._terms.allow_short or wanted <= free:
            return ""
        return f"it would sell {wanted.normalize():f} shares, and {max(free, ZERO).normalize():f} are free to be sold"

    def _too_late(self) -> str:
        """Why nothing of the run can be sent any more; empty where it still can."""
        terms, now = self._terms, self._clock.now()
        if not self._venue.real_time:
            return ""
        if terms.until is not None and now >= terms.until:
            return f"the session in which it was decided is over since {terms.until:%H:%M} UTC"
        if session_to_decide(self._calendar, terms.symbols, None, now) != terms.session:
            return f"{terms.session} is no longer the last completed session"
        if session_to_decide(self._calendar, terms.symbols, None, now + ON_ITS_WAY) != terms.session:
            return f"{terms.session} is the last completed session for too short a time to reach the broker"
        return ""

    def _halted(self) -> Halted | None:
        with JournalReader(self._journal.path) as reader:
            return halted(reader)

    def _ended(self, order: Order, state: OrderState, reason: str) -> tuple[Order, _Gate]:
        return self._write(order.moved(state), detail=reason), _Gate.ENDED

    def _arrived(self, order: Order, update: OrderUpdate) -> Order:
        return self._write(order.moved(update.state), filled=update.filled_quantity, detail=update.detail)

    def _write(self, order: Order, *, filled: Decimal = ZERO, detail: str = "") -> Order:
        self._journal.order_moved(order, self._clock.now(), filled=filled, detail=detail)
        if is_final(order.state) and detail:
            self._tell(order, detail)
        return order

    def _tell(self, order: Order, detail: str = "") -> None:
        now = self._clock.now()
        moved = OrderMoved(
            run=self._terms.run,
            time=now,
            order_id=order.id,
            session=order.session,
            symbol=order.symbol,
            side=order.side,
            state=order.state,
            detail=detail,
        )
        self._publish(moved)
