"""What a desk's run does about the runs before it: those that never came to an end, and those that never took place."""

from __future__ import annotations

from datetime import date, timedelta

from engine.desk.setting import KIND, DailySetting, run_id
from engine.domain.order import OrderState
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader


def close_abandoned(setting: DailySetting) -> None:
    """Ends earlier runs that were killed and never gone on with: what they, or runs that failed, meant to trade is
    not traded late."""
    with JournalReader(setting.journal.path) as reader:
        earlier = [run for run in reader.runs(KIND) if run.id != setting.run]
        open_orders = reader.orders(open_only=True)
    abandoned = {run.id for run in earlier}
    for entry in open_orders:
        if entry.run in abandoned and entry.order.state is OrderState.INTENDED:
            expired = entry.order.moved(OrderState.EXPIRED)
            detail = "its run did not come to an end and its session has passed"
            setting.journal.order_moved(expired, setting.wall.now(), detail=detail)
    for run in earlier:
        if run.outcome is None:
            detail = "killed, and not gone on with while it could be"
            setting.journal.run_finished(run.id, "failed", setting.wall.now(), detail=detail)


def skip_missed(setting: DailySetting) -> tuple[date, ...]:
    """Writes down the sessions that passed without a run since the last one."""
    with JournalReader(setting.journal.path) as reader:
        runs = [run for run in reader.runs(KIND) if run.session is not None]
    taken = [run.session for run in runs if run.session is not None and run.outcome != "skipped"]
    if not taken or max(taken) >= setting.session:
        return ()
    missed = setting.calendar.sessions(max(taken) + timedelta(days=1), setting.session - timedelta(days=1))
    written = {run.session for run in runs}
    for session in missed:
        if session in written:
            continue
        identity, now = run_id(setting.desk, session), setting.wall.now()
        entry = RunEntry(identity, KIND, setting.name, now, setting.label, None, setting.symbols, session, 1)
        with setting.journal.together():
            setting.journal.run_started(entry)
            setting.journal.run_finished(
                identity, "skipped", now, detail="no run took place while it was the last session"
            )
    return tuple(missed)
