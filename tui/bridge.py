"""Between the screen and the desk: the engine has a thread of its own; commands go in, one snapshot comes out.

The screen never waits for the engine: it takes `snapshot()` a few times a second, immutable values that the engine's
thread has put there. What goes wrong on the other side is `trouble`, a line to show, never an exception here.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from engine.domain.live import FeedMessage, OrderHint
from engine.domain.run import RunSpec, TradingMode
from engine.errors import PaperdeskError
from engine.messages.bus import Bus, Subscription
from engine.messages.commands import Approve, Command, RunCycle, Shutdown, StartBacktest, StopBacktest, Veto
from engine.messages.events import AgentAnswered, Event, Noticed, OrderMoved, RunFinished, RunStarted, StepStarted
from engine.reports.documents.control_state import ControlState
from tui.backtest_run import RUNNING, BacktestProcess, BacktestState, Target
from tui.journal_tail import Growth, JournalTail
from tui.live import LiveBoard, LiveView, live_line
from tui.market_view import MarketView, at_prices, market_view
from tui.plain_text import one_line
from tui.state import Books, DeskState, Line, after, opening_state, with_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date
    from pathlib import Path

    from engine.app.desk_runner import DeskRunner, OpenDesk
    from engine.domain.decision import Decision
    from engine.market.point_in_time import MarketAsOf
    from engine.ports import Calendar
    from engine.reports.documents.decisions import FollowedDecision
    from engine.reports.documents.records import Records

T = TypeVar("T")

DeskOpener = Callable[[], "OpenDesk"]

SWITCH_SECONDS = 0.001
"""Seconds that Python lets one thread keep the interpreter while another wants it: a key passes about seven times
through the loop, and the usual 5 ms would be felt while a cycle runs."""

POLL_SECONDS = 1.0
"""Seconds between two looks at the journal for what other processes write."""

TIME_SECONDS = 1.0
"""Seconds between two looks at the desk's clock, and at whether another session has closed by it."""

QUIET_SECONDS = 300.0
"""Seconds without an event of another process's run after which it is not shown as running any more: it may have been
killed, and a model's answer takes less."""


@dataclass(frozen=True, slots=True)
class Source:
    """A journal to read decisions from: the desk's, or with `run` a backtest's. `version` grows whenever there may be
    something new."""

    name: str
    journal: Path
    run: str | None = None
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything that screens show, at one moment.

    desk: the latest run, the books and the log.
    controls: the halt and the open orders.
    market: None until the desk is open.
    live: the feed; None where there is none.
    services: None until the desk is open.
    busy: True while a cycle is asked for or under way, paused or not.
    starting: True from the request for a cycle until its run begins.
    paused: True while the next question to a model waits.
    trouble: an error to show; empty for none.
    cycle_seconds: since the running cycle was asked for, or began; None without one.
    backtests: those of this session of the app, oldest first.
    sources: the desk's journal, once it is open, and those of finished backtests.
    """

    desk: DeskState = field(default_factory=DeskState)
    controls: ControlState = field(default_factory=ControlState)
    market: MarketView | None = None
    live: LiveView | None = None
    services: OpenDesk | None = None
    busy: bool = False
    starting: bool = False
    paused: bool = False
    trouble: str = ""
    cycle_seconds: float | None = None
    backtests: tuple[BacktestState, ...] = ()
    sources: tuple[Source, ...] = ()


class OwnEvents(Bus):
    """The bus of this process's runs, which remembers what it published until that is read from the journal too."""

    def __init__(self) -> None:
        super().__init__()
        self._unread: Counter[Event] = Counter()

    def publish(self, event: Event) -> None:
        """Pass an event to all subscriptions; never waits."""
        if event.durable and event.run:
            self._unread[event] += 1
        super().publish(event)

    def foreign(self, events: Iterable[Event]) -> list[Event]:
        """The events of a journal that other processes have written. A run writes an event and publishes it in one
        turn of the loop: what is its own is known here by the time that it is read."""
        found = []
        for event in events:
            if self._unread[event] > 0:
                self._unread[event] -= 1
            else:
                found.append(event)
        self._unread = +self._unread
        return found


class Bridge:
    """Opens the desk in a thread, passes commands on, runs backtests in processes, and has a snapshot of all of it."""

    def __init__(self, open_desk: DeskOpener, backtest: Target) -> None:
        self._open_desk = open_desk
        self._backtest = backtest
        self._thread: Thread | None = None
        self._runner: DeskRunner | None = None
        self._services: OpenDesk | None = None
        self._desk = DeskState()
        self._controls = ControlState()
        self._answers: dict[str, bool] = {}
        """Approvals (True) and vetoes by order id that were sent and may not be in the journal yet."""
        self._touched: asyncio.Event | None = None
        self._tail: JournalTail | None = None
        self._heard = 0.0
        """The time of the last event, by the monotonic clock."""
        self._market: MarketView | None = None
        self._priced: tuple[tuple[object, ...], Books | None, MarketView] | None = None
        """Books and market at live prices, after what they were made from."""
        self._calendars: tuple[Calendar, ...] = ()
        self._closed: tuple[date, ...] = ()
        """The last completed sessions that the desk was read for."""
        self._board: LiveBoard | None = None
        self._trouble = ""
        self._dismissed = ""
        self._began: float | None = None
        self._starting = False
        self._version = 0
        self._early: list[Command] = []
        self._stopped = False
        self._backtests: dict[str, BacktestProcess] = {}

    def start(self) -> None:
        """Open the desk in a thread; after a failure, try again."""
        if self._thread is not None and self._thread.is_alive():
            return
        sys.setswitchinterval(SWITCH_SECONDS)
        self._trouble = self._dismissed = ""
        self._thread = Thread(target=self._run, name="desk", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ask everything to end; returns at once, and `wait` waits for the end."""
        self._stopped = True
        if self._runner is not None:
            self._runner.send(Shutdown())
        for process in self._running():
            process.stop()

    def wait(self, seconds: float) -> bool:
        """Wait for the desk to end and end what is left of the backtests; false where it took longer."""
        until = time.monotonic() + seconds
        for process in self._running():
            process.kill()
        if self._thread is not None:
            self._thread.join(max(0.0, until - time.monotonic()))
        return self._thread is None or not self._thread.is_alive()

    def _running(self) -> list[BacktestProcess]:
        return [process for process in self._backtests.values() if process.running]

    def send(self, command: Command) -> str:
        """Pass a command on; return the reason why it cannot be, or an empty text."""
        match command:
            case StartBacktest(spec):
                return self._start_backtest(spec)
            case StopBacktest(run):
                process = self._backtests.get(run)
                if process is None or not process.running:
                    return "no backtest is running"
                process.stop()
            case _ if self._runner is not None:
                if isinstance(command, RunCycle) and not self._runner.busy:
                    self._starting, self._began = True, time.monotonic()
                if isinstance(command, Approve | Veto):
                    self._answers[command.order_id] = isinstance(command, Approve)
                self._runner.send(command)
            case _ if self._trouble:
                return "the desk could not be opened"
            case _:
                self._early.append(command)
                return "the desk is opening: this is done as soon as it is open"
        return ""

    def _start_backtest(self, spec: RunSpec) -> str:
        if self._running():
            return "a backtest is running: stop it with x first"
        if self._services is None:
            return "the desk is still opening"
        from engine.app.run_spec import new_run_id

        name = f"{spec.preset or spec.strategy} {len(self._backtests) + 1}"
        spec = replace(spec, run=new_run_id("backtest", self._services.clock.now()))
        self._backtests[spec.run] = BacktestProcess(name, spec, self._backtest)
        self._backtests[spec.run].start()
        return ""

    def go_on(self, run: str) -> None:
        """Answer the question of a backtest with yes."""
        self._backtests[run].go_on()

    def dismiss(self) -> None:
        """Hide the trouble, which has been read."""
        self._dismissed = self._trouble or self._desk.error

    def forget_trouble(self) -> None:
        """Drop the trouble: what failed is being tried again."""
        self._trouble = ""
        self.dismiss()

    def snapshot(self) -> Snapshot:
        """The state of everything now; cheap."""
        runner, services, board, desk = self._runner, self._services, self._board, self._desk
        trouble = self._trouble or desk.error
        live, market = None, self._market
        if board is not None and services is not None:
            live = board.view(tuple(services.symbols), services.clock.now())
            desk, market = self._at_live_prices(desk, live, services)
        return Snapshot(
            desk=desk,
            # At once, whatever the desk's thread is busy with: nobody is asked about an order twice.
            controls=self._controls.after(self._answers),
            market=market,
            live=live,
            services=services,
            busy=runner is not None and runner.busy,
            starting=self._starting and runner is not None and runner.busy,
            paused=runner is not None and runner.paused,
            trouble="" if trouble == self._dismissed else trouble,
            cycle_seconds=None if self._began is None else time.monotonic() - self._began,
            backtests=tuple(process.state for process in self._backtests.values()),
            sources=() if services is None else self._sources(services),
        )

    def _at_live_prices(
        self, desk: DeskState, live: LiveView, services: OpenDesk
    ) -> tuple[DeskState, MarketView | None]:
        """The books and the market at the prices of the feed: the only place from which screens have them."""
        seen = (self._market, desk.books, live.prices)
        if self._market is None or not live.prices:
            return desk, self._market
        if self._priced is None or self._priced[0] != seen:
            market = at_prices(self._market, live.prices, services.clock.now())
            self._priced = (
                seen,
                None if desk.books is None else desk.books.at_quotes(market.quotes, market.splits),
                market,
            )
        return replace(desk, books=self._priced[1]), self._priced[2]

    def _sources(self, services: OpenDesk) -> tuple[Source, ...]:
        from engine import places

        runs = (process.state for process in self._backtests.values())
        return (
            Source(f"desk {services.desk}", services.journal, version=self._version),
            *(
                Source(one.name, places.run_journal(one.spec.run), one.spec.run)
                for one in runs
                if one.curve and one.status != RUNNING
            ),
        )

    async def decisions(self, source: Source) -> tuple[FollowedDecision, ...]:
        """The decisions of a journal, read beside the screen. Raises what JournalReader raises."""
        from engine.reports.documents.decisions import followed_decisions

        return await asyncio.to_thread(_read, source, lambda records: followed_decisions(records, self._closes))

    async def why(self, source: Source, wanted: Decision | str) -> Mapping[str, Any]:
        """The trail of a decision, or of the latest for a symbol, read beside the screen. Raises MissingData where
        there is none."""
        from engine.reports.documents.trail import latest, why_document

        def document(records: Records) -> Mapping[str, Any]:
            made = latest(records, wanted) if isinstance(wanted, str) else [wanted]
            return why_document(records, made, market=self._closes(records, (made[0].key.symbol,)))

        return await asyncio.to_thread(_read, source, document)

    def _closes(self, records: Records, symbols: Sequence[str]) -> MarketAsOf | None:
        """The prices behind some records; None until the desk is open."""
        return None if self._services is None else self._services.closes(records, symbols)

    # In the desk's thread

    def _run(self) -> None:
        try:
            # Outside the loop: opening reads configuration and data, and may use a loop of its own.
            asyncio.run(self._serve(self._open_desk()))
        except PaperdeskError as error:
            self._trouble = one_line(str(error))
        except Exception as error:  # whatever it is, it belongs on the error bar and not over the screen
            self._trouble = one_line(f"a bug: {type(error).__name__}: {error}")
        finally:
            self._runner = None

    async def _serve(self, services: OpenDesk) -> None:
        from engine.app.desk_runner import DeskRunner

        self._tail = JournalTail(services.journal)
        await self._read_desk(services)
        self._touched = asyncio.Event()
        await self._read_controls(services)
        self._services = services
        bus = OwnEvents()
        # The subscription first: no event of the first cycle must be missed.
        tasks = [
            asyncio.create_task(self._fold(bus.subscribe(), services)),
        ]
        runner = DeskRunner(bus, services.run_cycle, services.clock, services.journal, services.submit)
        self._runner = runner
        tasks.append(asyncio.create_task(self._poll_journal(services, self._touched, bus)))
        tasks.append(asyncio.create_task(self._keep_time(services)))
        while self._early:
            runner.send(self._early.pop(0))
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
            self._board = LiveBoard()
        try:
            if services.watches:
                await services.watch(bus.publish, self._on_message, runner.take_turn)
            elif services.feed is not None:
                await services.feed.follow(services.symbols, self._on_message)
        except PaperdeskError as error:
            self._board = None
            what = "scheduled cycles do not run any more" if services.watches else "no live prices and news"
            bus.publish(Noticed("", services.clock.now(), "error", f"{what}: {error}"))

    def _on_message(self, message: FeedMessage) -> None:
        if self._board is not None:
            self._board.on_message(message)
        line = live_line(message)
        if line is not None:
            self._desk = with_line(self._desk, line)
        if isinstance(message, OrderHint) and self._touched is not None:
            self._touched.set()

    async def _read_desk(self, services: OpenDesk) -> None:
        """Read journal and market anew; what the running cycle has answered meanwhile stays."""
        from engine.reports.documents.opening import Opening, opening_of

        opening, stored = Opening(), self._desk
        try:
            opening = _read(Source(services.desk, services.journal), opening_of)
            stored = opening_state(opening)
        except PaperdeskError as error:  # the market can be shown all the same
            self._trouble = one_line(str(error))
        if self._desk.run:
            signals = {**stored.signals, **self._desk.signals}
            self._desk = replace(self._desk, books=stored.books or self._desk.books, signals=signals)
        else:
            self._desk = stored if stored.run else replace(stored, steps=tuple(services.steps), lines=self._desk.lines)
            if self._tail is not None:
                self._tail.last_event = opening.last_event
        market = await services.market()
        self._calendars = tuple(market.calendars.values())
        self._closed = self._last_closes(services)
        self._market = market_view(market, services.symbols, services.clock.now(), opening.fills)
        self._version += 1

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
            await services.sync()
            if self._closed != (closed := self._last_closes(services)):
                self._closed = closed  # once, also where the data of that session cannot be read
                try:
                    await self._read_desk(services)
                except PaperdeskError as error:
                    self._trouble = one_line(str(error))

    def _last_closes(self, services: OpenDesk) -> tuple[date, ...]:
        """The last completed session of every symbol's calendar."""
        now = services.clock.now()
        return tuple(calendar.last_closed(now) for calendar in self._calendars)

    async def _read_on(self, services: OpenDesk, bus: OwnEvents) -> None:
        """Show what other processes have written since the last look."""
        assert self._tail is not None
        growth: Growth = await asyncio.to_thread(self._tail.growth)
        foreign = bus.foreign(growth.events)
        for event in foreign:
            if isinstance(event, StepStarted | AgentAnswered) and event.run == self._desk.run:
                self._desk = replace(self._desk, running=True)  # the run was at work already when the app opened
            await self._take(event, services)
        at_work = self._desk.running or (self._runner is not None and self._runner.busy)
        if growth.another:
            self._desk = DeskState()
        if growth.another or (growth.changed and not growth.events and not at_work):
            await self._read_desk(services)
        self._give_up(services)

    def _give_up(self, services: OpenDesk) -> None:
        """Stop showing another process's run as running, where nothing was heard of it for long."""
        busy = self._runner is not None and self._runner.busy
        if self._desk.running and not busy and time.monotonic() - self._heard > QUIET_SECONDS:
            text = "nothing was heard of the running cycle for five minutes: r goes on with it where it was killed"
            line = Line(services.clock.now(), "warning", text)
            self._desk, self._began = replace(with_line(self._desk, line), running=False), None

    async def _read_controls(self, services: OpenDesk) -> None:
        def read() -> ControlState:
            from engine.execution.controls import stays_until
            from engine.market.trading_hours import AroundTheClock
            from engine.reports.documents.controls import control_state

            calendar = (self._market and self._market.calendar) or AroundTheClock()
            return control_state(
                services.journal,
                asks=services.mode is TradingMode.ASK,
                stays_until=partial(stays_until, calendar, services.symbols),
                now=services.clock.now(),
            )

        with suppress(PaperdeskError):  # what is wrong with a journal is reported where it is read whole
            self._controls = await asyncio.to_thread(read)

    async def _fold(self, subscription: Subscription, services: OpenDesk) -> None:
        async for event in subscription:
            if self._touched is not None and isinstance(event, Noticed | OrderMoved | RunStarted | RunFinished):
                self._touched.set()
            await self._take(event, services)

    async def _take(self, event: Event, services: OpenDesk) -> None:
        """Show an event, of this process or another; after a run read the desk anew."""
        self._heard = time.monotonic()
        if self._desk.error != (desk := after(self._desk, event)).error or _is_error(event):
            self._dismissed = ""  # the same error again is news again
        self._desk = desk
        if _is_error(event):
            self._answers.clear()  # it may not have been written: what the journal has holds
        if isinstance(event, RunStarted):
            self._began = self._began if self._starting else time.monotonic()
            self._starting = False
        elif isinstance(event, RunFinished):
            self._began = None
            try:
                await self._read_desk(services)
            except PaperdeskError as error:
                self._trouble = one_line(str(error))


def _is_error(event: Event) -> bool:
    return isinstance(event, Noticed) and event.level == "error"


def _read(source: Source, document: Callable[[Records], T]) -> T:
    """A document of a journal, which is closed again."""
    from engine.reports.documents.records import records_in

    with records_in(source.journal, source.name, source.run) as records:
        return document(records)


class DeskApp(Protocol):
    """The app, as its screens know it."""

    bridge: Bridge
    plain: bool

    def switch_mode(self, mode: str) -> object:
        """Show another of the screens."""
