"""What the Backtest screen shows of one run, as a value, and how each word from its process changes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from engine.domain.run import RunOutcome, RunSpec
from engine.messages.events import (
    DecisionMade,
    Event,
    Noticed,
    OrderFilled,
    RunFinished,
    RunStarted,
    SessionOpened,
    SessionSettled,
)
from tui.plain_text import one_line

RUNNING, DONE, STOPPED, FAILED = "running", "done", "stopped", "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestState:
    """One backtest from its start to its result. `curve` and `baseline` are values by session (floats: for drawing
    only); during the warm-up `curve` is the warm-up's, afterwards the test's. `document` is the JSON of
    `paperdesk backtest --json` once it is there; `seconds` is how long it has run."""

    name: str
    spec: RunSpec
    status: str = RUNNING
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
    last_words: str = ""
    document: Mapping[str, Any] | None = None
    error: str = ""
    seconds: float = 0.0

    @property
    def fraction(self) -> float:
        """How much of the run is done, 0 to 1."""
        return min(1.0, self.done / self.total) if self.total else 0.0

    @property
    def seconds_left(self) -> float | None:
        """What is left at the pace so far; None before there is a pace."""
        if self.status != RUNNING or not 0 < self.done <= self.total or self.seconds <= 0:
            return None
        return self.seconds / self.done * (self.total - self.done)


def after_event(state: BacktestState, event: Event) -> BacktestState:
    """The state once an event of the run has happened."""
    match event:
        case RunStarted():
            return replace(state, label=one_line(event.label), total=event.sessions)
        case SessionOpened():
            if event.part != state.part:  # cash starts afresh when the test begins
                state = replace(state, part=event.part, curve=(), actions={}, trades=0)
            # The session that opens is being decided: those before it are done.
            return replace(state, session=event.session, done=event.index - 1, total=event.total)
        case DecisionMade():
            counts = {**state.actions, event.action: state.actions.get(event.action, 0) + 1}
            words = f"{event.session} {event.symbol} {event.action}"
            return replace(state, actions=counts, last_words=words)
        case OrderFilled():
            return replace(state, trades=state.trades + 1)
        case SessionSettled():
            point = (event.session, float(event.value))
            return replace(state, curve=(*state.curve, point), done=min(state.done + 1, max(state.total, 1)))
        case Noticed():
            return replace(state, last_words=one_line(event.text))
        case RunFinished():
            failed = event.outcome is RunOutcome.FAILED
            return replace(
                state,
                status=FAILED if failed else STOPPED if event.outcome is RunOutcome.INTERRUPTED else DONE,
                error=one_line(event.detail) if failed else state.error,
                done=state.total if event.outcome is RunOutcome.DONE else state.done,
            )
        case _:
            return state


def with_baseline(state: BacktestState, name: str, equity: list[list[str]]) -> BacktestState:
    """The state with a curve to stand beside the run's own; `equity` as [ISO session, value] pairs."""
    return replace(state, baseline_name=name, baseline={date.fromisoformat(day): float(value) for day, value in equity})


def with_result(state: BacktestState, document: Mapping[str, Any]) -> BacktestState:
    """The state with the result in hand: its own curve replaces the live one."""
    curve = tuple((date.fromisoformat(p["session"]), float(p["value"])) for p in document.get("equity", ()))
    status = DONE if state.status == RUNNING else state.status
    return replace(state, document=document, curve=curve or state.curve, status=status)
