"""A backtest in a process of its own: started by spawn, heard through a pipe, stopped by a word or, late, by force.

What comes through the pipe are plain values: events as `engine.messages.events.to_plain` makes them, and three words of
this file's own: `{"type": "baseline", "name": NAME, "equity": [[ISO session, value], ...]}` for a curve to stand
beside, `{"type": "result", "document": DOCUMENT}` with the JSON of `paperdesk backtest --json`, and
`{"type": "error", "text": TEXT}`. The other way goes one word, `stop`.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stderr
from dataclasses import replace
from multiprocessing.connection import Connection
from threading import Lock, Thread
from typing import Any

from engine.domain.run import RunSpec
from engine.errors import PaperdeskError
from engine.messages.events import TYPES, from_plain
from tui.backtest_state import (
    FAILED,
    RUNNING,
    STOPPED,
    BacktestState,
    after_event,
    with_baseline,
    with_result,
)
from tui.plain_text import one_line

Target = Callable[[RunSpec, Connection], None]
"""Runs a backtest and sends what happens through the connection; stops soon after `stop` can be received, or the
connection is closed. A function of a module, so that another process can import it."""

STOP = "stop"
GRACE = 3.0
"""Seconds between the word and the force."""


def stop_wanted(connection: Connection) -> Callable[[], bool]:
    """For the process: whether the app asked to stop, or is gone."""
    said = False

    def wanted() -> bool:
        nonlocal said
        try:
            said = said or (connection.poll() and connection.recv() == STOP)
        except (EOFError, OSError):
            said = True
        return said

    return wanted


class BacktestProcess:
    """One backtest: `state` is the latest of what it said, folded in a thread as it comes; safe to read anywhere."""

    def __init__(self, name: str, spec: RunSpec, target: Target) -> None:
        self.state = BacktestState(name=name, spec=spec)
        self._target = target
        self._began = time.monotonic()
        self._process: multiprocessing.process.BaseProcess | None = None
        self._pipe: Connection | None = None
        self._lock = Lock()
        self._stopping: float | None = None
        self._thread = Thread(target=self._live, name=f"backtest {name}", daemon=True)

    @property
    def running(self) -> bool:
        """Whether anything may still come."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Starts the process from a thread, so that not even its start holds up a screen."""
        self._thread.start()

    def stop(self) -> None:
        """Asks the run to stop; what it did is kept. A process that does not listen is ended after GRACE seconds."""
        with self._lock:
            if self._stopping is None:
                self._stopping = time.monotonic()
            self._say_stop()

    def kill(self) -> None:
        """Ends the process now: for quitting."""
        self.stop()
        process = self._process
        if process is not None and process.is_alive():
            process.join(0.2)
            process.terminate()
            process.join(0.3)
            if process.is_alive():
                process.kill()
        self._thread.join(0.5)

    def wait(self, seconds: float) -> bool:
        """Waits for the end; whether it came."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _say_stop(self) -> None:
        if self._pipe is not None:
            try:
                self._pipe.send(STOP)
            except (OSError, ValueError):  # it has ended by itself
                self._pipe = None

    def _live(self) -> None:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(
            target=_child, args=(self._target, self.state.spec, theirs), name="paperdesk backtest", daemon=True
        )
        try:
            # While the app draws, sys.stderr is a stand-in without a descriptor, which spawn cannot hand on.
            with redirect_stderr(sys.__stderr__):
                process.start()
        except (OSError, ValueError) as error:
            self.state = replace(self.state, status=FAILED, error=f"the backtest cannot be started: {error}")
            return
        theirs.close()
        with self._lock:
            self._process, self._pipe = process, ours
            if self._stopping is not None:
                self._say_stop()
        self._listen(ours, process)
        process.join(GRACE)
        self._settle(process.exitcode)

    def _listen(self, ours: Connection, process: multiprocessing.process.BaseProcess) -> None:
        while True:
            try:
                if ours.poll(0.25):
                    self._hear(ours.recv())
                elif not process.is_alive():
                    return
            except (EOFError, OSError):
                return
            self.state = replace(self.state, seconds=time.monotonic() - self._began)
            if self._stopping is not None and time.monotonic() - self._stopping > GRACE:
                process.terminate()
                return

    def _hear(self, word: dict[str, Any]) -> None:
        match word["type"]:
            case "baseline":
                self.state = with_baseline(self.state, one_line(word["name"]), word["equity"])
            case "result":
                self.state = with_result(self.state, word["document"])
            case "error":
                self.state = replace(self.state, status=FAILED, error=one_line(word["text"]))
            case kind if kind in TYPES:
                self.state = after_event(self.state, from_plain(word))

    def _settle(self, code: int | None) -> None:
        """A process that ended without a word about it was stopped, or died."""
        if self._stopping is not None and self.state.status == RUNNING:
            self.state = replace(self.state, status=STOPPED)
        elif self.state.status == RUNNING:
            error = f"the backtest's process ended without a result (exit code {code}): try again"
            self.state = replace(self.state, status=FAILED, error=error)


def _child(target: Target, spec: RunSpec, connection: Connection) -> None:
    """What runs in the other process. Its output must not reach the terminal that the app draws on, and Ctrl+C is the
    app's to answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    silent = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(silent, descriptor)
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - for the whole process
    try:
        target(spec, connection)
    except (BrokenPipeError, ConnectionResetError):
        pass  # the app is gone, and nobody is left to tell
    except PaperdeskError as error:
        connection.send({"type": "error", "text": str(error)})
    except Exception as error:  # whatever goes wrong there has to be said here
        connection.send({"type": "error", "text": f"a bug: {type(error).__name__}: {error}"})
    finally:
        connection.close()
