"""Questions of a backtest that are asked before their session: those of the agents that read the market alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from datetime import date

from engine.cycle.cycle import Cycle
from engine.cycle.recall import MemoryScope
from engine.cycle.steps import goes_on_after
from engine.cycle.turn import Turn
from engine.domain.market import Symbol
from engine.domain.model_call import AnswerRecord, ModelRequest, ModelResult
from engine.errors import PaperdeskError
from engine.ports import LanguageModel

SendWave = Callable[[Sequence[tuple[LanguageModel, ModelRequest]]], Awaitable[None]]
"""Makes questions ready that are asked together, each to its model: it is asked for the answer afterwards."""
_TURNS = 60
"""Turns of the event loop after which an answer has brought on the next question: a step hands it on in a few."""
_LOOK = 0.5
"""Seconds between two looks whether to stop."""


class Ahead:
    """The questions of a run's sessions that no earlier session changes, put while those are played. Each is asked
    once: whoever puts it in its session has the answer, as from the model itself."""

    def __init__(
        self,
        cycle: Cycle,
        sessions: Sequence[date],
        turn_of: Callable[[date], Turn],
        *,
        within: int,
        on_answer: Callable[[AnswerRecord], None],
        send: SendWave | None = None,
        stop: Callable[[], bool],
    ) -> None:
        """`sessions` are those that decisions read, in order, `turn_of` gives their turns as far as the market makes
        them, `within` is the number of sessions after the present one whose questions are asked. With `send` they are
        all asked before the present one is decided, in waves, unless it is to `stop`."""
        self._cycle, self._sessions, self._turn_of, self._within = cycle, sessions, turn_of, within
        self._waves = None if send is None else _Waves(send, stop)
        self._asker = replace(cycle.asker, on_answer=on_answer, on_delta=_silent, on_unanswered=_silent, ahead=True)
        if self._waves is not None:
            models = {agent: _Waiting(model, self._waves) for agent, model in cycle.asker.models.items()}
            self._asker, self._within = replace(self._asker, models=models), len(sessions)
        self._asked_to = 0
        self._unaffected: frozenset[tuple[Symbol, str]] = frozenset()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Ahead:
        return self

    async def reach(self, session: date) -> None:
        """Begin to ask what has come within reach of a session that is about to be decided. Raises what sending a wave
        raises."""
        first = self._sessions.index(session)
        end = min(first + self._within + 1, len(self._sessions))
        known = self._unaffected
        self._unaffected = known | _unaffected(self._cycle, self._turn_of(session))
        for number in range(first, end):
            of = self._unaffected if number >= self._asked_to else self._unaffected - known
            if of:
                asking = self._cycle.ask_ahead(self._turn_of(self._sessions[number]), self._asker, of)
                task = asyncio.ensure_future(asking)
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        self._asked_to = max(self._asked_to, end)
        if self._waves is not None:
            await self._waves.answer(self._tasks)

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._waves is not None or (error is not None and not goes_on_after(error)):
            for task in self._tasks:
                task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class _Waves:
    """Questions that wait for each other: when all that can be asked is asked, they are sent, and then answered."""

    def __init__(self, send: SendWave, stop: Callable[[], bool]) -> None:
        self._send, self._stop = send, stop
        self._waiting: list[tuple[LanguageModel, ModelRequest, asyncio.Future[ModelResult]]] = []

    async def put(self, model: LanguageModel, request: ModelRequest) -> ModelResult:
        """The answer, once the wave that the question goes with is answered."""
        answer: asyncio.Future[ModelResult] = asyncio.get_running_loop().create_future()
        self._waiting.append((model, request, answer))
        return await answer

    async def answer(self, askers: Collection[asyncio.Task[None]]) -> None:
        """Answer wave after wave until all askers have ended."""
        while askers:
            await self._all_asked()
            wave, self._waiting = self._waiting, []
            if wave and not await self._is_sent([(model, request) for model, request, _ in wave]):
                return
            await asyncio.gather(*(_answer(*one) for one in wave))

    async def _is_sent(self, wave: Sequence[tuple[LanguageModel, ModelRequest]]) -> bool:
        """Send a wave; False where it is to stop before that has an end. Raises what sending it raises."""
        sending = asyncio.ensure_future(self._send(wave))
        try:
            while not sending.done() and not self._stop():
                await asyncio.wait({sending}, timeout=_LOOK)
            if sending.done():
                sending.result()
            return sending.done()
        finally:
            sending.cancel()

    async def _all_asked(self) -> None:
        """Wait until nobody asks any more: an asker waits for nothing but answers."""
        before = -1
        while before != len(self._waiting):
            before = len(self._waiting)
            for _ in range(_TURNS):
                await asyncio.sleep(0)


async def _answer(model: LanguageModel, request: ModelRequest, answer: asyncio.Future[ModelResult]) -> None:
    try:
        answer.set_result(await model.answer(request, _silent))
    except PaperdeskError as error:
        answer.set_exception(error)


class _Waiting:
    """A model whose every question goes with a wave."""

    def __init__(self, model: LanguageModel, waves: _Waves) -> None:
        self.spec, self.label, self.sees = model.spec, model.label, model.sees
        self._model, self._waves = model, waves

    async def answer(self, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> ModelResult:
        """The model's answer."""
        return await self._waves.put(self._model, request)


def _unaffected(cycle: Cycle, turn: Turn) -> frozenset[tuple[Symbol, str]]:
    """The symbols and owners of which no further session changes what the agents that read the market alone are asked:
    a memory that knows nothing of a symbol yet takes in more of it."""
    memory = cycle.memory if "memory" in cycle.preset.steps else None
    return frozenset(
        (symbol, owner)
        for symbol in turn.symbols
        for owner in cycle.preset.owners_of(symbol)
        if memory is None or memory.knows(MemoryScope(symbol, owner, turn.session, turn.step))
    )


def _silent(*said: object) -> None:
    """Say nothing: an answer ahead is reported when its session asks for it."""
