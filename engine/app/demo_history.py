"""The recorded history of a demo desk: a backtest of the sessions before the desk's own first one.

It is a run of its own, made once; the desk never reads it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, timedelta

from engine import places
from engine.app.demo_time import begins_after, is_demo
from engine.app.desk_journal import DeskJournal
from engine.app.run_pruning import prune_runs
from engine.app.run_spec import default_spec
from engine.domain.run import RunKind, RunOutcome, RunSpec
from engine.errors import DataError
from engine.journal.reader import JournalReader
from engine.market.trading_hours import previous_session
from engine.reports.documents.runs import StoredKind, StoredRun
from engine.services import Services

SESSIONS = 60


@dataclass(frozen=True, slots=True)
class DemoHistory:
    """The run, and True where it is there already, from its first session to its last."""

    spec: RunSpec
    made: bool


def demo_history(services: Services) -> DemoHistory | None:
    """The history of a demo desk, what is left of an unfinished one removed. None for every other desk, for one that
    has neither been opened by the app nor run, and while another process makes it. Raises ConfigError or DataError
    where files cannot be removed."""
    last = _last_session(services)
    if last is None:
        return None
    sessions = services.desk_calendar(services.symbols).sessions(last - timedelta(days=2 * SESSIONS), last)
    run = f"demo-history-{last:%Y%m%d}"
    spec = replace(default_spec(services), first=sessions[-SESSIONS], last=last, warm_up_from=None, run=run)
    if _is_done(run):
        return DemoHistory(spec, True)
    left = StoredRun(id=run, kind=StoredKind.BACKTEST, time=services.clock.now(), path=places.run_journal(run))
    return None if prune_runs([left]).at_work else DemoHistory(spec, False)


def _last_session(services: Services) -> date | None:
    """The session that a demo desk begins after: of one that a headless run opened the session before its first run."""
    after = begins_after(services)
    if after is not None or not is_demo(services):
        return after
    with DeskJournal(services.desk) as journal:
        runs = () if journal.reader is None else journal.reader.runs(RunKind.DAILY)
    first = min((run.session for run in runs if run.session is not None), default=None)
    return None if first is None else previous_session(services.desk_calendar(services.symbols), first)


def _is_done(run: str) -> bool:
    try:
        with JournalReader(places.run_journal(run)) as reader:
            return reader.run(run).outcome is RunOutcome.DONE
    except DataError:
        return False
