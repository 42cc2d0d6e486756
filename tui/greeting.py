"""What the journal says of a desk when the app opens: its books, its latest decisions, the last run's words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.domain.run import RunOutcome
from tui.state import Books, DeskState, Held, Signal, after

if TYPE_CHECKING:
    from pathlib import Path

    from engine.domain.order import Fill
    from engine.journal.reader import JournalReader


@dataclass(frozen=True, slots=True)
class Greeting:
    """The desk as the journal has it, and all its trades."""

    desk: DeskState
    fills: tuple[Fill, ...] = ()


def greeting(journal: Path) -> Greeting:
    """Reads a desk's journal; a desk that never ran has nothing to say. Raises what JournalReader raises."""
    if not journal.is_file():
        return Greeting(DeskState())
    from engine.journal.reader import JournalReader

    with JournalReader(journal) as reader:
        latest = next((run for run in reversed(reader.runs()) if run.outcome is not RunOutcome.SKIPPED), None)
        state = DeskState()
        if latest is not None:
            for _, event in reader.events_after(run=latest.id):
                state = after(state, event)
        return Greeting(
            replace(state, running=False, error="", books=books(reader), signals={**_signals(reader), **state.signals}),
            reader.fills(),
        )


def books(reader: JournalReader) -> Books | None:
    """The books at the desk's last close, or None where there was none."""
    from engine.account.time_weighted import brought_in, measured

    points = sorted(reader.equity(), key=lambda point: point.session)
    if not points:
        return None
    last = points[-1]
    held = tuple(
        Held(symbol, position.quantity, last.prices.get(symbol), position.average_cost)
        for symbol, position in last.portfolio.positions.items()
    )
    row = measured(points, brought_in(points, reader.cash_flows(), reader.adoptions()))[-1]
    before = None if row.change is None or row.change <= -1 else last.value / (1 + row.change)
    peak = last.value / (1 + row.fall) if row.fall > -1 else None
    return Books(session=last.session, value=last.value, cash=last.portfolio.cash, held=held, before=before, peak=peak)


def _signals(reader: JournalReader) -> dict[str, Signal]:
    signals: dict[str, Signal] = {}
    for decision in reader.decisions():
        key = decision.key
        cut = "; ".join(f"{c.asked.normalize():f} to {c.allowed.normalize():f} %: {c.reason}" for c in decision.cuts)
        signals[key.symbol] = Signal(key.session, decision.action.value, decision.size, decision.reason, cut)
    return signals
