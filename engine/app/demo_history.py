"""The recorded history of a demo desk: a backtest of the sessions up to the one that the desk begins after.

It is a run of its own, made once; the desk never reads it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from engine import places
from engine.app.demo_time import begins_after
from engine.app.run_pruning import prune_runs
from engine.app.run_spec import default_spec
from engine.domain.run import RunOutcome, RunSpec
from engine.errors import DataError
from engine.journal.reader import JournalReader
from engine.reports.documents.runs import StoredKind, StoredRun
from engine.services import Services

SESSIONS = 60


@dataclass(frozen=True, slots=True)
class DemoHistory:
    """The run, and True where it is there already, from its first session to its last."""

    spec: RunSpec
    made: bool


def demo_history(services: Services) -> DemoHistory | None:
    """The history of a demo desk, what is left of an unfinished one removed. None for every other desk, and while
    another process makes it. Raises ConfigError or DataError where files cannot be removed."""
    last = begins_after(services)
    if last is None:
        return None
    sessions = services.desk_calendar(services.symbols).sessions(last - timedelta(days=2 * SESSIONS), last)
    run = f"demo-history-{last:%Y%m%d}"
    spec = replace(default_spec(services), first=sessions[-SESSIONS], last=last, warm_up_from=None, run=run)
    if _is_done(run):
        return DemoHistory(spec, True)
    left = StoredRun(id=run, kind=StoredKind.BACKTEST, time=services.clock.now(), path=places.run_journal(run))
    return None if prune_runs([left]).at_work else DemoHistory(spec, False)


def _is_done(run: str) -> bool:
    try:
        with JournalReader(places.run_journal(run)) as reader:
            return reader.run(run).outcome is RunOutcome.DONE
    except DataError:
        return False
