"""A backtest's state for the screen: a value that each message of its process changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TYPE_CHECKING, Any

from engine.domain.run import RunOutcome, RunSpec
from engine.messages import events
from engine.messages.commands import Command
from tui.text.plain_text import one_line

if TYPE_CHECKING:
    from engine.messages.events import Event

RUNNING, DONE, STOPPED, FAILED = "running", "done", "stopped", "failed"


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
