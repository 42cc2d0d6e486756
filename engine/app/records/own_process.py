"""Work in a process of its own, so that a loop answers meanwhile: its events and its result come through a pipe.

The process is started by spawn, and ends with the one that started it: whoever reads nothing any more has it cancelled.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager, redirect_stderr, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from threading import Lock
from types import ModuleType
from typing import Any, TypeVar

from engine import errors
from engine.errors import InvariantBroken, PaperdeskError, TryAgainLater
from engine.messages.events import Event, Publish

T = TypeVar("T")
Work = Callable[[Publish], Awaitable[T]]
"""Work that publishes events and returns a value: all of it can be pickled, as a function of a module can."""

NICENESS = 10
"""Priority that such a process gives up, so that keys are answered while it computes."""
GRACE = 1.2
"""Seconds that cancelled work has to end before its process is ended."""
ENDING = 0.02
"""Seconds between two looks at whether a process has ended."""
_starting = Lock()


@dataclass(frozen=True, slots=True)
class _Returned:
    """The end of work: its value."""

    value: Any


@dataclass(frozen=True, slots=True)
class _Raised:
    """The end of work that failed: the kind of the error in engine.errors, and its line."""

    kind: type[PaperdeskError]
    text: str


async def in_own_process(work: Work[T], publish: Publish, name: str) -> T:
    """Do work in another process and return what it returns; `publish` gets its events. Where this is cancelled the
    work is too, and has GRACE seconds to end. Raises what the work raises, as its kind in engine.errors,
    InvariantBroken for a bug, and TryAgainLater where the process cannot be started, or ended without a result."""
    try:
        ours, process = begin_process(_main, (work,), name)
    except OSError as error:
        raise TryAgainLater(f"the process of {name} cannot be started ({error}): try again") from None
    try:
        async with aclosing(_messages(ours)) as messages:
            async for message in messages:
                match message:
                    case _Returned(value):
                        result: T = value
                        return result
                    case _Raised(kind, text):
                        raise kind(text)
                    case Event():
                        publish(message)
    finally:
        ours.close()  # work that goes on is cancelled by it
        code = await _ended(process)
    raise TryAgainLater(f"the process of {name} ended without a result (exit code {code}): try again")


def begin_process(
    main: Callable[..., None], given: tuple[object, ...], name: str, niceness: int = NICENESS
) -> tuple[Connection, BaseProcess]:
    """Start a process whose main function gets `given` and one end of a pipe, and return the other. It yields to this
    one from the beginning where it imports much. Raises OSError."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=main, args=(*given, theirs), name=f"paperdesk {name}", daemon=True)
    # While an app draws, sys.stderr is a stand-in without a descriptor, which spawn cannot pass on; two threads that
    # put it back in the wrong order would leave the app without its stand-in.
    with no_main_module(), redirect_stderr(sys.__stderr__):
        process.start()
    with suppress(OSError):  # it has ended already
        os.setpriority(os.PRIO_PROCESS, process.pid or 0, os.getpriority(os.PRIO_PROCESS, 0) + niceness)
    theirs.close()
    return ours, process


@contextmanager
def no_main_module() -> Iterator[None]:
    """Hide the main module from spawn, which would run it in each process that is started meanwhile: the script of a
    user of the library need not be written for that. One thread at a time."""
    with _starting:
        main, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = main


def leave_terminal() -> None:
    """Have this process write nothing to the terminal that an app draws on, and leave Ctrl+C to that."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    silent = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(silent, descriptor)
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - for the whole process


async def _messages(connection: Connection) -> AsyncGenerator[object, None]:
    """Messages from a pipe, until the other end is closed."""
    loop, arrived = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(connection.fileno(), arrived.set)
    try:
        while True:
            await arrived.wait()
            arrived.clear()
            try:
                if connection.poll():
                    yield connection.recv()
            except (EOFError, OSError):
                return
    finally:
        loop.remove_reader(connection.fileno())


async def _ended(process: BaseProcess) -> int | None:
    """Wait for the end of a process, bring it about after GRACE seconds, and return its exit code."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + GRACE
    while process.is_alive():
        if loop.time() > deadline:
            process.kill()
        await asyncio.sleep(ENDING)
    return process.exitcode


def _main(work: Work[object], connection: Connection) -> None:
    """The main function of the other process."""
    leave_terminal()
    with suppress(BrokenPipeError, ConnectionResetError):  # nobody reads any more
        try:
            connection.send(_Returned(asyncio.run(_cancelled_with(connection, work))))
        except PaperdeskError as error:
            kind = next(one for one in type(error).__mro__ if one.__module__ == errors.__name__)
            connection.send(_Raised(kind, str(error)))
        except asyncio.CancelledError:
            pass
        except Exception as error:  # whatever goes wrong there has to be reported here
            connection.send(_Raised(InvariantBroken, f"a bug: {type(error).__name__}: {error}"))
    os._exit(0)  # all is written; the libraries that were loaded take long to leave


async def _cancelled_with(connection: Connection, work: Work[T]) -> T:
    """Await work, and cancel it once the other end of the pipe is closed."""

    def publish(event: Event) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):  # it is cancelled at its next wait
            connection.send(event)

    def closed() -> None:
        loop.remove_reader(connection.fileno())  # it stays readable: what ends in good order is cancelled once
        task.cancel()

    task = asyncio.ensure_future(work(publish))
    loop = asyncio.get_running_loop()
    loop.add_reader(connection.fileno(), closed)  # nothing is sent to here: it can be read once it is closed
    try:
        return await task
    finally:
        loop.remove_reader(connection.fileno())
