"""Questions that are asked at the same time: all of a batch, and the steps of one analysis as a graph."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from engine.cycle.step import StepContext
from engine.errors import MENDED, PaperdeskError

T = TypeVar("T")


async def gather_all(waiting: Iterable[Awaitable[T]]) -> Sequence[T]:
    """All results in order. Where one raises, the others have ended before it is raised again: after an error that a
    run can go on after, each with the answer that it waits for, which is paid for and recorded; after anything else
    they are cancelled."""
    tasks = [asyncio.ensure_future(one) for one in waiting]
    try:
        return await asyncio.gather(*tasks)
    except BaseException as error:
        if not goes_on_after(error):
            for task in tasks:
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def goes_on_after(error: BaseException) -> bool:
    """True for an error that a run can go on after, another time."""
    return isinstance(error, PaperdeskError) and error.exit_code in MENDED


@contextmanager
def noted(failed: list[PaperdeskError]) -> Iterator[None]:
    """Put an error into `failed`, where all of the batch look before they ask."""
    try:
        yield
    except PaperdeskError as error:
        failed.append(error)
        raise


class _Turns:
    """Speakers that take turns: what one of them says is held until those before it have ended."""

    def __init__(self) -> None:
        self._held: list[list[Callable[[], None]]] = []
        self._ended: list[bool] = []
        self._speaking = 0

    def speaker(self) -> int:
        """The number of one more speaker, after all others."""
        self._held.append([])
        self._ended.append(False)
        return len(self._held) - 1

    def through(self, speaker: int, call: Callable[..., None]) -> Callable[..., None]:
        """`call`, called when it is the speaker's turn."""

        def in_turn(*said: Any) -> None:
            if speaker == self._speaking:
                call(*said)
            else:
                self._held[speaker].append(partial(call, *said))

        return in_turn

    def end(self, speaker: int) -> None:
        """Nothing more comes of a speaker: whoever follows may speak."""
        self._ended[speaker] = True
        while self._speaking < len(self._ended) and self._ended[self._speaking]:
            self._speaking += 1
            for call in self._held[self._speaking] if self._speaking < len(self._held) else ():
                call()


class Steps:
    """The graph of one analysis: a step begins as soon as the steps that it reads have ended, and what it publishes and
    records keeps the order in which the steps stand in the program, however long each waits for its model. Figures that
    it quotes are looked up in its own question and in those of the steps that it reads."""

    def __init__(self, context: StepContext) -> None:
        self._context = context
        self._turns = _Turns()
        self._contexts: dict[asyncio.Task[Any], StepContext] = {}

    async def __aenter__(self) -> Steps:
        return self

    def __call__(self, step: Callable[..., Coroutine[Any, Any, T]], *reads: Any) -> asyncio.Task[T]:
        """A step under way: called with a context of its own and with what it reads, in which the tasks of other steps
        stand for their results."""
        context, speaker = self._context, self._turns.speaker()
        through = partial(self._turns.through, speaker)
        asker = replace(
            context.asker,
            on_answer=through(context.asker.on_answer),
            on_unanswered=through(context.asker.on_unanswered),
        )
        read = [self._contexts[one].sources for one in reads if isinstance(one, asyncio.Task) and one in self._contexts]
        own = replace(context, asker=asker, publish=through(context.publish), sources=context.sources.branch(read))
        task = asyncio.ensure_future(self._run(step, own, speaker, reads))
        self._contexts[task] = own
        return task

    async def _run(
        self, step: Callable[..., Coroutine[Any, Any, T]], own: StepContext, speaker: int, reads: Sequence[Any]
    ) -> T:
        try:
            with noted(own.failed):
                return await step(own, *[await one if isinstance(one, asyncio.Future) else one for one in reads])
        finally:
            self._turns.end(speaker)

    async def __aexit__(self, *error: object) -> None:
        await gather_all(self._contexts)
        for own in self._contexts.values():
            self._context.sources.absorb(own.sources)
