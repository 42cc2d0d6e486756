"""Between the screen and the desk: the engine lives in a thread of its own; commands go in, one snapshot comes out.

The screen never waits for the engine: it looks at `snapshot()` a few times a second, which hands over immutable values
that the engine's thread has put there. What goes wrong on the other side is `trouble`, a line to show, never an
exception here.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from engine.domain.live import FeedMessage, OrderHint
from engine.domain.run import RunSpec, TradingMode
from engine.errors import PaperdeskError
from engine.messages.bus import Bus, Subscription
from engine.messages.commands import Approve, Command, Shutdown, StartBacktest, StopBacktest, Veto
from engine.messages.events import Event, Noticed, OrderMoved, RunFinished, RunStarted
from engine.reports.documents.control_state import ControlState
from tui.backtest_process import BacktestProcess, Target
from tui.backtest_state import RUNNING, BacktestState
from tui.greeting import greeting
from tui.live import LiveBoard, LiveView
from tui.live_words import live_line
from tui.market_view import MarketView, market_view
from tui.plain_text import one_line
from tui.state import DeskState, after, with_line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from engine.app.desk_runner import DeskRunner, DeskServices
    from engine.domain.decision import Decision
    from engine.reports.documents.decisions import FollowedDecision
    from engine.reports.documents.records import Records

T = TypeVar("T")

OpenDesk = Callable[[], "DeskServices"]

SWITCH_SECONDS = 0.001
"""How long Python lets one thread keep the interpreter while another wants it: a key passes about seven times through
the loop, and the usual 5 ms would be felt while a cycle runs."""

LOOK_AFTER = 1.0
"""Seconds after which the journal is looked at for what another process may have said."""


@dataclass(frozen=True, slots=True)
class Source:
    """A journal to read decisions from: the desk's, or with `run` a backtest's of this sitting. `version` grows
    whenever there may be something new."""

    name: str
    journal: Path
    run: str | None = None
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything that screens show, at one moment. `services` is None until the desk is open; `cycle_seconds` counts
    since the running cycle began."""

    desk: DeskState = field(default_factory=DeskState)
    controls: ControlState = field(default_factory=ControlState)
    market: MarketView | None = None
    live: LiveView | None = None
    """What the feed tells; None where there is none."""
    services: DeskServices | None = None
    busy: bool = False
    paused: bool = False
    trouble: str = ""
    cycle_seconds: float | None = None
    backtests: tuple[BacktestState, ...] = ()
    sources: tuple[Source, ...] = ()
    """The desk's journal, once it is open, and those of finished backtests."""


class Bridge:
    """Opens the desk in a thread, passes commands on, runs backtests in processes, and knows how all of it stands."""

    def __init__(self, open_desk: OpenDesk, backtest: Target) -> None:
        self._open_desk = open_desk
        self._backtest = backtest
        self._thread: Thread | None = None
        self._assistant: DeskRunner | None = None
        self._services: DeskServices | None = None
        self._desk = DeskState()
        self._controls = ControlState()
        self._answers: dict[str, bool] = {}
        """Approvals (True) and vetoes by order id that were sent and may not be in the journal yet."""
        self._touched: asyncio.Event | None = None
        self._market: MarketView | None = None
        self._board: LiveBoard | None = None
        self._trouble = ""
        self._dismissed = ""
        self._began: float | None = None
        self._version = 0
        self._early: list[Command] = []
        self._stopped = False
        self._backtests: dict[str, BacktestProcess] = {}

    def start(self) -> None:
        """Opens the desk in a thread; after a failure, tries again."""
        if self._thread is not None and self._thread.is_alive():
            return
        sys.setswitchinterval(SWITCH_SECONDS)
        self._trouble = self._dismissed = ""
        self._thread = Thread(target=self._live, name="desk", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Asks everything to end; returns at once. `wait` says when it has."""
        self._stopped = True
        if self._assistant is not None:
            self._assistant.send(Shutdown())
        for process in self._backtests.values():
            if process.running:
                process.stop()

    def wait(self, seconds: float) -> bool:
        """Waits for the desk to end and ends what is left of the backtests; whether all of it has ended in time."""
        until = time.monotonic() + seconds
        for process in self._backtests.values():
            if process.running:
                process.kill()
        if self._thread is not None:
            self._thread.join(max(0.0, until - time.monotonic()))
        return self._thread is None or not self._thread.is_alive()

    def send(self, command: Command) -> str:
        """Passes a command on; returns why it cannot be, or an empty text."""
        match command:
            case StartBacktest(spec):
                return self._start_backtest(spec)
            case StopBacktest(run):
                process = self._backtests.get(run)
                if process is None or not process.running:
                    return "no backtest is running"
                process.stop()
                return ""
            case _ if self._assistant is None and self._trouble:
                return "the desk could not be opened"
            case _ if self._assistant is None:
                self._early.append(command)
                return "the desk is opening: it will do so at once when it is open"
            case _:
                if isinstance(command, Approve | Veto):
                    self._answers[command.order_id] = isinstance(command, Approve)
                self._assistant.send(command)
                return ""

    def dismiss(self) -> None:
        """The trouble has been read."""
        self._dismissed = self._trouble or self._desk.error

    def forget_trouble(self) -> None:
        """What went wrong is being tried again."""
        self._trouble = ""
        self.dismiss()

    def snapshot(self) -> Snapshot:
        """How everything stands now; cheap."""
        assistant = self._assistant
        desk = self._desk
        trouble = self._trouble or desk.error
        return Snapshot(
            desk=desk,
            # At once, whatever the desk's thread is busy with: nobody is asked about an order twice.
            controls=self._controls.after(self._answers),
            market=self._market,
            live=self._live_view(),
            services=self._services,
            busy=assistant is not None and assistant.busy,
            paused=assistant is not None and assistant.paused,
            trouble="" if trouble == self._dismissed else trouble,
            cycle_seconds=None if self._began is None else time.monotonic() - self._began,
            backtests=tuple(process.state for process in self._backtests.values()),
            sources=self._sources(),
        )

    def _sources(self) -> tuple[Source, ...]:
        services = self._services
        if services is None:
            return ()
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

        known = None if self._market is None else self._market.known
        return await self._read(source, lambda records: followed_decisions(records, known))

    async def why(self, source: Source, wanted: Decision | str) -> Mapping[str, Any]:
        """The trail of a decision, or of the latest for a symbol, read beside the screen. Raises MissingData where
        there is none."""
        from engine.reports.documents.trail import latest, why_document

        def read(records: Records) -> Mapping[str, Any]:
            return why_document(records, latest(records, wanted) if isinstance(wanted, str) else [wanted])

        return await self._read(source, read)

    async def _read(self, source: Source, document: Callable[[Records], T]) -> T:
        from engine.reports.documents.records import records_in

        def read() -> T:
            with records_in(source.journal, source.name, source.run) as records:
                return document(records)

        return await asyncio.to_thread(read)

    def _live_view(self) -> LiveView | None:
        live, services = self._board, self._services
        if live is None or services is None:
            return None
        return live.view(tuple(services.symbols), services.clock.now())

    def _start_backtest(self, spec: RunSpec) -> str:
        if any(process.running for process in self._backtests.values()):
            return "a backtest is running: stop it with x first"
        name = f"{spec.preset or spec.strategy} {len(self._backtests) + 1}"
        self._backtests[spec.run] = BacktestProcess(name, spec, self._backtest)
        self._backtests[spec.run].start()
        return ""

    # In the desk's thread

    def _live(self) -> None:
        try:
            # Outside the loop: opening reads configuration and data, and may use a loop of its own.
            asyncio.run(self._serve(self._open_desk()))
        except PaperdeskError as error:
            self._trouble = one_line(str(error))
        except Exception as error:  # whatever it is, it belongs on the strip and not over the screen
            self._trouble = one_line(f"a bug: {type(error).__name__}: {error}")
        finally:
            self._assistant = None

    async def _serve(self, services: DeskServices) -> None:
        from engine.app.desk_runner import DeskRunner

        await self._look(services)
        self._touched = asyncio.Event()
        await self._read_controls(services)
        self._services = services
        bus = Bus()
        # The subscription first: what the first cycle says must not pass unheard.
        listening = asyncio.create_task(self._listen(bus.subscribe(), services))
        watching = asyncio.create_task(self._watch(services))
        assistant = DeskRunner(bus, services.run_cycle, services.clock, services.journal, services.hand_over)
        self._assistant = assistant
        while self._early:
            assistant.send(self._early.pop(0))
        if self._stopped:
            return
        following = asyncio.create_task(self._follow(services, assistant, bus))
        try:
            await assistant.serve()
        finally:
            for task in (listening, watching, following):
                task.cancel()

    async def _follow(self, services: DeskServices, assistant: DeskRunner, bus: Bus) -> None:
        """Listens to the feed and, where that is configured, has cycles run when they are due."""
        if services.feed is not None:
            self._board = LiveBoard()
        try:
            if services.watches:
                await services.watch(bus.publish, self._hear, assistant.take_turn)
            elif services.feed is not None:
                await services.feed.follow(services.symbols, self._hear)
        except PaperdeskError as error:
            self._board = None
            what = "the desk watches no more" if services.watches else "no live prices and news"
            bus.publish(Noticed("", services.clock.now(), "error", f"{what}: {error}"))

    def _hear(self, heard: FeedMessage) -> None:
        if self._board is not None:
            self._board.hear(heard)
        line = live_line(heard)
        if line is not None:
            self._desk = with_line(self._desk, line)
        if isinstance(heard, OrderHint) and self._touched is not None:
            self._touched.set()

    async def _look(self, services: DeskServices) -> None:
        """Journal and market, read anew; what the running cycle has said meanwhile stays."""
        from engine.reports.documents.opening import Opening, opening_of
        from engine.reports.documents.records import records_in

        opening, stored = Opening(), self._desk
        try:
            with records_in(services.journal, services.desk) as records:
                opening = opening_of(records)
            stored = greeting(opening)
        except PaperdeskError as error:  # the market can be shown all the same
            self._trouble = one_line(str(error))
        if self._desk.run:
            signals = {**stored.signals, **self._desk.signals}
            self._desk = replace(self._desk, books=stored.books or self._desk.books, signals=signals)
        else:
            self._desk = stored if stored.run else replace(stored, steps=tuple(services.steps))
        market = await services.market()
        self._market = market_view(market, services.symbols, services.clock.now(), opening.fills)
        self._version += 1

    async def _watch(self, services: DeskServices) -> None:
        """Looks at halts and open orders as the journal has them, whoever wrote them: at once where this desk did
        something, else after LOOK_AFTER seconds."""
        assert self._touched is not None
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._touched.wait(), LOOK_AFTER)
            self._touched.clear()
            await self._read_controls(services)

    async def _read_controls(self, services: DeskServices) -> None:
        def read() -> ControlState:
            from engine.execution.controls import stays_until
            from engine.market.trading_hours import AroundTheClock
            from engine.reports.documents.controls import control_state

            market = self._market
            calendar = (market and market.calendar) or AroundTheClock()

            def until(session: date) -> datetime:
                return stays_until(calendar, services.symbols, session)

            return control_state(
                services.journal,
                asks=services.mode is TradingMode.ASK,
                stays_until=until,
                now=services.clock.now(),
            )

        with suppress(PaperdeskError):  # what is wrong with a journal is said where it is read whole
            self._controls = await asyncio.to_thread(read)

    async def _listen(self, subscription: Subscription, services: DeskServices) -> None:
        async for event in subscription:
            if self._desk.error != (desk := after(self._desk, event)).error or _is_error(event):
                self._dismissed = ""  # the same words again are news again
            self._desk = desk
            if _is_error(event):
                self._answers.clear()  # it may not have been written: what the journal says holds
            if self._touched is not None and isinstance(event, Noticed | OrderMoved | RunStarted | RunFinished):
                self._touched.set()
            if isinstance(event, RunStarted):
                self._began = time.monotonic()
            elif isinstance(event, RunFinished):
                self._began = None
                try:
                    await self._look(services)
                except PaperdeskError as error:
                    self._trouble = one_line(str(error))


def _is_error(event: Event) -> bool:
    return isinstance(event, Noticed) and event.level == "error"
