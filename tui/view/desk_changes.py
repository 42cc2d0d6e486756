"""The change of the Desk screen's content by each event: `(state, event) -> state`, no screen in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from engine.domain.run import RunKind, RunOutcome
from engine.domain.text import first_few, state_words
from engine.messages import events
from engine.messages.events import AgentAnswered, AgentSaid, DecisionMade, Event, OpinionFormed, RunStarted, StepStarted
from engine.reports import amounts
from tui.text.plain_text import one_line, printable
from tui.view.partial_answer import streamed_text
from tui.view.state import Books, DeskState, Line, Pane, Progress, action_text, with_line

if TYPE_CHECKING:
    from engine.domain.decision import Decision
    from engine.reports.documents.opening import Opening

ANSWER_CHARACTERS = 20_000
"""Characters of one answer that a screen shows."""


def opening_state(opening: Opening) -> DeskState:
    """The desk as its journal has it: the last run's events, the books, the latest decisions on each symbol."""
    state = DeskState()
    for made in opening.decisions:
        state = _with_decision(state, made)
    for event in opening.events:
        state = after(state, event)
    return replace(idle_state(state), error="", books=_opening_books(opening))


def idle_state(state: DeskState) -> DeskState:
    """The state without a run at work: the answers that were on their way wait, as those that were not asked for; where
    the run is done they are left out."""
    rest = Progress.LEFT_OUT if state.done else Progress.WAITING
    panes = {
        symbol: {
            owner: tuple(replace(one, progress=rest) if not one.over else one for one in steps)
            for owner, steps in owners.items()
        }
        for symbol, owners in state.panes.items()
    }
    return replace(state, running=False, at="", panes=panes)


def _opening_books(opening: Opening) -> Books | None:
    last = opening.books
    if last is None:
        return None
    change, since = opening.change, opening.since
    peak = last.value / (1 + opening.fall) if opening.fall > -1 else None
    if since is None:
        before = None if change is None or change <= -1 else last.value / (1 + change)
        return Books(session=last.session, point=last, before=before, peak=peak)
    share = 1 + since.deposits / last.value if last.value > 0 else Decimal(1)
    peak = None if peak is None else max(peak * share, since.books.value)
    before = last.value + since.deposits
    return Books(session=last.session, point=since.books, since=since.books.session, before=before, peak=peak)


def after(state: DeskState, event: Event) -> DeskState:
    """The state after an event. Texts are made safe to show here, once."""
    change = _CHANGES.get(type(event))
    # A run's own time goes on, also where an event is dated to the close that it is about.
    earlier = None if isinstance(event, RunStarted) else state.clock
    state = replace(state, clock=max(event.time, earlier or event.time))
    return state if change is None else change(state, event)


def log_of(events: Iterable[Event]) -> tuple[Line, ...]:
    """The lines of the log that events make, oldest first."""
    state = DeskState()
    for event in events:
        state = after(state, event)
    return state.lines


def _logged(state: DeskState, event: Event, level: str, text: str) -> DeskState:
    """The state with a line at the run's clock: what a cycle decides is dated to its close, which the text names."""
    return with_line(state, Line(state.clock or event.time, level, one_line(text)))


def _because(detail: str) -> str:
    return f": {detail}" if detail else ""


def _run_started(state: DeskState, event: RunStarted) -> DeskState:
    """A run that goes on keeps its answers; another one begins anew."""
    goes_on = event.run == state.run
    kind = {RunKind.INTRADAY: "cycle within the session", RunKind.SYMBOL: "run"}.get(event.kind, f"{event.kind} run")
    alone = " alone" if event.kind is RunKind.SYMBOL else ""
    symbols = first_few(event.symbols, 4) or "no symbol, for all are decided,"
    text = f"{kind} of {symbols}{alone} {'goes on' if goes_on else 'begins'}"
    state = _logged(state, event, "info", text)
    log_from = state.log_from or event.run
    state = replace(
        state, running=True, done=False, symbols=event.symbols, at="", error="", refusal="", log_from=log_from
    )
    if goes_on:
        return state
    return replace(
        state,
        run=event.run,
        steps=event.steps or state.steps,
        session=event.last,
        panes={},
        opinions={},
        cost=Decimal(0),
    )


def _with_pane(state: DeskState, event: StepStarted | AgentSaid | AgentAnswered, **changes: Any) -> DeskState:
    """The state with the pane of an event changed."""
    panes = list(state.steps_of(event.symbol, event.owner))
    place = next((n for n, pane in enumerate(panes) if pane.step == event.step), None)
    if place is None:  # a step that the run did not name comes before the decision
        place = len(panes) - 1
        panes.insert(place, Pane(step=event.step))
    panes[place] = replace(panes[place], **changes)
    if isinstance(event, StepStarted):  # steps before it that never began were left out
        for n, pane in enumerate(panes[:place]):
            if pane.progress is Progress.WAITING:
                panes[n] = replace(pane, progress=Progress.LEFT_OUT)
    owners = {**state.panes.get(event.symbol, {}), event.owner: tuple(panes)}
    return replace(state, panes={**state.panes, event.symbol: owners})


def _step_started(state: DeskState, event: StepStarted) -> DeskState:
    return replace(_with_pane(state, event, progress=Progress.THINKING, text=""), at=event.symbol)


def _agent_said(state: DeskState, event: AgentSaid) -> DeskState:
    own = (pane for pane in state.steps_of(event.symbol, event.owner) if pane.step == event.step)
    pane = next(own, Pane(step=event.step))
    # An answer that was sent back is followed by a second attempt: it begins on an empty pane.
    text = ("" if pane.over else pane.text) + printable(event.text)
    return _with_pane(state, event, progress=Progress.THINKING, text=text[:ANSWER_CHARACTERS])


def _streamed(state: DeskState, event: AgentAnswered) -> str:
    """The part of an answer that has come over so far."""
    own = (pane for pane in state.steps_of(event.symbol, event.owner) if pane.step == event.step)
    return next((pane.text for pane in own if pane.progress is Progress.THINKING), "")


def _agent_answered(state: DeskState, event: AgentAnswered) -> DeskState:
    progress = Progress.ABSTAINED if event.abstained else Progress.ANSWERED
    text = reason = event.text
    if event.abstained:
        reason, _, said = event.text.partition("\n\n")
        said = said or _streamed(state, event)
        text = f"{reason}\n\n{streamed_text(said) or said}" if said else reason
    state = _with_pane(state, event, progress=progress, text=printable(text).strip()[:ANSWER_CHARACTERS], answer=event)
    if event.abstained:
        text = f"{event.symbol} {event.step} abstained{_because(reason.removeprefix('abstained: '))}"
        state = _logged(state, event, "warning", text)
    return replace(state, cost=None if state.cost is None or event.cost is None else state.cost + event.cost)


def _opinion_formed(state: DeskState, event: OpinionFormed) -> DeskState:
    opinion, key = event.opinion, event.opinion.key
    owners = {**state.opinions.get(key.symbol, {}), key.owner: opinion}
    state = replace(state, opinions={**state.opinions, key.symbol: owners})
    return _logged(state, event, "info", f"{key.symbol} {key.owner}: {action_text(opinion)}, {key.session}")


def _decision_made(state: DeskState, event: DecisionMade) -> DeskState:
    made, key = event.decision, event.decision.key
    alone = len(state.panes.get(key.symbol, {})) < 2 or key.symbol in state.opinions
    owner = "" if alone else f" for {key.owner}"
    cut = f" (cut: {made.cut})" if made.cut else ""
    text = f"{key.symbol} {action_text(made)}{owner} on the close of {key.session}{cut}"
    return _with_decision(_logged(state, event, "decision", text), made)


def _with_decision(state: DeskState, made: Decision) -> DeskState:
    """The state with a decision, beside those of other owners in the same session."""
    key = made.key
    earlier = state.decisions.get(key.symbol, {})
    beside = {owner: one for owner, one in earlier.items() if one.key.session == key.session}
    return replace(state, decisions={**state.decisions, key.symbol: {**beside, key.owner: made}})


def _order_moved(state: DeskState, event: events.OrderMoved) -> DeskState:
    order = event.order
    text = f"{order.symbol} {order.side} order {state_words(order.state, event.detail)}"
    return _logged(state, event, "trade", text)


def _order_filled(state: DeskState, event: events.OrderFilled) -> DeskState:
    fill = event.fill
    text = f"{fill.symbol} {fill.side} {amounts.quantity(fill.quantity)} at {amounts.price(fill.price)}"
    return _logged(state, event, "trade", text)


def _session_settled(state: DeskState, event: events.SessionSettled) -> DeskState:
    """The books of a close."""
    old, point = state.books, event.books
    before, peak = (old.before, old.peak) if old else (None, None)
    if old and old.session < point.session:
        earned = point.value - event.deposits
        share = point.value / earned if event.deposits and earned > 0 else Decimal(1)
        before = old.point.value * share if old.since is None else old.before
        peak = None if peak is None else peak * share
    peak = max(point.value, point.value if peak is None else peak)
    return replace(state, books=Books(session=point.session, point=point, before=before, peak=peak))


def _noticed(state: DeskState, event: events.Noticed) -> DeskState:
    state = _logged(state, event, event.level, event.text)
    if event.level != "error":
        return state
    return replace(state, error=one_line(event.text), cycle_failed=isinstance(event, events.CycleFailed))


def _command_ended(state: DeskState, event: events.CommandEnded) -> DeskState:
    state = _logged(state, event, event.level, event.text)
    return replace(state, refusal=one_line(event.text) if event.level == "error" else "")


def _run_finished(state: DeskState, event: events.RunFinished) -> DeskState:
    failed = event.outcome is RunOutcome.FAILED
    if event.run.startswith(f"{RunKind.ORDER}-"):
        return _logged(state, event, "warning", f"order failed{_because(event.detail)}") if event.detail else state
    outcome = "done, its orders wait" if event.outcome is RunOutcome.WAITING else event.outcome
    ended = _logged(state, event, "error" if failed else "info", f"run {outcome}{_because(event.detail)}")
    ended = idle_state(replace(ended, done=event.outcome in (RunOutcome.DONE, RunOutcome.WAITING)))
    return replace(ended, error=one_line(event.detail), cycle_failed=True) if failed else ended


_CHANGES: Mapping[type[Event], Callable[[DeskState, Any], DeskState]] = {
    RunStarted: _run_started,
    events.SessionOpened: lambda state, event: replace(state, session=event.session),
    StepStarted: _step_started,
    AgentSaid: _agent_said,
    AgentAnswered: _agent_answered,
    OpinionFormed: _opinion_formed,
    DecisionMade: _decision_made,
    events.OrderMoved: _order_moved,
    events.OrderFilled: _order_filled,
    events.SessionSettled: _session_settled,
    events.Noticed: _noticed,
    events.CycleFailed: _noticed,
    events.CommandEnded: _command_ended,
    events.RunFinished: _run_finished,
}
