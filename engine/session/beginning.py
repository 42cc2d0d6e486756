"""The beginning of a run, of a desk or of a backtest: written down, and published."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from engine.domain.market import Symbol
from engine.journal.entries import RunEntry
from engine.journal.writer import JournalWriter
from engine.messages.events import Publish, RunStarted


def begin_run(
    journal: JournalWriter,
    publish: Publish,
    entry: RunEntry,
    *,
    window: tuple[date, date],
    sessions: int,
    steps: Sequence[str],
    symbols: Sequence[Symbol] | None = None,
) -> None:
    """Write down, and publish, that a run over a window of so many sessions has begun or goes on; `steps` are the
    questions that its agents are asked, `symbols` those that are to be decided, where that is a part of the entry's."""
    journal.run_started(entry)
    publish(
        RunStarted(
            run=entry.id,
            time=entry.started,
            kind=entry.kind,
            name=entry.name,
            label=entry.label,
            symbols=entry.symbols if symbols is None else tuple(symbols),
            first=window[0],
            last=window[1],
            sessions=sessions,
            steps=tuple(steps),
        )
    )
