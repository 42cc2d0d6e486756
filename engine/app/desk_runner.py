"""The running desk: commands in, events out, one cycle at a time.

It lives on an event loop of its own (the app gives it a thread), so that nothing it does holds up a screen.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path

from engine.domain.model_call import ModelRequest, ModelResult
from engine.errors import InvariantBroken, PaperdeskError, TryAgainLater
from engine.execution import controls
from engine.messages.bus import Bus
from engine.messages.commands import Approve, Command, Halt, PauseCycle, Resume, ResumeCycle, RunCycle, Shutdown, Veto
from engine.messages.events import Noticed, Publish
from engine.ports import Clock, LanguageModel

Gate = Callable[[], Awaitable[None]]
"""A wait while the desk is paused; awaited before every question to a model."""

TakeTurn = Callable[[Callable[[Gate], Awaitable[None]]], Awaitable[None]]
"""A way to have work done as a cycle, once no other is at work; raises what the work raises."""

PATIENCE = 1.5
"""Seconds that a cycle has to end once it is cancelled; quitting takes at most two."""


class Gated:
    """A model that waits at the gate before every question."""

    def __init__(self, inner: LanguageModel, gate: Gate) -> None:
        self.spec, self.label, self.sees = inner.spec, inner.label, inner.sees
        self._inner = inner
        self._gate = gate

    async def answer(self, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> ModelResult:
        """The inner model's answer, once the gate is open."""
        await self._gate()
        return await self._inner.answer(request, on_delta)


class DeskRunner:
    """The runner of commands, one cycle at a time. An error becomes a `Noticed` of level `error`, and never ends
    the desk.

    A halt waits for nothing but the journal: neither for the cycle nor for orders that are being sent."""

    def __init__(
        self,
        bus: Bus,
        run_cycle: Callable[[Publish, Gate], Awaitable[None]],
        clock: Clock,
        journal: Path,
        submit: Callable[[Publish], Awaitable[None]],
    ) -> None:
        """`run_cycle` and `submit` are those of OpenDesk."""
        self._bus = bus
        self._run_cycle = run_cycle
        self._clock = clock
        self._journal = journal
        self._submit = submit
        self._controls: set[asyncio.Task[None]] = set()
        # Controls are written in the order in which they came; orders are sent by one task at a time.
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
        """True while a cycle is under way, paused or not."""
        return self._cycle is not None and not self._cycle.done()

    @property
    def paused(self) -> bool:
        """True while the next question to a model waits."""
        return not self._open.is_set()

    def send(self, command: Command) -> None:
        """Queue a command, from any thread, before or while the desk serves; never waits."""
        self._waiting.append(command)
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._arrived.set)

    async def serve(self) -> None:
        """Carry out commands until Shutdown, then give the cycle PATIENCE seconds to end."""
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
                self._notice("info", "a cycle is running already")
            case RunCycle():
                self._open.set()
                self._cycle = asyncio.create_task(self._guarded(self._whole_cycle(self._daily)), name="cycle")
            case PauseCycle() if self.busy:
                self._open.clear()
                self._notice("info", "paused: the answer at hand is finished, then the desk waits")
            case PauseCycle():
                self._notice("info", "there is no cycle to pause")
            case ResumeCycle():
                self._open.set()
                self._notice("info", "resumed")
            case Halt() | Resume() | Approve() | Veto():
                control = asyncio.create_task(self._guarded(self._control(command)), name="control")
                self._controls.add(control)
                control.add_done_callback(self._controls.discard)
            case _:
                raise InvariantBroken(f"the desk does not know what to do with {type(command).__name__}")

    async def take_turn(self, work: Callable[[Gate], Awaitable[None]]) -> None:
        """Have work done as a cycle, once no other is at work; raises what it raises."""
        while self._cycle is not None and not self._cycle.done():
            await asyncio.wait({self._cycle})
        self._open.set()
        self._cycle = asyncio.create_task(self._whole_cycle(work), name="cycle")
        await self._cycle

    async def _daily(self, gate: Gate) -> None:
        await self._run_cycle(self._bus.publish, gate)

    async def _whole_cycle(self, work: Callable[[Gate], Awaitable[None]]) -> None:
        try:
            await work(self._gate)
        finally:
            self._open.set()
        if self._unsent:  # answered while the cycle was at work, and too late for it
            await self._submit_answered()

    async def _control(self, command: Command) -> None:
        async with self._writing:
            # In a thread: the journal's lock may be held by another process for a moment.
            done = await asyncio.to_thread(controls.carry_out, self._journal, command, self._clock.now())
        self._notice("warning" if isinstance(command, Halt) else "info", done)
        if isinstance(command, Approve | Veto):
            self._unsent = True
            await self._submit_answered()

    async def _submit_answered(self) -> None:
        async with self._sending:
            if not self._unsent:  # one submission serves all orders that were answered meanwhile
                return
            self._unsent = False
            try:
                await self._submit(self._bus.publish)
            except TryAgainLater as error:
                self._unsent = True
                self._notice("warning", f"the answer is recorded, and nothing was sent yet: {error}")

    async def _guarded(self, work: Coroutine[None, None, None]) -> None:
        try:
            await work
        except PaperdeskError as error:
            self._notice("error", str(error))
        except Exception as error:  # a bug must be seen, and must not take the desk down
            self._notice("error", f"a bug: {type(error).__name__}: {error}")

    async def _gate(self) -> None:
        # A model that answers without waiting (the rules) would else keep the loop to itself.
        await asyncio.sleep(0)
        await self._open.wait()

    async def _end(self) -> None:
        """Cancel the cycle; operator controls are still carried out."""
        at_work = set(self._controls)
        if self._cycle is not None and not self._cycle.done():
            self._cycle.cancel()
            at_work.add(self._cycle)
        if at_work:
            await asyncio.wait(at_work, timeout=PATIENCE)

    def _notice(self, level: str, text: str) -> None:
        self._bus.publish(Noticed("", self._clock.now(), level, text))
