"""Earlier runs of a desk: those that never came to an end are closed, those that never took place are skipped."""

from __future__ import annotations

from datetime import date, datetime, timedelta

from engine.domain.order import OrderState
from engine.domain.run import RunKind, RunOutcome
from engine.journal.entries import RunEntry
from engine.market.trading_hours import decision_time
from engine.session.desk_context import DeskRun, run_id
from engine.session.inputs import moment_of


def close_abandoned(desk: DeskRun) -> None:
    """End earlier runs that were killed and never gone on with. Orders that they intended for an earlier session are
    not traded late; those of earlier cycles of the same session stay until one decides again."""
    earlier = [
        run for run in desk.reader.runs() if run.kind in (RunKind.DAILY, RunKind.INTRADAY) and _before(run, desk)
    ]
    open_orders = desk.reader.orders(open_only=True)
    abandoned = {run.id for run in earlier if run.session != desk.session}
    for entry in open_orders:
        if entry.run in abandoned and entry.order.state is OrderState.INTENDED:
            expired = entry.order.moved(OrderState.EXPIRED)
            detail = "its run did not come to an end and its session has passed"
            desk.journal.order_moved(expired, desk.clock.now(), detail=detail)
    for run in earlier:
        if run.outcome is None:
            detail = "killed, and not gone on with while it could be"
            desk.journal.run_finished(run.id, RunOutcome.FAILED, desk.clock.now(), detail=detail)


def _before(run: RunEntry, desk: DeskRun) -> bool:
    """True for a run that came before: within the same session only cycles of a lower number did."""
    if run.session == desk.session:
        return run.kind is RunKind.INTRADAY and desk.number > run.cycle
    return True


def decided_until(desk: DeskRun, session: date) -> datetime:
    """The moment up to which other cycles that rest on a session have read the news, UTC."""
    for run in reversed(desk.reader.runs(RunKind.INTRADAY)):
        if run.session == session and run.id != desk.run and desk.reader.decisions(run.id):
            inputs = desk.reader.inputs(run.id, run.cycle)
            moment = moment_of(inputs) if inputs else None
            if moment is not None:
                return moment
    return decision_time(desk.calendar, session)


def skip_missed(desk: DeskRun) -> tuple[date, ...]:
    """Write down the sessions that passed without a run since the last one."""
    runs = [run for run in desk.reader.runs(RunKind.DAILY) if run.session is not None]
    taken = [run.session for run in runs if run.session is not None and run.outcome != RunOutcome.SKIPPED]
    if not taken or max(taken) >= desk.session:
        return ()
    missed = desk.calendar.sessions(max(taken) + timedelta(days=1), desk.session - timedelta(days=1))
    written = {run.session for run in runs}
    for session in missed:
        if session not in written:
            _skip(desk, session)
    return tuple(missed)


def _skip(desk: DeskRun, session: date) -> None:
    identity, now = run_id(desk.desk, session), desk.clock.now()
    entry = RunEntry(
        id=identity,
        kind=RunKind.DAILY,
        name=desk.name,
        started=now,
        label=desk.label,
        spec=None,
        symbols=desk.symbols,
        session=session,
        cycle=1,
    )
    with desk.journal.together():
        desk.journal.run_started(entry)
        desk.journal.run_finished(
            identity, RunOutcome.SKIPPED, now, detail="no run took place while it was the last session"
        )
