"""Items worked on side by side, by processes of this machine or others that do the same: an item in, a result out."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from engine.app.records.own_process import no_main_module
from engine.errors import TryAgainLater, WorkLost

if TYPE_CHECKING:
    from multiprocessing.synchronize import Event

T = TypeVar("T")
R = TypeVar("R")
_PATIENCE = 0.2
"""Seconds between two checks whether to stop."""


@dataclass(frozen=True, slots=True)
class Team:
    """Processes that work.

    submit: gives work and its item to the first that is free.
    result: what has come of it; raises what the work raises, WorkLost where it has ended its processes, TryAgainLater
        where all have ended.
    check: raises TryAgainLater where nobody is left to work.
    stop: has what is at work end soon, as `stop_requested` says there.
    """

    submit: Callable[[Callable[[Any], Any], Any], Future[Any]]
    result: Callable[[Future[Any]], Any] = Future.result
    check: Callable[[], None] = lambda: None
    stop: Callable[[], None] = lambda: None


def _refuse_loss(number: int, error: WorkLost) -> None:
    raise error


def in_workers(
    team: Team,
    work: Callable[[T], R],
    items: Sequence[T],
    stop: Callable[[], bool],
    on_ended: Callable[[int, R], None],
    *,
    on_lost: Callable[[int, WorkLost], None] = _refuse_loss,
) -> None:
    """Have items worked on by a team, the result of each told to `on_ended` by its number as soon as it is there. One
    that is lost may have been beside another that ends its processes: it is tried again alone, after the others, and
    told to `on_lost` where that is no use. After `stop` none begins. Raises what the work, the listeners and the team
    raise."""
    lost = list[int]()
    given = {team.submit(work, item): number for number, item in enumerate(items)}
    _wait_for(team, given, stop, on_ended, lambda number, error: lost.append(number))
    for number in lost:
        if stop():
            return
        _wait_for(team, {team.submit(work, items[number]): number}, stop, on_ended, on_lost)


def _wait_for(
    team: Team,
    numbers: dict[Future[Any], int],
    stop: Callable[[], bool],
    on_ended: Callable[[int, Any], None],
    on_lost: Callable[[int, WorkLost], None],
) -> None:
    stopped = False
    while numbers:
        done, _ = wait(numbers, _PATIENCE, FIRST_COMPLETED)
        for future in done:
            number = numbers.pop(future)  # none is held for longer: results may be large
            try:
                result = team.result(future)
            except WorkLost as error:
                on_lost(number, error)
            else:
                on_ended(number, result)
        if not done:
            team.check()
        if stop() and not stopped:
            stopped = True
            team.stop()
            numbers = {future: number for future, number in numbers.items() if not future.cancel()}


@contextmanager
def processes(count: int) -> Iterator[Team]:
    """A team of processes on this machine until the block ends; a KeyboardInterrupt ends all at once."""
    context = multiprocessing.get_context("spawn")
    stopping = context.Event()
    pool = ProcessPoolExecutor(count, context, _begin_worker, (stopping,))

    def submit(work: Callable[[Any], Any], item: object) -> Future[Any]:
        with no_main_module(), _whole():
            return pool.submit(work, item)

    try:
        yield Team(submit, _result, stop=stopping.set)
    except KeyboardInterrupt:
        # The pool has no way to end what runs; whoever plays side by side has no other children.
        for process in multiprocessing.active_children():
            process.terminate()
        # One that was ended while it wrote a result has left half of it, and the pool would wait for the rest for as
        # long as anybody, this process too, can write to that pipe.
        pool._result_queue._writer.close()  # type: ignore[attr-defined]
        raise
    finally:
        stopping.set()
        pool.shutdown(cancel_futures=True)


def _result(future: Future[Any]) -> Any:
    with _whole():
        return future.result()


@contextmanager
def _whole() -> Iterator[None]:
    """Raise TryAgainLater for a pool of which a process was ended."""
    try:
        yield
    except BrokenProcessPool:
        raise TryAgainLater("a process ended without a result: try again, with fewer --jobs") from None


_stopping: Event | None = None
"""In a process of a pool: set once its work is to stop."""


def _begin_worker(stopping: Event) -> None:
    """Begin a process of a pool. Ctrl-C reaches every process of the terminal; it is the parent's to answer. One whose
    parent was killed ends with it: it would wait for its next item for ever."""
    global _stopping  # noqa: PLW0603 - how a pool's process is given what cannot be sent with a job
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _stopping = stopping
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def stop_requested() -> bool:
    """True in a process of a pool once the parent asked it to stop."""
    return _stopping is not None and _stopping.is_set()
