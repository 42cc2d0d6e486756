"""Approved and vetoed orders, carried out: the run that meant them goes on, through every check of its own."""

from __future__ import annotations

from collections.abc import Sequence

from engine.app.daily_run import run_daily
from engine.app.desk_journal import DeskJournal
from engine.app.intraday_run import run_intraday
from engine.domain.run import RunKind
from engine.execution.controls import approvals, halted, not_sent
from engine.journal.entries import RunEntry
from engine.messages.events import Publish
from engine.services import Services


async def submit_approved(services: Services, publish: Publish = lambda event: None) -> bool:
    """Go on with the runs of the desk's latest session that have orders which were approved or vetoed and not sent:
    reconcile, send what is approved, end what is vetoed or too late; nothing is decided anew. False where there is
    nothing to do, or the desk is halted. Raises as `run_daily` does, TryAgainLater while a run is at work."""
    runs = _answered_runs(services.desk)
    for run in runs:
        if run.kind is RunKind.DAILY:
            await run_daily(services, run.session, publish)
        elif run.session is not None:
            await run_intraday(services, run.session, run.cycle, publish)
    return bool(runs)


def _answered_runs(desk: str) -> Sequence[RunEntry]:
    """Runs of the latest session with waiting orders that were approved or vetoed."""
    with DeskJournal(desk) as journal:
        reader = journal.reader
        latest = None if reader is None else reader.latest_run(RunKind.DAILY)
        if reader is None or latest is None or halted(reader) is not None:
            return ()
        waiting = not_sent(reader)
        answers = approvals(reader, [entry.order.id for entry in waiting])
        answered = {entry.run for entry in waiting if entry.order.id in answers}
        return [run for run in reader.runs() if run.id in answered and run.session == latest.session]
