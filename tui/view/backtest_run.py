"""A backtest in a process of its own, and its state for the screen: a value that each message of the process changes.

The process is started by spawn, read through a pipe, and stopped by a message or, late, by force. It sends plain
values: events as `engine.messages.events.to_plain` makes them, and four messages of this module's own:
`{"type": "baseline", "name": NAME, "equity": [[ISO session, value], ...]}` for a curve to compare with,
`{"type": "result", "document": DOCUMENT}` with the JSON of `paperdesk backtest --json`,
`{"type": "question", "text": TEXT}` before a run whose models may cost much, and `{"type": "error", "text": TEXT}`. The
app sends `stop`, or `go on` after a question.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

from engine.app.records.own_process import NICENESS, begin_process, leave_terminal
from engine.domain.run import RunOutcome, RunSpec
from engine.errors import PaperdeskError
from engine.messages import events
from engine.messages.commands import Command
from tui.text.plain_text import one_line

if TYPE_CHECKING:
    from engine.messages.events import Event

RUNNING, DONE, STOPPED, FAILED = "running", "done", "stopped", "failed"

Target = Callable[..., None]
"""Called with a RunSpec and a Connection: runs the backtest and sends what happens through the connection; stops soon
after `stop` can be received, or the connection is closed. With `resume=True` it goes on with a run that was stopped. A
function of a module, so that another process can import it."""

STOP, GO_ON = "stop", "go on"
GRACE = 3.0
"""Seconds between the request to stop and the use of force."""


@dataclass(frozen=True, slots=True)
class StartBacktest(Command):
    """Run a backtest in a process of its own."""

    spec: RunSpec


@dataclass(frozen=True, slots=True)
class ResumeBacktest(Command):
    """Go on with a backtest that was stopped or killed, where its journal ends, under the name that it had."""

    run: str
    name: str


@dataclass(frozen=True, slots=True)
class StopBacktest(Command):
    """Stop the running backtest; its results so far are kept."""

    run: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestState:
    """One backtest from its start to its result.

    name: as the screen calls the run.
    spec: what it runs.
    status: RUNNING, DONE, STOPPED or FAILED.
    costs: fills, costs and cash, in words.
    label: the model that decides, introduced.
    part: `warm-up` or `test`.
    session: the session that is being decided, or was settled last.
    done, total: sessions.
    curve: values by session, floats for drawing only; those of the current part.
    baseline_name, baseline: a strategy to compare with, its values by session.
    actions: number of decisions by action.
    trades: number of trades.
    document: the JSON of `paperdesk backtest --json`; None before the end, and of a recorded run until it is read.
    metrics: of a recorded run, by name.
    final: the value at the end of a recorded run, decimal text; None where it came to none.
    error: one line.
    question: before the run, which waits for the answer; empty where there is none.
    seconds: duration so far.
    """

    name: str
    spec: RunSpec
    status: str = RUNNING
    costs: str = ""
    label: str = ""
    part: str = ""
    session: date | None = None
    done: int = 0
    total: int = 0
    curve: tuple[tuple[date, float], ...] = ()
    baseline_name: str = ""
    baseline: Mapping[date, float] = field(default_factory=dict)
    actions: Mapping[str, int] = field(default_factory=dict)
    trades: int = 0
    document: Mapping[str, Any] | None = None
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    final: str | None = None
    error: str = ""
    question: str = ""
    seconds: float = 0.0

    @property
    def running(self) -> bool:
        """True from the beginning to the end."""
        return self.status == RUNNING

    @property
    def fraction(self) -> float:
        """The part of the run that is done, 0 to 1."""
        return min(1.0, self.done / self.total) if self.total else 0.0

    @property
    def seconds_left(self) -> float | None:
        """The rest at the pace so far; None before there is a pace."""
        if self.status != RUNNING or not 0 < self.done <= self.total or self.seconds <= 0:
            return None
        return self.seconds / self.done * (self.total - self.done)


def after_event(state: BacktestState, event: Event) -> BacktestState:
    """The state after an event of the run."""
    change = _CHANGES.get(type(event))
    return state if change is None else change(state, event)


def _session_opened(state: BacktestState, event: events.SessionOpened) -> BacktestState:
    if event.part != state.part:  # cash starts afresh when the test begins
        state = replace(state, part=event.part, curve=(), actions={}, trades=0)
    # The session that opens is being decided: those before it are done.
    return replace(state, session=event.session, done=event.index - 1, total=event.total)


def _decision_made(state: BacktestState, event: events.DecisionMade) -> BacktestState:
    action = event.decision.action.value
    return replace(state, actions={**state.actions, action: state.actions.get(action, 0) + 1})


def _session_settled(state: BacktestState, event: events.SessionSettled) -> BacktestState:
    session, done = event.books.session, min(state.done + 1, max(state.total, 1))
    return replace(state, session=session, curve=(*state.curve, (session, float(event.books.value))), done=done)


def _run_finished(state: BacktestState, event: events.RunFinished) -> BacktestState:
    status = {RunOutcome.FAILED: FAILED, RunOutcome.INTERRUPTED: STOPPED}.get(event.outcome, DONE)
    return replace(
        state,
        status=status,
        error=one_line(event.detail) if status == FAILED else state.error,
        done=state.total if event.outcome is RunOutcome.DONE else state.done,
    )


_CHANGES: Mapping[type[Event], Callable[[BacktestState, Any], BacktestState]] = {
    events.RunStarted: lambda state, event: replace(state, label=one_line(event.label), total=event.sessions),
    events.SessionOpened: _session_opened,
    events.DecisionMade: _decision_made,
    events.OrderFilled: lambda state, event: replace(state, trades=state.trades + 1),
    events.SessionSettled: _session_settled,
    events.RunFinished: _run_finished,
}


def after_message(state: BacktestState, message: Mapping[str, Any]) -> BacktestState:
    """The state after a message of the process. Curve and trades of a result replace what grew."""
    match message["type"]:
        case "baseline":
            values = {date.fromisoformat(day): float(value) for day, value in message["equity"]}
            return replace(state, baseline_name=one_line(message["name"]), baseline=values)
        case "result":
            document = message["document"]
            curve = tuple((date.fromisoformat(p["session"]), float(p["value"])) for p in document.get("equity", ()))
            status = DONE if state.status == RUNNING else state.status
            trades = len(document.get("trades", ()))
            return replace(state, document=document, curve=curve or state.curve, trades=trades, status=status)
        case "question":
            return replace(state, question=message["text"])
        case "error":
            return replace(state, status=FAILED, error=one_line(message["text"]))
        case kind if kind in events.TYPES:
            return after_event(state, events.from_plain(dict(message)))
        case _:
            return state


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
