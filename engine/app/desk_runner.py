"""The running desk of the app: commands in, events out, one cycle at a time.

It lives on an event loop of its own (the app gives it a thread), so that nothing it does holds up a screen.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from engine.app.desk.booking_queue import BookingQueue
from engine.app.models.models import PAUSE_SECONDS, Gate
from engine.domain.text import state_words
from engine.errors import InvariantBroken, PaperdeskError, TryAgainLater
from engine.execution import controls
from engine.messages.bus import Bus
from engine.messages.commands import (
    Approve,
    CancelOrder,
    Command,
    Halt,
    OrderCommand,
    Pause,
    PlaceOrder,
    ResizeOrder,
    Resume,
    RunCycle,
    Shutdown,
    TakeBackOrder,
    Unpause,
    Veto,
)
from engine.messages.events import CommandEnded, CycleFailed, Noticed
from engine.reports.documents.order_effect import Ticket

if TYPE_CHECKING:
    from engine.app.open_desk import OpenDesk

PATIENCE = 1.5
"""Seconds that a cycle has to end once it is cancelled; quitting takes at most two."""


class DeskRunner:
    """The runner of commands, one cycle at a time. An error becomes a `Noticed` of level `error`, and never ends
    the desk.

    A halt waits for nothing but the journal: neither for the cycle nor for orders that are being sent. At a pause of
    the desk, whoever has set it, the cycle waits before its next question, and goes on once the pause is over."""

    def __init__(self, bus: Bus, desk: OpenDesk, *, unsent: bool = False) -> None:
        """With `unsent` there are orders that were answered and not sent: an app was killed within the time for an
        undo."""
        self._bus, self._desk = bus, desk
        self.own_orders = OwnOrderQueue(self._placed, desk.undo_seconds, self._answer)
        """The operator's own orders, until they are on their way."""
        self._answers = 0
        """Answers so far: the orders that were answered are sent some seconds after the last one."""
        self._leaving = asyncio.Event()
        self._controls: set[asyncio.Task[None]] = set()
        # Controls are written in the order in which they came; one task at a time sends orders, or books fills.
        self._writing = asyncio.Lock()
        self._sending = asyncio.Lock()
        self.bookings: BookingQueue | None = None
        """Bookings of what the feed says; None where the next run books it."""
        if desk.books_fills:
            self.bookings = BookingQueue(lambda: desk.book(bus.publish), self._notice, self._sending, self._idle)
        self._unsent = unsent
        self._waiting: deque[Command] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._arrived = asyncio.Event()
        self._unpaused = asyncio.Event()
        self._cycle: asyncio.Task[None] | None = None

    @property
    def busy(self) -> bool:
        """True while a cycle is asked for or under way, also where it waits at a pause."""
        return self._at_work or any(isinstance(command, RunCycle) for command in tuple(self._waiting))

    @property
    def _at_work(self) -> bool:
        return self._cycle is not None and not self._cycle.done()

    def send(self, command: Command) -> None:
        """Queue a command, from any thread, before or while the desk serves; never waits."""
        self._waiting.append(command)
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._arrived.set)

    async def serve(self) -> None:
        """Carry out commands until Shutdown, then give the cycle PATIENCE seconds to end."""
        self._loop = asyncio.get_running_loop()
        if self._unsent:
            self._begin_control(self._send_answered)
        try:
            while True:
                while self._waiting:
                    command = self._waiting[0]  # there until its cycle is: the desk is busy all the time
                    if isinstance(command, Shutdown):
                        return
                    self._carry_out(command)
                    self._waiting.popleft()
                self._arrived.clear()
                if not self._waiting:
                    await self._arrived.wait()
        finally:
            await self._end()
            self._loop = None

    def _carry_out(self, command: Command) -> None:
        match command:
            case RunCycle() if self._at_work:
                self._notice("info", "a cycle is running already")
            case RunCycle(symbol):
                work = partial(self._whole_cycle, lambda gate: self._desk.run_cycle(self._bus.publish, gate, symbol))
                self._cycle = asyncio.create_task(self._guarded(work, self._fail), name="cycle")
            case Halt() | Resume() | Pause() | Unpause() | OrderCommand() | ResizeOrder():
                self._begin_control(partial(self._control, command))
            case PlaceOrder():
                self._begin_control(partial(self.own_orders.send, command, self._idle))
            case CancelOrder(order_id):
                self._begin_control(partial(self._cancel_sent, order_id))
            case TakeBackOrder():
                self.own_orders.take_back()
            case _:
                raise InvariantBroken(f"the desk does not know what to do with {type(command).__name__}")

    def _begin_control(self, work: Callable[[], Awaitable[None]]) -> None:
        control = asyncio.create_task(self._guarded(work, self._answer), name="control")
        self._controls.add(control)
        control.add_done_callback(self._controls.discard)

    async def _idle(self) -> None:
        """Wait until no cycle is at work, no order is sent, and no fill booked."""
        while self._at_work or self._sending.locked():
            if self._cycle is not None and not self._cycle.done():
                await asyncio.wait({self._cycle})
            async with self._sending:
                pass

    async def take_turn(self, work: Callable[[Gate], Awaitable[None]]) -> None:
        """Have work done as a cycle, once no other is at work; raises what it raises."""
        await self._idle()
        self._cycle = asyncio.create_task(self._whole_cycle(work), name="cycle")
        await self._cycle

    async def _whole_cycle(self, work: Callable[[Gate], Awaitable[None]]) -> None:
        async with self._sending:  # a booking that is at work has the desk's lock
            pass
        await work(self._gate)
        if self._unsent:  # answered while the cycle was at work, and too late for it
            await self._submit_answered()

    async def _control(self, command: Command) -> None:
        async with self._writing:
            # In a thread: the journal's lock may be held by another process for a moment.
            done = await asyncio.to_thread(self._write, command)
        if isinstance(command, Approve | Veto) and self._desk.undo_seconds and not self._leaving.is_set():
            done += f"; it can be undone for {self._desk.undo_seconds:g} s"
        level = "warning" if isinstance(command, Halt | Pause) else "info"
        self._answer(level, done, command.order_id if isinstance(command, OrderCommand) else "")
        self._unpaused.set()
        if isinstance(command, Approve | Veto):
            await self._send_answered()

    def _write(self, command: Command) -> str:
        if isinstance(command, ResizeOrder):
            command = self._desk.edit(command.order_id, command.size)
        return controls.carry_out(self._desk.journal, command, self._desk.clock.now())

    async def _placed(self, wanted: PlaceOrder) -> Ticket:
        async with self._sending:
            return await self._desk.place(wanted, self._bus.publish)

    async def _cancel_sent(self, order_id: str) -> None:
        await self._idle()
        async with self._sending:
            text = await self._desk.cancel(order_id, self._bus.publish)
        self._answer("info", text)

    async def _is_last_answer(self) -> bool:
        """Wait as long as an answer can be undone; True where no other came meanwhile, or the desk is being left."""
        self._answers += 1
        answer = self._answers
        with suppress(TimeoutError):
            await asyncio.wait_for(self._leaving.wait(), self._desk.undo_seconds)
        return answer == self._answers

    async def _send_answered(self) -> None:
        """Send the orders that were answered, once the last answer cannot be undone any more."""
        self._unsent = True
        if await self._is_last_answer():
            await self._submit_answered()

    async def _submit_answered(self) -> None:
        async with self._sending:
            if not self._unsent:  # one submission serves all orders that were answered meanwhile
                return
            self._unsent = False
            try:
                await self._desk.submit(self._bus.publish)
            except TryAgainLater as error:
                self._unsent = True
                self._notice("warning", f"the answer is recorded, and nothing was sent yet: {error}")

    async def _guarded(self, work: Callable[[], Awaitable[None]], notice: Notice) -> None:
        try:
            await work()
        except PaperdeskError as error:
            notice("error", str(error))
        except Exception as error:  # a bug must be seen, and must not take the desk down
            notice("error", f"a bug: {type(error).__name__}: {error}")

    async def _gate(self) -> None:
        # A model that answers without waiting (the rules) would else keep the loop to itself.
        await asyncio.sleep(0)
        while controls.pause_of(self._desk.journal) is not None:
            self._unpaused.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._unpaused.wait(), PAUSE_SECONDS)

    async def _end(self) -> None:
        """Cancel the cycle and drop orders that are not on their way; other controls are carried out, at once."""
        self._leaving.set()
        self.own_orders.drop_all()
        if self.bookings is not None:
            self.bookings.drop()
        at_work = set(self._controls)
        if self._cycle is not None and not self._cycle.done():
            self._cycle.cancel()
            at_work.add(self._cycle)
        if at_work:
            await asyncio.wait(at_work, timeout=PATIENCE)

    def _notice(self, level: str, text: str) -> None:
        self._bus.publish(Noticed("", self._desk.clock.now(), level, text))

    def _fail(self, level: str, text: str) -> None:
        self._bus.publish(CycleFailed("", self._desk.clock.now(), level, text))

    def _answer(self, level: str, text: str, order: str = "") -> None:
        self._bus.publish(CommandEnded("", self._desk.clock.now(), level, text, order))


Place = Callable[[PlaceOrder], Awaitable[Ticket]]
Notice = Callable[[str, str], None]
"""A listener for a level and a line."""


class OwnOrderQueue:
    """Orders that are not on their way yet. One that is dropped leaves no trace; what is placed is in the journal."""

    def __init__(self, place: Place, undo_seconds: float, notice: Notice) -> None:
        """`place` places an order; `notice` hears what comes of each."""
        self._place, self._undo_seconds, self._notice = place, undo_seconds, notice
        self._waiting: dict[asyncio.Task[None], PlaceOrder] = {}
        self._placing = asyncio.Lock()

    @property
    def waiting(self) -> tuple[PlaceOrder, ...]:
        """The orders that can still be taken back, in the order in which they were given."""
        return tuple(self._waiting.values())

    async def send(self, wanted: PlaceOrder, idle: Callable[[], Awaitable[None]]) -> None:
        """Place an order once it cannot be taken back any more and no cycle is at work (`idle`); an error becomes a
        line that names it."""
        task = asyncio.current_task()
        assert task is not None
        self._waiting[task] = wanted
        try:
            await asyncio.sleep(self._undo_seconds)
            await idle()
        finally:
            del self._waiting[task]
        async with self._placing:
            try:
                ticket = await self._place(wanted)
            except PaperdeskError as error:  # it may have arrived all the same
                self._notice("error", f"{wanted.description} failed: {error}")
                return
        if ticket.refused:
            self._notice("error", f"{wanted.description} is not taken: {ticket.refused}")
        else:
            told = state_words(ticket.order.state, ticket.detail)
            self._notice("info", f"your order {wanted.description}: {told}")

    def take_back(self) -> None:
        """Drop the order that was given last."""
        if not self._waiting:
            self._notice("info", "no order of yours can be taken back: what was given is on its way")
            return
        task, wanted = list(self._waiting.items())[-1]
        task.cancel()
        self._notice("info", f"taken back: {wanted.description}")

    def drop_all(self) -> None:
        """Drop every order that is not on its way."""
        for task in self._waiting:
            task.cancel()
