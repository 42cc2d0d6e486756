"""The desk's side of the app: opened and served in a thread of its own, its journal followed whoever writes it.

Everything that the app's thread reads here is replaced as a whole, never changed in place.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime
from functools import partial
from typing import TYPE_CHECKING

from engine.domain.live import FeedMessage, OrderHint
from engine.domain.run import RunKind
from engine.errors import PaperdeskError
from engine.messages.bus import Bus, Subscription
from engine.messages.commands import Approve, Command, PlaceOrder, RunCycle, Shutdown, Undo, Veto
from engine.messages.events import (
    AgentAnswered,
    CommandEnded,
    CycleFailed,
    Event,
    Noticed,
    OrderFilled,
    OrderMoved,
    RunFinished,
    RunStarted,
    SessionSettled,
    StepStarted,
)
from engine.reports.documents.control_state import ControlState
from tui.desk.journal_tail import Growth, JournalTail, OwnEvents
from tui.desk.last_seen import TOUR_OFFER, Visit, greeted_since, greeting, last_visit
from tui.desk.live import LiveBoard, live_line, order_name
from tui.text.plain_text import one_line
from tui.view.desk_changes import after, idle_state, opening_state
from tui.view.desk_port import Source
from tui.view.market_reading import controls_at, market_view
from tui.view.market_view import MarketView
from tui.view.state import DeskState, Line, with_line

if TYPE_CHECKING:
    from engine.app.desk_runner import DeskRunner
    from engine.app.open_desk import OpenDesk
    from engine.market.as_of import Market
    from engine.ports import Calendar


WATCHED = 60.0
"""Seconds from the request for a cycle within which its end is seen by the person who asked for it."""


class DeskRequests:
    """Commands on their way to the desk, and the cycle that was asked for last.

    runner: carries them out; None until the desk is served, and after its end.
    answers: approvals (True) and vetoes by order id that were sent and that no reading of the journal has shown yet.
    asked: the cycle that was asked for last.
    began: when the running cycle was asked for, or began, by the monotonic clock.
    starting: True from the request for a cycle until its run begins.
    start_refusal: the reason why the cycle that was asked for last did not begin; empty for none.
    """

    def __init__(self) -> None:
        self.runner: DeskRunner | None = None
        self.answers: dict[str, bool] = {}
        self.asked = RunCycle()
        self.began: float | None = None
        self.starting = False
        self.start_refusal = ""
        self._early: deque[Command] = deque()
        self._carried_out: set[str] = set()
        """Orders whose answers are in the journal."""
        self._asked_at: float | None = None
        """When a person asked for the cycle that is at work, by the monotonic clock."""

    @property
    def busy(self) -> bool:
        """True while a run of this desk is at work."""
        runner = self.runner
        return runner is not None and runner.busy

    @property
    def cycle_seconds(self) -> float | None:
        """The age of the running cycle; None without one."""
        began = self.began
        return None if began is None else time.monotonic() - began

    @property
    def own_orders(self) -> tuple[PlaceOrder, ...]:
        """Orders of the operator's own that can still be taken back."""
        runner = self.runner
        return () if runner is None else runner.own_orders.waiting

    # From the app's thread

    def send(self, command: Command, trouble: str) -> str:
        """Pass a command on; return the reason why it cannot be, or an empty text. With a `trouble` a desk that is not
        open does not open any more."""
        runner = self.runner
        if runner is None:
            if trouble:
                return "the desk could not be opened"
            self._early.append(command)
            if (runner := self.runner) is not None:  # it was opened meanwhile
                self._send_early(runner)
            return "the desk is opening: this follows once it is open"
        if isinstance(command, RunCycle) and not runner.busy:
            self.asked = command
            self.starting, self.began, self.start_refusal = True, time.monotonic(), ""
            self._asked_at = self.began
        if isinstance(command, Approve | Veto):
            self._carried_out.discard(command.order_id)
            self.answers[command.order_id] = isinstance(command, Approve)
        if isinstance(command, Undo):
            self.answers.pop(command.order_id, None)
        runner.send(command)
        return ""

    def shut_down(self) -> None:
        """Ask the desk to end; returns at once."""
        if self.runner is not None:
            self.runner.send(Shutdown())

    # From the desk's thread

    def serve(self, runner: DeskRunner) -> None:
        """Have commands carried out from now on, those first that were asked for before the desk was open."""
        self.runner = runner
        self._send_early(runner)

    def _send_early(self, runner: DeskRunner) -> None:
        # Each once, whichever thread comes first.
        with suppress(IndexError):
            while True:
                runner.send(self._early.popleft())

    def after(self, event: Event) -> None:
        """Note an event, of this process or another."""
        match event:
            case RunStarted():
                self.began = self.began if self.starting else time.monotonic()
                self.starting = False
            case RunFinished() | CycleFailed():
                self.starting, self.began = False, None
            case Noticed(level="error"):
                self.answers.clear()  # it may not have been written: what the journal has holds
            case CommandEnded(order=order) if order:
                self._carried_out.add(order)
            case Noticed(level="info", run=run) if run and self.starting:
                self.start_refusal, self.starting, self.began = event.text, False, None

    def answers_in_journal(self) -> frozenset[str]:
        """Orders whose answers a reading of the journal that begins now shows."""
        return frozenset(self._carried_out)

    def were_shown(self, orders: frozenset[str]) -> None:
        """Forget answers that the journal has shown: others may have been given since, by another process too."""
        for order in orders & self._carried_out:  # without those that were answered again meanwhile
            self._carried_out.discard(order)
            self.answers.pop(order, None)

    def watched_end(self) -> bool:
        """True at the end of a run of this process where the person who asked for it can be taken to see it."""
        asked_at, self._asked_at = self._asked_at, None
        return asked_at is not None and time.monotonic() - asked_at < WATCHED


POLL_SECONDS = 1.0
"""Seconds between two looks at the journal for what other processes write."""

TIME_SECONDS = 1.0
"""Seconds between two looks at the desk's clock, and at whether another session has closed by it."""

TOUCHING = (Noticed, OrderFilled, OrderMoved, RunStarted, RunFinished)
"""Events of this process after which the journal is looked at, at once."""

QUIET_SECONDS = 300.0
"""Seconds without an event of another process's run after which it is not shown as running any more: it may have been
killed, and a model's answer takes less."""


DeskOpener = Callable[[], "OpenDesk"]


class DeskFollower:
    """The opened desk and what it has shown so far.

    services: None until it is open.
    requests: the commands that it takes.
    moment: desk and market, which are of one moment wherever they are read together: the latest run, the books at the
        last close and the log, and quotes and charts at that close, None until they are read.
    controls: halt, pause and open orders, as the journal has them.
    prices: the market's data behind them.
    board: the live feed; None where there is none.
    working: True from the attempt to open it to its end.
    trouble: an error to show; empty for none.
    changed: says what has changed in the configuration since the desk was opened; empty for nothing.
    dismissed: the errors that were read and are not shown any more.
    unread: True from the end of a run until the desk is read anew.
    version: grows whenever the journal may have something new.
    visit: up to where a person has seen the desk; None until it is open.
    """

    def __init__(self) -> None:
        self.services: OpenDesk | None = None
        self.requests = DeskRequests()
        self.moment: tuple[DeskState, MarketView | None] = DeskState(), None
        self.controls = ControlState()
        self.prices: Market | None = None
        self.board: LiveBoard | None = None
        self.working = False
        self.trouble = ""
        self.changed = ""
        self.dismissed = frozenset[str]()
        self.unread = False
        self.version = 0
        self.visit: Visit | None = None
        self._stopped = False
        self._touched: asyncio.Event | None = None
        self._tail: JournalTail | None = None
        self._heard = 0.0
        """The time of the last event, by the monotonic clock."""
        self._watched = False
        """True from the end of a cycle that a person watched until the journal is read up to it."""
        self._closed = ClosedSessions()

    @property
    def desk(self) -> DeskState:
        """The desk of the moment."""
        return self.moment[0]

    @desk.setter
    def desk(self, desk: DeskState) -> None:
        self.moment = desk, self.moment[1]

    # From the app's thread

    def send(self, command: Command) -> str:
        """Pass a command on; return the reason why it cannot be, or an empty text."""
        return self.requests.send(command, self.trouble)

    def visited(self) -> None:
        """Note that a person is there and sees what is shown."""
        if self._tail is not None and self.services is not None:
            self.visit = Visit(self._tail.last_event, self.services.clock.now())

    def stop(self) -> None:
        """Ask the desk to end; returns at once."""
        self._stopped = True
        self.requests.shut_down()

    # In the desk's thread

    def run(self, open_desk: DeskOpener, first: Callable[[], Source | None] = lambda: None) -> None:
        """Open the desk and serve it until it is stopped; what goes wrong becomes `trouble`. The journal of `first` is
        shown before that: to open a desk takes longer than to read it."""
        trouble = ""
        try:
            if (source := first()) is not None:
                self._show_first(source)
            # Outside the loop: opening reads configuration and data, and may use a loop of its own.
            asyncio.run(self._serve(open_desk()))
        except PaperdeskError as error:
            trouble = one_line(str(error))
        except Exception as error:  # whatever it is, it belongs on the error bar and not over the screen
            trouble = one_line(f"a bug: {type(error).__name__}: {error}")
        finally:
            self.requests.runner, self.working = None, False
        self.trouble = trouble or self.trouble  # the last, for who sees it may open the desk again

    def _show_first(self, source: Source) -> None:
        from engine.reports.documents.opening import opening_of

        with suppress(PaperdeskError):  # what is wrong with a journal is said where the desk is opened
            self.desk = opening_state(source.read(opening_of))

    async def _serve(self, services: OpenDesk) -> None:
        from engine.app.desk_runner import DeskRunner

        self._tail, self._reading = JournalTail(services.journal), asyncio.Lock()
        await self._read_desk(services, another=bool(self.desk.run))
        self._touched = asyncio.Event()
        await self._read_controls(services)
        await self._greet(services, last_visit(services.desk))
        bus = OwnEvents()
        # The subscription first: no event of the first cycle must be missed.
        tasks = [asyncio.create_task(self._fold(bus.subscribe(), services))]
        runner = DeskRunner(bus, services, unsent=self.controls.has_unsent_answers)
        tasks.append(asyncio.create_task(self._poll_journal(services, self._touched, bus)))
        tasks.append(asyncio.create_task(self._keep_time(services)))
        read = partial(self._read_desk, services)
        tasks.append(asyncio.create_task(bring_newest_closes(services, lambda: self.requests.busy, read, self._warn)))
        self.requests.serve(runner)
        self.services = services  # once it can be asked for something
        self.visited()
        if self._stopped:
            return
        tasks.append(asyncio.create_task(self._follow(services, runner, bus)))
        try:
            await runner.serve()
        finally:
            for task in tasks:
                task.cancel()

    async def _follow(self, services: OpenDesk, runner: DeskRunner, bus: Bus) -> None:
        """Follow the feed and, where that is configured, have cycles run when they are due."""
        if services.feed is not None:
            self.board = LiveBoard()
        try:
            if services.watches:
                await services.watch(bus.publish, self._on_message, runner.take_turn)
            elif services.feed is not None:
                await services.feed.follow(services.symbols, self._on_message)
        except PaperdeskError as error:
            self.board = None
            what = "scheduled cycles have stopped" if services.watches else "no live prices and news"
            bus.publish(Noticed("", services.clock.now(), "error", f"{what}: {error}"))

    def _on_message(self, message: FeedMessage) -> None:
        if self.board is not None:
            self.board.on_message(message)
        runner = self.requests.runner
        bookings = None if runner is None else runner.bookings
        if bookings is not None:
            bookings.on_message(message)
        assert self.services is not None  # its feed is followed
        named = partial(order_name, Source(self.services.desk, self.services.journal))
        line = live_line(message, booked=bookings is not None, name=named)
        if line is not None:
            self.desk = with_line(self.desk, line)
        if isinstance(message, OrderHint) and self._touched is not None:
            self._touched.set()

    async def _read_desk(self, services: OpenDesk, *, another: bool = False) -> None:
        """Read market and journal anew; what the running cycle has answered meanwhile stays, unless it is another
        journal. Raises what the data of the market raises, once the journal is shown."""
        from engine.reports.documents.opening import Opening, opening_of

        market = fault = None
        try:
            async with self._reading:  # in turn: no later market is overwritten by an earlier one
                market = await services.market()  # before the journal: nothing is waited for between its books and them
        except PaperdeskError as error:
            fault = error
        opening, stored = Opening(), self.desk
        followed = bool(self.desk.run) and not another
        try:
            opening = Source(services.desk, services.journal).read(partial(opening_of, events=not followed))
            stored = opening_state(opening)
        except PaperdeskError as error:  # the market can be shown all the same
            self.trouble = one_line(str(error))
        if followed:
            decisions = {**stored.decisions, **self.desk.decisions}
            desk = replace(self.desk, books=stored.books or self.desk.books, decisions=decisions)
        else:
            if not stored.run:
                stored = replace(stored, steps=tuple(services.steps), lines=self.desk.lines)
            desk = stored if another else _with_errors_of(self.desk, stored)
            if self._tail is not None:
                self._tail.is_read_to(opening.last_event)
        if market is None:
            self.desk = desk
        else:
            now, made = services.clock.now(), opening.decisions
            self._closed.were_read(market.calendars.values(), now)
            self.prices = market
            self.moment = desk, market_view(market, services.symbols, now, opening.fills, made)
        self.version += 1
        if fault is not None:
            raise fault

    async def _poll_journal(self, services: OpenDesk, touched: asyncio.Event, bus: OwnEvents) -> None:
        """Follow the journal, whoever writes it: at once where this desk did something, else after POLL_SECONDS."""
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(touched.wait(), POLL_SECONDS)
            touched.clear()
            await self._read_controls(services)
            with suppress(PaperdeskError):  # as with the controls: the next look tries again
                await self._read_on(services, bus)

    async def _keep_time(self, services: OpenDesk) -> None:
        """Follow the desk's clock, and read the desk anew once another session has closed by it."""
        while True:
            await asyncio.sleep(TIME_SECONDS)
            self.changed = services.changed()
            await services.sync()
            if services.is_demo and self.requests.busy:
                continue  # a run takes the demo to its next session: prices come with the books that it settles
            if self._closed.have_changed(services.clock.now()):
                await self._try_to_read(services)

    async def _try_to_read(self, services: OpenDesk) -> None:
        try:
            await self._read_desk(services)
        except PaperdeskError as error:
            self.trouble = one_line(str(error))

    def _warn(self, text: str) -> None:
        assert self.services is not None
        self.desk = with_line(self.desk, Line(self.services.clock.now(), "warning", text))

    async def _read_on(self, services: OpenDesk, bus: OwnEvents) -> None:
        """Show what other processes have written since the last look."""
        assert self._tail is not None
        watched, self._watched = self._watched, False
        growth: Growth = await asyncio.to_thread(self._tail.growth, bus.expected(), lambda: self.requests.busy)
        if watched:
            self.visited()
        foreign = bus.foreign(growth)
        for event in foreign:
            if isinstance(event, StepStarted | AgentAnswered) and event.run == self.desk.run:
                self.desk = replace(self.desk, running=True)  # the run was at work already when the app opened
            await self._take(event, services)
        for given in bus.given_elsewhere(growth.commands):
            level = "warning" if given.stops else "info"
            self.desk = with_line(self.desk, Line(services.clock.now(), level, given.text))
        at_work = self.desk.running or self.requests.busy
        if growth.another or (growth.booked and not at_work):
            await self._read_desk(services, another=growth.another)
        if any(isinstance(event, RunFinished) for event in foreign):
            await self._greet(services, self.visit)
        self._give_up(services)

    async def _greet(self, services: OpenDesk, visit: Visit | None) -> None:
        """Say in the log what has changed since a visit; before the first to a demo desk, that there is a tour."""
        if visit is None:
            if services.is_demo:
                self.desk = with_line(self.desk, Line(services.clock.now(), "info", TOUR_OFFER))
            return
        with suppress(PaperdeskError):  # what is wrong with a journal is reported where it is read whole
            text = await asyncio.to_thread(greeting, Source(services.desk, services.journal), visit)
            if text:
                # One line since a look, however many runs have ended since: it counts them all.
                others = tuple(line for line in self.desk.lines if not line.text.startswith(greeted_since(visit)))
                line = Line(services.clock.now(), "info", text)
                self.desk = with_line(replace(self.desk, lines=others), line)

    def _give_up(self, services: OpenDesk) -> None:
        """Stop showing another process's run as running, where nothing was heard of it for long."""
        if self.desk.running and not self.requests.busy and time.monotonic() - self._heard > QUIET_SECONDS:
            key = "C" if self.desk.run.startswith(RunKind.SYMBOL) else "r"
            text = f"no sign of the running cycle for five minutes: {key} resumes it if it was killed"
            line = Line(services.clock.now(), "warning", text)
            self.desk, self.requests.began = idle_state(with_line(self.desk, line)), None

    async def _read_controls(self, services: OpenDesk) -> None:
        controls = partial(
            controls_at,
            mode=services.mode,
            calendar=None if self.moment[1] is None else self.moment[1].calendar,
            symbols=services.symbols,
            now=services.clock.now(),
            real_time=services.real_time,
        )
        answered = self.requests.answers_in_journal()
        with suppress(PaperdeskError):  # what is wrong with a journal is reported where it is read whole
            self.controls = await asyncio.to_thread(Source(services.desk, services.journal).read, controls)
            self.requests.were_shown(answered)

    async def _fold(self, subscription: Subscription, services: OpenDesk) -> None:
        async for event in subscription:
            if self._touched is not None and isinstance(event, TOUCHING):
                self._touched.set()
            await self._take(event, services)
            if isinstance(event, RunFinished):
                self._watched |= self.requests.watched_end()

    async def _take(self, event: Event, services: OpenDesk) -> None:
        """Show an event, of this process or another; after a run read the desk anew."""
        self._heard = time.monotonic()
        # The time of a demo desk goes on with its runs: no books beside the prices of the session before.
        if isinstance(event, SessionSettled) and self._closed.are_before(event.books.session):
            await self._try_to_read(services)
        first = self.desk.books is None
        self.unread = self.unread or isinstance(event, RunFinished)
        self._show(event)
        if isinstance(event, RunStarted):
            if first and self._closed.are_before(event.last):  # its books come at its end
                await self._try_to_read(services)
        elif isinstance(event, RunFinished):
            try:
                await self._try_to_read(services)
            finally:
                self.unread = False

    def _show(self, event: Event) -> None:
        before, self.desk = self.desk, after(self.desk, event)
        self.requests.after(event)
        if self.desk.error != before.error:
            self.dismissed -= {self.desk.error}
        if isinstance(event, Noticed) and event.level == "error":
            self.dismissed -= {one_line(event.text)}  # the same error again is news again


def _with_errors_of(shown: DeskState, desk: DeskState) -> DeskState:
    """A desk with the errors of the one that was shown before it."""
    return replace(desk, error=shown.error, cycle_failed=shown.cycle_failed, refusal=shown.refusal)


class ClosedSessions:
    """The last completed session of each calendar that a symbol of the desk trades by."""

    def __init__(self) -> None:
        self._calendars: tuple[Calendar, ...] = ()
        self._sessions: tuple[date, ...] = ()

    def were_read(self, calendars: Iterable[Calendar], now: datetime) -> None:
        """Note those that are completed at `now` (UTC)."""
        self._calendars = tuple(calendars)
        self._sessions = self._completed(now)

    def have_changed(self, now: datetime) -> bool:
        """True, once, where others are completed at `now` (UTC): once, also where their data cannot be read."""
        before, self._sessions = self._sessions, self._completed(now)
        return before != self._sessions

    def are_before(self, session: date | None) -> bool:
        """True for a session that is later than all of them."""
        return session is not None and session > max(self._sessions, default=session)

    def _completed(self, now: datetime) -> tuple[date, ...]:
        return tuple(calendar.last_closed(now) for calendar in self._calendars)


LOOK_SECONDS = 1.0
"""Seconds between two looks whether a close is missing."""
AGAIN_SECONDS = 60.0
"""Seconds until the second attempt to fetch one, for its bar may take a while; after each that brought nothing twice as
long, up to LONGEST_SECONDS, for a symbol that is halted has none."""
LONGEST_SECONDS = 600.0


async def bring_newest_closes(
    services: OpenDesk, busy: Callable[[], bool], read: Callable[[], Awaitable[None]], warn: Callable[[str], None]
) -> None:
    """Fetch missing closes until it is cancelled, and have the desk read anew with them; not while it is `busy`, for a
    run fetches what it needs by itself. A failure is warned of once, and tried again."""
    warned, again = "", AGAIN_SECONDS
    while True:
        trouble, added = "", None
        try:
            added = None if busy() else await services.bring_closes()
            if added:
                await read()
        except (PaperdeskError, OSError) as error:
            trouble = f"latest closes unavailable: {one_line(str(error))}"
        if trouble and trouble != warned:
            warn(trouble)
        warned = trouble
        if added is None and not trouble:
            again = AGAIN_SECONDS
            await asyncio.sleep(LOOK_SECONDS)
        else:
            await asyncio.sleep(again)
            again = AGAIN_SECONDS if added else min(LONGEST_SECONDS, 2 * again)
