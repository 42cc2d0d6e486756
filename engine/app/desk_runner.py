"""The running desk: commands in, events out, one cycle at a time.

It lives on an event loop of its own (the app gives it a thread), so that nothing it does holds up a screen. What it
runs is given by wiring as `DeskServices`, the small page of what an app needs to know of a desk.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Protocol

from engine.domain.live import FeedMessage
from engine.domain.market import Symbol
from engine.domain.model_call import ModelRequest, ModelResult
from engine.domain.run import RunSpec, TradingMode
from engine.errors import InvariantBroken, PaperdeskError, TryAgainLater
from engine.execution import controls
from engine.market.as_of import Market
from engine.messages.bus import Bus
from engine.messages.commands import Approve, Command, Halt, PauseCycle, Resume, ResumeCycle, RunCycle, Shutdown, Veto
from engine.messages.events import Noticed, Publish
from engine.ports import Clock, LanguageModel, LiveFeed

Gate = Callable[[], Awaitable[None]]
"""Waits while the desk is paused; awaited before every question to a model."""

TakeTurn = Callable[[Callable[[Gate], Awaitable[None]]], Awaitable[None]]
"""Has work done as a cycle, once no other is at work; raises what the work raises."""

PATIENCE = 1.5
"""Seconds that a cycle has to end after it was told to; quitting takes at most two."""


class DeskServices(Protocol):
    """One desk, opened: what it trades, where its journal is, its data, and its cycle."""

    @property
    def desk(self) -> str:
        """The desk's name."""
        ...

    @property
    def symbols(self) -> Sequence[Symbol]:
        """What it trades, in the order in which it is decided."""
        ...

    @property
    def label(self) -> str:
        """How the model that decides is introduced, such as `rules, not a language model`."""
        ...

    @property
    def steps(self) -> Sequence[str]:
        """What its agents are asked about a symbol, in order, by the names under which events tell of it."""
        ...

    @property
    def journal(self) -> Path:
        """The desk's journal; the file is not there before the first run."""
        ...

    @property
    def clock(self) -> Clock:
        """The desk's clock."""
        ...

    @property
    def feed(self) -> LiveFeed | None:
        """Live prices and news; None where there are none."""
        ...

    @property
    def watches(self) -> bool:
        """Whether its cycles run on a schedule while it is open."""
        ...

    @property
    def mode(self) -> TradingMode:
        """Whether its orders are sent, wait for approval, or are never sent."""
        ...

    @property
    def default_backtest(self) -> RunSpec:
        """The backtest that the form proposes: a window that the data covers; `journal` None."""
        ...

    async def market(self) -> Market:
        """All data of the desk's symbols through the last completed session; read anew at every call."""
        ...

    async def run_cycle(self, publish: Publish, gate: Gate) -> None:
        """One daily run on the desk's journal, for the last completed session: publishes what happens from
        RunStarted to RunFinished, awaits `gate` before every question to a model (see `Gated`). Idempotent: a
        finished session is noticed and left alone. Raises PaperdeskError."""
        ...

    async def watch(self, publish: Publish, hear: Callable[[FeedMessage], None], take_turn: TakeTurn) -> None:
        """Runs cycles when they are due, each in its turn, and tells `hear` what the feed tells, until it is
        cancelled. Raises PaperdeskError for what only a person can mend."""
        ...

    async def hand_over(self, publish: Publish) -> None:
        """Carries out the words on orders that stand in the journal: sends what is approved and may be sent, ends
        what is vetoed or too late, and publishes what came of it. Raises PaperdeskError, TryAgainLater among it where
        a run is at work."""
        ...


class Gated:
    """A LanguageModel that waits at the gate before every question, and else is the one inside."""

    def __init__(self, inner: LanguageModel, gate: Gate) -> None:
        self.spec, self.label, self.sees = inner.spec, inner.label, inner.sees
        self._inner = inner
        self._gate = gate

    async def answer(self, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> ModelResult:
        """The inner model's answer, once the gate is open."""
        await self._gate()
        return await self._inner.answer(request, on_delta)


class DeskRunner:
    """Carries out commands, one cycle at a time. `run_cycle` and `hand_over` are those of DeskServices; what they raise
    is told as a `Noticed` of level `error` and never ends the desk.

    A halt waits for nothing but the journal: neither for the cycle nor for orders that are being sent."""

    def __init__(
        self,
        bus: Bus,
        run_cycle: Callable[[Publish, Gate], Awaitable[None]],
        clock: Clock,
        journal: Path,
        hand_over: Callable[[Publish], Awaitable[None]],
    ) -> None:
        self._bus = bus
        self._run_cycle = run_cycle
        self._clock = clock
        self._journal = journal
        self._hand_over = hand_over
        self._words: set[asyncio.Task[None]] = set()
        # Words are written in the order in which they were said; orders are sent by one at a time.
        self._writing = asyncio.Lock()
        self._sending = asyncio.Lock()
        self._unsent = False
        self._waiting: deque[Command] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._arrived = asyncio.Event()
        self._open = asyncio.Event()
        self._open.set()
        self._cycle: asyncio.Task[None] | None = None

    @property
    def busy(self) -> bool:
        """Whether a cycle is under way (paused included)."""
        return self._cycle is not None and not self._cycle.done()

    @property
    def paused(self) -> bool:
        """Whether the next question to a model waits."""
        return not self._open.is_set()

    def send(self, command: Command) -> None:
        """Asks for something; may be called from any thread, before or while the desk serves, and never waits."""
        self._waiting.append(command)
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._arrived.set)

    async def serve(self) -> None:
        """Carries out commands until Shutdown, then gives the cycle PATIENCE seconds to end."""
        self._loop = asyncio.get_running_loop()
        try:
            while True:
                while self._waiting:
                    command = self._waiting.popleft()
                    if isinstance(command, Shutdown):
                        return
                    self._carry_out(command)
                self._arrived.clear()
                if not self._waiting:
                    await self._arrived.wait()
        finally:
            await self._end()
            self._loop = None

    def _carry_out(self, command: Command) -> None:
        match command:
            case RunCycle() if self.busy:
                self._say("info", "a cycle is running already")
            case RunCycle():
                self._open.set()
                self._cycle = asyncio.create_task(self._guarded(self._whole_cycle(self._asked)), name="cycle")
            case PauseCycle() if self.busy:
                self._open.clear()
                self._say("info", "paused: the answer at hand is finished, then the desk waits")
            case PauseCycle():
                self._say("info", "there is no cycle to pause")
            case ResumeCycle():
                self._open.set()
                self._say("info", "resumed")
            case Halt() | Resume() | Approve() | Veto():
                word = asyncio.create_task(self._guarded(self._obey(command)), name="word")
                self._words.add(word)
                word.add_done_callback(self._words.discard)
            case _:
                raise InvariantBroken(f"the desk does not know what to do with {type(command).__name__}")

    async def take_turn(self, work: Callable[[Gate], Awaitable[None]]) -> None:
        """Has work done as a cycle, once no other is at work; raises what it raises."""
        while self._cycle is not None and not self._cycle.done():
            await asyncio.wait({self._cycle})
        self._open.set()
        self._cycle = asyncio.create_task(self._whole_cycle(work), name="cycle")
        await self._cycle

    async def _asked(self, gate: Gate) -> None:
        await self._run_cycle(self._bus.publish, gate)

    async def _whole_cycle(self, work: Callable[[Gate], Awaitable[None]]) -> None:
        try:
            await work(self._gate)
        finally:
            self._open.set()
        if self._unsent:  # said while the cycle was at work, and too late for it
            await self._send_words()

    async def _obey(self, command: Command) -> None:
        async with self._writing:
            # In a thread: the journal's lock may be held by another process for a moment.
            said = await asyncio.to_thread(controls.carry_out, self._journal, command, self._clock.now())
        self._say("warning" if isinstance(command, Halt) else "info", said)
        if isinstance(command, Approve | Veto):
            self._unsent = True
            await self._send_words()

    async def _send_words(self) -> None:
        async with self._sending:
            if not self._unsent:  # one look at the broker serves all that was said meanwhile
                return
            self._unsent = False
            try:
                await self._hand_over(self._bus.publish)
            except TryAgainLater as error:
                self._unsent = True
                self._say("warning", f"the word stands, and nothing was sent yet: {error}")

    async def _guarded(self, work: Coroutine[None, None, None]) -> None:
        try:
            await work
        except PaperdeskError as error:
            self._say("error", str(error))
        except Exception as error:  # a bug must be seen, and must not take the desk down
            self._say("error", f"a bug: {type(error).__name__}: {error}")

    async def _gate(self) -> None:
        # A model that answers without waiting (the rules) would else keep the loop to itself.
        await asyncio.sleep(0)
        await self._open.wait()

    async def _end(self) -> None:
        """A cycle is told to end; a word that was said is still carried out."""
        at_work = set(self._words)
        if self._cycle is not None and not self._cycle.done():
            self._cycle.cancel()
            at_work.add(self._cycle)
        if at_work:
            await asyncio.wait(at_work, timeout=PATIENCE)

    def _say(self, level: str, text: str) -> None:
        self._bus.publish(Noticed("", self._clock.now(), level, text))
