"""Questions of a backtest that are asked before their session: those of the agents that read the market alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from types import TracebackType

from engine.cycle.cycle import Cycle
from engine.cycle.steps import goes_on_after
from engine.cycle.turn import Turn
from engine.domain.market import Symbol
from engine.domain.model_call import AnswerRecord


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
    ) -> None:
        """`sessions` are those that decisions read, in order, `turn_of` gives their turns as far as the market makes
        them, `within` is the number of sessions after the present one whose questions are asked."""
        self._cycle, self._sessions, self._turn_of, self._within = cycle, sessions, turn_of, within
        self._asker = replace(cycle.asker, on_answer=on_answer, on_delta=_silent, on_unanswered=_silent, ahead=True)
        self._asked_to = 0
        self._unaffected: frozenset[tuple[Symbol, str]] = frozenset()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Ahead:
        return self

    def reach(self, session: date) -> None:
        """Begin to ask what has come within reach of a session that is about to be decided."""
        first = self._sessions.index(session)
        end = min(first + self._within + 1, len(self._sessions))
        known = self._unaffected
        self._unaffected = known | self._cycle.unaffected(self._turn_of(session))
        for number in range(first, end):
            of = self._unaffected if number >= self._asked_to else self._unaffected - known
            if of:
                asking = self._cycle.ask_ahead(self._turn_of(self._sessions[number]), self._asker, of)
                task = asyncio.ensure_future(asking)
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        self._asked_to = max(self._asked_to, end)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and not goes_on_after(error):
            for task in self._tasks:
                task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _silent(*said: object) -> None:
    """What is asked ahead is told when its session asks it."""
