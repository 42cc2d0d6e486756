"""`paperdesk --watch`: the live clock in a terminal or under a supervisor, a line for everything that matters."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Self

import click

from engine.app.desk.notification import CycleRunner, run_here, unless_changed
from engine.app.desk.watch import DeskWatch
from engine.domain.live import FeedMessage
from engine.domain.run import RunTrigger
from engine.errors import Interrupted, UsageError
from engine.messages.events import (
    DecisionMade,
    Event,
    Noticed,
    OpinionFormed,
    OrderFilled,
    OrderMoved,
    RunFinished,
    RunStarted,
    SessionSettled,
)
from engine.reports.documents import row_json
from engine.settings import places
from tui.desk.live import live_line, order_name
from tui.settings.configuration_changes import ConfigurationChanges
from tui.settings.invocation import Invocation
from tui.text.console import as_json
from tui.view.desk_changes import after
from tui.view.desk_port import Source
from tui.view.state import DeskState, Line

if TYPE_CHECKING:
    from types import FrameType

    from engine.services import Services

SCHEMA = 1
PRINTED = (
    RunStarted,
    OpinionFormed,
    DecisionMade,
    OrderMoved,
    OrderFilled,
    SessionSettled,
    Noticed,
    RunFinished,
)
"""Events that are lines of JSON; what agents say on the way stands in the journal."""

CTRL_C_SECONDS = 1.8
"""Time that Ctrl-C leaves for ending; what is in flight then is looked up by the next run."""
SIGTERM_SECONDS = 20.0
"""Time that SIGTERM leaves: longer than the answer to an order may take."""


def run(invocation: Invocation) -> None:
    """Watch over the desk until a signal ends it. Raises Interrupted after Ctrl-C; SIGTERM is the ordinary end."""
    if invocation.run is not None:
        raise UsageError("--run names an existing run, but --watch starts new ones: leave one of them out")
    with _Signals() as signals:
        invocation.begun_desk()
        services = replace(invocation.services(), trigger=RunTrigger.WATCH)
        named = partial(order_name, Source(services.desk, places.desk_journal(services.desk)))
        run_cycle = unless_changed(run_here, ConfigurationChanges(invocation, services.config))
        asyncio.run(_watch(services, run_cycle, _Lines(named), signals))
    if signals.received is signal.SIGINT:
        raise Interrupted("watch ended; finished work is kept")


class _Lines:
    """Prints events and messages, a line each: for a person, or as JSON. A reader that goes away ends the watch."""

    def __init__(self, order_name: Callable[[str], str]) -> None:
        self._as_json, self._order_name = as_json(), order_name
        self._state = DeskState()
        self.stop: Callable[[], None] = lambda: None

    def on_event(self, event: Event) -> None:
        """Print an event of a run, or a notice of the watch."""
        if self._as_json:
            if isinstance(event, PRINTED):
                self._print(json.dumps({"schema": SCHEMA, **row_json.event(event)}))
            return
        before = self._state.lines
        self._state = after(self._state, event)
        if self._state.lines is not before:
            self._print(_line_text(self._state.lines[-1]))

    def on_message(self, message: FeedMessage) -> None:
        """Print a message of the feed that a person should see."""
        line = live_line(message, booked=True, name=self._order_name)
        if line is None:
            return
        content = row_json.fields(message, *type(message).__dataclass_fields__)
        document = {"schema": SCHEMA, "type": type(message).__name__, **content}
        self._print(json.dumps(document) if self._as_json else _line_text(line))

    def _print(self, text: str) -> None:
        try:
            click.echo(text)
            sys.stdout.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            self.stop()


def _line_text(line: Line) -> str:
    mark = {"error": "ERROR ", "warning": "! "}.get(line.level, "")
    return f"{line.time:%Y-%m-%d %H:%M:%S}  {mark}{line.text}"


class _Signals:
    """A context in which Ctrl-C and SIGTERM request a stop: `stop` is called at the first. A run that has not ended
    after a while, or at the second Ctrl-C, is left by a thread, since the loop itself may be held up."""

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self.stop: Callable[[], None] = lambda: None
        self._undo = ExitStack()

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._undo.callback(signal.signal, number, signal.signal(number, self._on_signal))
        return self

    def __exit__(self, *error: object) -> None:
        self._undo.close()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        again, self.received = self.received is not None, signal.Signals(number)
        code, patience = (130, CTRL_C_SECONDS) if self.received is signal.SIGINT else (0, SIGTERM_SECONDS)
        timer = threading.Timer(0 if again else patience, _leave, (code,))
        timer.daemon = True
        timer.start()
        self._undo.callback(timer.cancel)
        self.stop()


async def _watch(services: Services, run_cycle: CycleRunner, lines: _Lines, signals: _Signals) -> None:
    """Watch until a stop is requested, or nobody reads any more. Raises what ends a watch."""
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()

    def stop() -> None:
        loop.call_soon_threadsafe(stopped.set)

    signals.stop = lines.stop = stop
    if signals.received is not None:
        return
    watch = DeskWatch(services, lines.on_event, lines.on_message, run_cycle=run_cycle, books=True)
    watching = asyncio.create_task(watch.run())
    end = asyncio.create_task(stopped.wait())
    await asyncio.wait({watching, end}, return_when=asyncio.FIRST_COMPLETED)
    end.cancel()
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching


def _leave(code: int) -> None:
    os.write(2, b"paperdesk: left while something was in flight; the next run looks it up\n")
    os._exit(code)
