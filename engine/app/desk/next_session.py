"""The next session of a desk whose clock is moved by hand: the demo desk, or a desk at a sandbox."""

from __future__ import annotations

from datetime import timedelta

from engine.app.desk.context import Finished
from engine.app.desk.demo_history import DECIDED, due_session, is_demo, session_reached
from engine.app.desk.notification import run_and_notify
from engine.app.records.desk_journal import DeskJournal
from engine.domain.run import RunKind
from engine.errors import TryAgainLater, UsageError
from engine.execution.controls import halted, paused
from engine.market.trading_hours import completed_at, session_after, session_to_decide
from engine.messages.events import Publish
from engine.services import Services
from engine.session.context import DeskRunResult

NO_CLOCK_TO_MOVE = "only the demo desk and a desk at the sandbox go on to their next session when asked to: this desk \
goes by the clock of its market"
READY = timedelta(minutes=5)
"""Time from the end of a session until a desk at a sandbox can decide it."""


async def run_next(services: Services, publish: Publish) -> DeskRunResult | Finished:
    """Decide the session that is due; where none is, move the clock on by a session first, but not that of a desk which
    is halted or paused. Raises UsageError for a desk whose clock nobody moves, TryAgainLater where the sandbox does not
    answer, and as `run_daily` does."""
    if not is_demo(services):
        move_broker_on(services)
        return await run_and_notify(services, publish=publish)
    with DeskJournal(services.desk) as journal:
        reader = journal.reader
        session = session_reached(reader)
        if reader is not None and due_session(reader) is None and not (halted(reader) or paused(reader)):
            session = session_after(services.desk_calendar(services.symbols), session)
        return await run_and_notify(services, publish=publish, journal=journal, due=session)


def move_broker_on(services: Services) -> None:
    """Move the clock of a sandbox to the end of its next session, unless it stands at one that the desk has not
    decided, or the desk is halted or paused. Raises as `run_next` does."""
    service = services.broker
    if service is None or not services.goes_by_broker or not service.settings.is_local:
        raise UsageError(NO_CLOCK_TO_MOVE)
    if (now := service.time()) is None:
        raise TryAgainLater("the sandbox does not answer: start it with paperdesk sandbox")
    calendar, symbols = services.desk_calendar(services.symbols), services.symbols
    session = session_to_decide(calendar, symbols, None, now)
    with DeskJournal(services.desk) as journal:
        reader = journal.reader
        if reader is None or halted(reader) or paused(reader):
            return
        if reader.last_session([RunKind.DAILY], DECIDED) == session:
            service.advance(completed_at(calendar, symbols, session_after(calendar, session)) + READY)
