"""What the Desk screen shows, as a value, and how each event changes it: `(state, event) -> state`, no screen in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum

from engine.domain.run import RunKind, RunOutcome
from engine.messages.events import (
    AgentAnswered,
    AgentSaid,
    DecisionMade,
    Event,
    Noticed,
    OrderFilled,
    OrderMoved,
    RunFinished,
    RunStarted,
    SessionOpened,
    SessionSettled,
    StepStarted,
)
from tui.plain_text import one_line, printable

LINES_KEPT = 400
TEXT_KEPT = 20_000
"""Characters of one answer that are kept for the screen."""


class Progress(StrEnum):
    """How far a step of the cycle is."""

    WAITING = "waiting"
    THINKING = "thinking"
    ANSWERED = "answered"
    ABSTAINED = "abstained"
    LEFT_OUT = "left out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pane:
    """One agent's word on one symbol; cost in USD, None where not known (`asked` tells it from not yet known)."""

    step: str
    progress: Progress = Progress.WAITING
    text: str = ""
    model: str = ""
    cached: bool = False
    input_tokens: int = 0
    output_tokens: int = 0
    cost: Decimal | None = None
    seconds: float = 0.0

    @property
    def over(self) -> bool:
        """Whether nothing more will come."""
        return self.progress in (Progress.ANSWERED, Progress.ABSTAINED, Progress.LEFT_OUT)


@dataclass(frozen=True, slots=True)
class Signal:
    """The latest decision for a symbol, after the limits; `size` in percent of the portfolio."""

    session: date
    action: str
    size: Decimal
    reason: str
    cut: str


@dataclass(frozen=True, slots=True)
class Held:
    """Shares of a symbol at the last close; `cost` is the average price paid, None where not known."""

    symbol: str
    quantity: Decimal
    price: Decimal | None
    cost: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """The desk's books at a close, with the value a session before and the highest one ever, where known: both carried
    over to the money of today, as if what was brought in or taken out since had been there then or not."""

    session: date
    value: Decimal
    cash: Decimal
    held: tuple[Held, ...] = ()
    before: Decimal | None = None
    peak: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the log: level is `info`, `warning`, `error`, `decision` or `trade`."""

    time: datetime
    level: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeskState:
    """Everything that happened on the desk, as far as a screen needs it."""

    run: str = ""
    label: str = ""
    running: bool = False
    outcome: str = ""
    symbols: tuple[str, ...] = ()
    steps: tuple[str, ...] = ("decision",)
    """The questions about each symbol in order, the decision last; one that does not come is shown as left out."""
    session: date | None = None
    at: tuple[str, str] | None = None
    """Symbol and step that began last."""
    panes: Mapping[str, tuple[Pane, ...]] = field(default_factory=dict)
    signals: Mapping[str, Signal] = field(default_factory=dict)
    books: Books | None = None
    lines: tuple[Line, ...] = ()
    error: str = ""
    """The last error of the cycle that was not followed by another start; one line."""
    cost: Decimal = Decimal(0)
    """What the run's models cost so far, in USD, as far as prices are known."""
    tokens: int = 0

    def panes_of(self, symbol: str) -> tuple[Pane, ...]:
        """The symbol's steps in order; before a cycle all of them wait."""
        return self.panes.get(symbol) or tuple(Pane(step=step) for step in self.steps)

    @property
    def decided(self) -> int:
        """How many symbols of the run have heard all their agents."""
        return sum(1 for symbol in self.symbols if self.panes_of(symbol)[-1].over)


def after(state: DeskState, event: Event) -> DeskState:
    """The state once an event has happened. Texts are made safe to show here, once."""
    match event:
        case RunStarted() if event.run == state.run:  # it goes on: what was said in it stands
            goes_on = _logged(state, event, "info", f"{_kind(event)} of {_listed(event.symbols)} goes on")
            return replace(goes_on, running=True, outcome="", symbols=event.symbols, at=None, error="")
        case RunStarted():
            return replace(
                _logged(state, event, "info", f"{_kind(event)} of {_listed(event.symbols)} begins"),
                run=event.run,
                label=one_line(event.label),
                running=True,
                outcome="",
                symbols=event.symbols,
                steps=event.steps or state.steps,
                session=event.last,
                at=None,
                panes={},
                error="",
                cost=Decimal(0),
                tokens=0,
            )
        case SessionOpened():
            return replace(state, session=event.session)
        case StepStarted():
            return replace(_begun(state, event), at=(event.symbol, event.step))
        case AgentSaid():
            return _said(state, event)
        case AgentAnswered():
            return _answered(state, event)
        case DecisionMade():
            return _decided(state, event)
        case OrderMoved():
            words = f"{event.symbol} {event.side} order {event.state}{_because(event.detail)}"
            return _logged(state, event, "trade", words)
        case OrderFilled():
            words = f"{event.symbol} {event.side} {event.quantity.normalize():f} at {event.price:,.2f}"
            return _logged(state, event, "trade", words)
        case SessionSettled():
            return _settled(state, event)
        case Noticed():
            state = _logged(state, event, event.level, event.text)
            return replace(state, error=one_line(event.text)) if event.level == "error" else state
        case RunFinished():
            level = "error" if event.outcome is RunOutcome.FAILED else "info"
            ended = _logged(state, event, level, f"run {event.outcome}{_because(event.detail)}")
            error = one_line(event.detail) if event.outcome is RunOutcome.FAILED else state.error
            return replace(ended, running=False, outcome=event.outcome, at=None, error=error)
        case _:
            return state


def _kind(event: RunStarted) -> str:
    return "cycle within the session" if event.kind is RunKind.INTRADAY else f"{event.kind} run"


def _listed(symbols: tuple[str, ...]) -> str:
    return ", ".join(symbols[:4]) + (f" and {len(symbols) - 4} more" if len(symbols) > 4 else "")


def _because(detail: str) -> str:
    return f": {detail}" if detail else ""


def _logged(state: DeskState, event: Event, level: str, text: str) -> DeskState:
    return with_line(state, Line(event.time, level, one_line(text)))


def with_line(state: DeskState, line: Line) -> DeskState:
    """The state with one more line of the log."""
    return replace(state, lines=(*state.lines[-LINES_KEPT + 1 :], line))


def _changed(state: DeskState, symbol: str, step: str, **changes: object) -> DeskState:
    panes = state.panes_of(symbol)
    place = next((n for n, pane in enumerate(panes) if pane.step == step), None)
    if place is None:  # a step that this screen has never heard of stands where it came
        panes, place = (*panes[:-1], Pane(step=step), panes[-1]), len(panes) - 1
    pane = replace(panes[place], **changes)  # type: ignore[arg-type]
    return replace(state, panes={**state.panes, symbol: (*panes[:place], pane, *panes[place + 1 :])})


def _begun(state: DeskState, event: StepStarted) -> DeskState:
    """The step thinks; steps before it that never began were left out."""
    state = _changed(state, event.symbol, event.step, progress=Progress.THINKING, text="")
    panes = list(state.panes[event.symbol])
    for n, pane in enumerate(panes):
        if pane.step == event.step:
            break
        if pane.progress is Progress.WAITING:
            panes[n] = replace(pane, progress=Progress.LEFT_OUT)
    return replace(state, panes={**state.panes, event.symbol: tuple(panes)})


def _said(state: DeskState, event: AgentSaid) -> DeskState:
    pane = next((p for p in state.panes_of(event.symbol) if p.step == event.step), Pane(step=event.step))
    # An answer that was sent back is followed by a second attempt: it begins on an empty pane.
    text = ("" if pane.over else pane.text) + printable(event.text)
    return _changed(state, event.symbol, event.step, progress=Progress.THINKING, text=text[:TEXT_KEPT])


def _answered(state: DeskState, event: AgentAnswered) -> DeskState:
    state = _changed(
        state,
        event.symbol,
        event.step,
        progress=Progress.ABSTAINED if event.abstained else Progress.ANSWERED,
        text=printable(event.text).strip()[:TEXT_KEPT],
        model=one_line(event.model),
        cached=event.cached,
        input_tokens=event.input_tokens,
        output_tokens=event.output_tokens,
        cost=event.cost,
        seconds=event.seconds,
    )
    if event.abstained:
        words = f"{event.symbol} {event.step} abstained{_because(event.text)}"
        state = _logged(state, event, "warning", words)
    return replace(
        state,
        cost=state.cost + (event.cost or 0),
        tokens=state.tokens + event.input_tokens + event.output_tokens,
    )


def _decided(state: DeskState, event: DecisionMade) -> DeskState:
    signal = Signal(event.session, event.action, event.size, printable(event.reason).strip(), one_line(event.cut))
    size = f" {event.size.normalize():f} %" if event.size else ""
    words = f"{event.symbol} {event.action}{size}{f' (cut: {event.cut})' if event.cut else ''}"
    state = _logged(state, event, "decision", words)
    return replace(state, signals={**state.signals, event.symbol: signal})


def _settled(state: DeskState, event: SessionSettled) -> DeskState:
    """The books of a close; what a position cost is kept from before where the shares have not changed."""
    old = state.books
    costs = {held.symbol: (held.quantity, held.cost) for held in old.held} if old else {}
    held = tuple(
        Held(symbol, quantity, price, costs[symbol][1] if costs.get(symbol, (None,))[0] == quantity else None)
        for symbol, quantity, price in event.positions
    )
    before, peak = (old.before, old.peak) if old else (None, None)
    if old and old.session < event.session:
        earned = event.value - event.brought
        share = event.value / earned if event.brought and earned > 0 else Decimal(1)
        before, peak = old.value * share, None if peak is None else peak * share
    peak = max(event.value, event.value if peak is None else peak)
    return replace(
        state,
        books=Books(session=event.session, value=event.value, cash=event.cash, held=held, before=before, peak=peak),
    )
