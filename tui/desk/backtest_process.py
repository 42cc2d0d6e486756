"""A backtest in a process of its own.

The process is started by spawn, read through a pipe, and stopped by a message or, late, by force. It sends plain
values: events as `engine.messages.events.to_plain` makes them, and four messages that `after_message` reads:
`{"type": "baseline", "name": NAME, "equity": [[ISO session, value], ...]}` for a curve to compare with,
`{"type": "result", "document": DOCUMENT}` with the JSON of `paperdesk backtest --json`,
`{"type": "question", "text": TEXT}` before a run whose models may cost much, and `{"type": "error", "text": TEXT}`. The
app sends `stop`, or `go on` after a question.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from threading import Lock, Thread
from typing import Any

from engine.app.records.own_process import NICENESS, begin_process, leave_terminal
from engine.domain.run import RunSpec
from engine.errors import PaperdeskError
from tui.view.backtest_run import FAILED, RUNNING, STOPPED, BacktestState, after_message

Target = Callable[..., None]
"""Called with a RunSpec and a Connection: runs the backtest and sends what happens through the connection; stops soon
after `stop` can be received, or the connection is closed. With `resume=True` it goes on with a run that was stopped. A
function of a module, so that another process can import it."""

STOP, GO_ON = "stop", "go on"
GRACE = 3.0
"""Seconds between the request to stop and the use of force."""


def stop_wanted(connection: Connection) -> Callable[[], bool]:
    """For the process: a function that is true once the app asked to stop, or is gone."""
    stopped = False

    def wanted() -> bool:
        nonlocal stopped
        try:
            stopped = stopped or (connection.poll() and connection.recv() == STOP)
        except (EOFError, OSError):
            stopped = True
        return stopped

    return wanted


def goes_on(connection: Connection) -> bool:
    """For the process: wait for the answer to its question; False where it is to stop, or the app is gone."""
    try:
        return bool(connection.recv() == GO_ON)
    except (EOFError, OSError):
        return False


class BacktestProcess:
    """One backtest: `state` is folded in a thread as messages come; safe to read anywhere. It begins once the process
    of another one is gone, `after`, whose journal it may go on with."""

    def __init__(
        self, name: str, spec: RunSpec, target: Target, costs: str = "", after: BacktestProcess | None = None
    ) -> None:
        self.state = BacktestState(name=name, spec=spec, costs=costs)
        self._target = target
        self._after = after
        self._began = time.monotonic()
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None
        self._lock = Lock()
        self._stopping: float | None = None
        self._thread = Thread(target=self._serve, name=f"backtest {name}", daemon=True)

    @property
    def running(self) -> bool:
        """True while anything may still come."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Start the process from a thread, so that not even its start holds up a screen."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the run to stop; what it did is kept. A process that does not react is ended after GRACE seconds."""
        with self._lock:
            if self._stopping is None:
                self._stopping = time.monotonic()
            self._send(STOP)

    def go_on(self) -> None:
        """Answer the question of the process with yes."""
        with self._lock:
            self.state = replace(self.state, question="")
            self._send(GO_ON)

    def kill(self) -> None:
        """End the process now: for quitting."""
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
        """Wait for the end; false where it did not come."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _send(self, word: str) -> None:
        if self._pipe is not None:
            try:
                self._pipe.send(word)
            except (OSError, ValueError):  # it has ended by itself
                self._pipe = None

    def _may_begin(self) -> bool:
        """Wait for the process before; false where this one was stopped meanwhile."""
        if self._after is not None:
            self._after.wait(2 * GRACE)
            self._after = None
        return self._stopping is None

    def _serve(self) -> None:
        if not self._may_begin():
            self._change(status=STOPPED)
            return
        try:
            ours, process = begin_process(_main, (self._target, self.state.spec), "backtest", NICENESS)
        except (OSError, ValueError) as error:
            self._change(status=FAILED, error=f"the backtest cannot be started: {error}")
            return
        with self._lock:
            self._process, self._pipe = process, ours
            if self._stopping is not None:
                self._send(STOP)
        self._receive(ours, process)
        process.join(GRACE)
        if self.state.status == RUNNING and self._stopping is not None:
            self._change(status=STOPPED)
        elif self.state.status == RUNNING:
            lost = f"the backtest's process ended without a result (exit code {process.exitcode}): try again"
            self._change(status=FAILED, error=lost)

    def _change(self, **changes: Any) -> None:
        with self._lock:  # `go_on` changes it from another thread
            self.state = replace(self.state, **changes)

    def _receive(self, ours: Connection, process: BaseProcess) -> None:
        while True:
            try:
                if ours.poll(0.25):
                    message = ours.recv()
                    with self._lock:
                        self.state = after_message(self.state, message)
                elif not process.is_alive():
                    return
            except (EOFError, OSError):
                return
            self._change(seconds=time.monotonic() - self._began)
            if self._stopping is not None and time.monotonic() - self._stopping > GRACE:
                process.terminate()
                return


def _main(target: Target, spec: RunSpec, connection: Connection) -> None:
    """The main function of the other process."""
    leave_terminal()
    try:
        target(spec, connection)
    except (BrokenPipeError, ConnectionResetError):
        pass  # the app is gone, and nobody reads
    except PaperdeskError as error:
        connection.send({"type": "error", "text": str(error)})
    except Exception as error:  # whatever goes wrong there has to be reported here
        connection.send({"type": "error", "text": f"a bug: {type(error).__name__}: {error}"})
    finally:
        connection.close()
