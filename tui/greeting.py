"""The state that the desk's screens open with, made of its records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from tui.state import Books, DeskState, Held, Signal, after

if TYPE_CHECKING:
    from engine.domain.decision import Decision
    from engine.reports.documents.opening import Opening


def greeting(opening: Opening) -> DeskState:
    """The desk as its journal has it: the last run's events, the books, the latest decision for each symbol."""
    state = DeskState()
    for event in opening.events:
        state = after(state, event)
    signals = {**_signals(opening.decisions), **state.signals}
    return replace(state, running=False, error="", books=_books(opening), signals=signals)


def _books(opening: Opening) -> Books | None:
    last, change, fall = opening.books, opening.change, opening.fall
    if last is None:
        return None
    held = tuple(
        Held(symbol, position.quantity, last.prices.get(symbol), position.average_cost)
        for symbol, position in last.portfolio.positions.items()
    )
    before = None if change is None or change <= -1 else last.value / (1 + change)
    peak = last.value / (1 + fall) if fall > -1 else None
    return Books(session=last.session, value=last.value, cash=last.portfolio.cash, held=held, before=before, peak=peak)


def _signals(decisions: Iterable[Decision]) -> dict[str, Signal]:
    signals: dict[str, Signal] = {}
    for decision in decisions:
        key = decision.key
        cut = "; ".join(f"{c.asked.normalize():f} to {c.allowed.normalize():f} %: {c.reason}" for c in decision.cuts)
        signals[key.symbol] = Signal(key.session, decision.action.value, decision.size, decision.reason, cut)
    return signals
