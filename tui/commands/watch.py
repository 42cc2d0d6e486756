"""`paperdesk --watch`: the live clock in a terminal or under a supervisor, a line for everything that matters."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

import click

from engine.app.desk_watch import DeskWatch
from engine.domain.live import FeedMessage
from engine.errors import Interrupted, UsageError
from engine.messages.events import (
    DecisionMade,
    Event,
    Noticed,
    OrderFilled,
    OrderMoved,
    RunFinished,
    RunStarted,
    SessionSettled,
    to_plain,
)
from tui.invocation import Invocation
from tui.live import live_line
from tui.state import DeskState, Line, after

if TYPE_CHECKING:
    from types import FrameType, TracebackType

    from engine.services import Services

SCHEMA = 1
TOLD = (RunStarted, DecisionMade, OrderMoved, OrderFilled, SessionSettled, Noticed, RunFinished)
"""Events that are lines of JSON; what agents say on the way stands in the journal."""

AT_ONCE = 1.8
"""Seconds that Ctrl-C leaves for ending; what is in flight then is looked up by the next run."""
IN_PEACE = 20.0
"""Seconds that SIGTERM leaves: longer than the answer to an order may take."""


def run(invocation: Invocation, as_json: bool) -> None:
    """Watches over the desk until it is told to end. Raises Interrupted after Ctrl-C; SIGTERM is the ordinary end."""
    if invocation.run is not None:
        raise UsageError("--run names a run that is there; --watch makes its own: leave one of them out")
    with Stopping() as stopping:
        asyncio.run(_watch(invocation.services(), Lines(as_json), stopping))
    if stopping.came is signal.SIGINT:
        raise Interrupted("the watch ends; what was done is kept")


class Lines:
    """Prints what happens, a line each: for a person, or as JSON. A reader that goes away ends the watch."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._state = DeskState()
        self.gone: Callable[[], None] = lambda: None

    def happened(self, event: Event) -> None:
        """A run did something, or the watch has something to say."""
        if self._as_json:
            if isinstance(event, TOLD):
                self._print(json.dumps({"schema": SCHEMA, **to_plain(event)}))
            return
        before = self._state.lines
        self._state = after(self._state, event)
        if self._state.lines is not before:
            self._print(_words(self._state.lines[-1]))

    def heard(self, heard: FeedMessage) -> None:
        """The feed told something."""
        line = live_line(heard)
        if line is None:
            return
        self._print(json.dumps({"schema": SCHEMA, **_plain(heard)}) if self._as_json else _words(line))

    def _print(self, text: str) -> None:
        try:
            click.echo(text)
            sys.stdout.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            self.gone()


def _words(line: Line) -> str:
    mark = {"error": "ERROR ", "warning": "! "}.get(line.level, "")
    return f"{line.time:%Y-%m-%d %H:%M:%S}  {mark}{line.text}"


def _plain(heard: FeedMessage) -> dict[str, Any]:
    """What a feed told as JSON's own types, its kind under `type`."""
    plain: dict[str, Any] = {"type": type(heard).__name__}
    for name in type(heard).__dataclass_fields__:
        value = getattr(heard, name)
        plain[name] = (
            value if isinstance(value, str) else list(value) if isinstance(value, tuple) else value.isoformat()
        )
    return plain


class Stopping:
    """A context in which Ctrl-C and SIGTERM are wishes: `wished` is called at the first. What has not ended after a
    while, or at the second Ctrl-C, is left: a thread looks to that, since the loop itself may be held up."""

    def __init__(self) -> None:
        self.came: signal.Signals | None = None
        self.wished: Callable[[], None] = lambda: None
        self._before: dict[int, Any] = {}
        self._late: list[threading.Timer] = []

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._heard) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        for timer in self._late:
            timer.cancel()

    def _heard(self, number: int, frame: FrameType | None) -> None:
        again, self.came = self.came is not None, signal.Signals(number)
        patience = AT_ONCE if self.came is signal.SIGINT else IN_PEACE
        timer = threading.Timer(0 if again else patience, _leave, (130 if self.came is signal.SIGINT else 0,))
        timer.daemon = True
        timer.start()
        self._late.append(timer)
        self.wished()


async def _watch(services: Services, lines: Lines, stopping: Stopping) -> None:
    """Watches until that is wished, or nobody reads any more. Raises what ends a watch."""
    loop, told = asyncio.get_running_loop(), asyncio.Event()

    def stop() -> None:
        loop.call_soon_threadsafe(told.set)

    stopping.wished = lines.gone = stop
    if stopping.came is not None:
        return
    watching, end = (
        asyncio.create_task(DeskWatch(services, lines.happened, lines.heard).run()),
        asyncio.create_task(told.wait()),
    )
    await asyncio.wait({watching, end}, return_when=asyncio.FIRST_COMPLETED)
    end.cancel()
    if not watching.done():
        watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching


def _leave(code: int) -> None:
    os.write(2, b"paperdesk: left while something was in flight; the next run looks it up\n")
    os._exit(code)
