"""What a desk's run does about the runs before it: those that never came to an end, and those that never took place."""

from __future__ import annotations

from datetime import date, datetime, timedelta

from engine.domain.order import OrderState
from engine.domain.run import RunKind, RunOutcome
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.market.trading_hours import decision_time
from engine.session.context import SessionContext, run_id
from engine.session.inputs import moment_of


def close_abandoned(setting: SessionContext) -> None:
    """Ends earlier runs that were killed and never gone on with: what those of earlier sessions, or runs that failed,
    meant to trade is not traded late. What earlier cycles of the same session meant stands until one decides anew."""
    with JournalReader(setting.journal.path) as reader:
        earlier = [run for run in reader.runs() if run.kind is not RunKind.BACKTEST and _before(run, setting)]
        open_orders = reader.orders(open_only=True)
    abandoned = {run.id for run in earlier if run.session != setting.session}
    for entry in open_orders:
        if entry.run in abandoned and entry.order.state is OrderState.INTENDED:
            expired = entry.order.moved(OrderState.EXPIRED)
            detail = "its run did not come to an end and its session has passed"
            setting.journal.order_moved(expired, setting.wall.now(), detail=detail)
    for run in earlier:
        if run.outcome is None:
            detail = "killed, and not gone on with while it could be"
            setting.journal.run_finished(run.id, RunOutcome.FAILED, setting.wall.now(), detail=detail)


def _before(run: RunEntry, setting: SessionContext) -> bool:
    """Whether a run came before: of the same session those within it have nothing to do with the daily one."""
    if run.session == setting.session:
        return run.kind is RunKind.INTRADAY and setting.number > run.cycle
    return True


def decided_until(setting: SessionContext, session: date) -> datetime:
    """Up to when the cycles that rest on a session have read the news, without the one that is set."""
    with JournalReader(setting.journal.path) as reader:
        for run in reversed(reader.runs(RunKind.INTRADAY)):
            if run.session == session and run.id != setting.run and reader.decisions(run.id):
                inputs = reader.inputs(run.id, run.cycle)
                moment = moment_of(inputs) if inputs else None
                if moment is not None:
                    return moment
    return decision_time(setting.calendar, session)


def skip_missed(setting: SessionContext) -> tuple[date, ...]:
    """Writes down the sessions that passed without a run since the last one."""
    with JournalReader(setting.journal.path) as reader:
        runs = [run for run in reader.runs(RunKind.DAILY) if run.session is not None]
    taken = [run.session for run in runs if run.session is not None and run.outcome is not RunOutcome.SKIPPED]
    if not taken or max(taken) >= setting.session:
        return ()
    missed = setting.calendar.sessions(max(taken) + timedelta(days=1), setting.session - timedelta(days=1))
    written = {run.session for run in runs}
    for session in missed:
        if session in written:
            continue
        identity, now = run_id(setting.desk, session), setting.wall.now()
        entry = RunEntry(
            id=identity,
            kind=RunKind.DAILY,
            name=setting.name,
            started=now,
            label=setting.label,
            spec=None,
            symbols=setting.symbols,
            session=session,
            cycle=1,
        )
        with setting.journal.together():
            setting.journal.run_started(entry)
            setting.journal.run_finished(
                identity, RunOutcome.SKIPPED, now, detail="no run took place while it was the last session"
            )
    return tuple(missed)
