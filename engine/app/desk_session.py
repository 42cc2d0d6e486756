"""The session of a desk's daily run, and the finished run of it where there is one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

from engine import places
from engine.errors import MissingData, UsageError
from engine.journal.reader import JournalReader
from engine.journal.upgrade import older_version
from engine.market.trading_hours import session_to_decide
from engine.ports import Calendar
from engine.services import Services


@dataclass(frozen=True, slots=True)
class Finished:
    """A run of the session was done before: nothing was decided and nothing ordered."""

    run: str
    session: date


def session_to_run(services: Services, asked: date | None, now: datetime) -> tuple[Calendar, date]:
    """The desk's calendar and the session of a daily run: the one asked for, or the last completed one. Raises
    UsageError for a day that is no completed session, or a desk without symbols."""
    if not services.symbols:
        raise UsageError("the desk has no symbols; set desk.symbols in the configuration")
    calendar = services.desk_calendar(services.symbols)
    return calendar, session_to_decide(calendar, services.symbols, asked, now)


def done_before(services: Services, asked: date | None, now: datetime) -> Finished | None:
    """The finished run of the session, where there was one; None also where an older program wrote the journal, which
    has to be brought up to date first. Raises as `session_to_run` does."""
    _, session = session_to_run(services, asked, now)
    if older_version(places.desk_journal(services.desk)) is not None:
        return None
    done = _finished_run(places.desk_journal(services.desk), session)
    return None if done is None else Finished(done, session)


def _finished_run(journal: Path, session: date) -> str | None:
    """The run of a session that was done before. A journal with nothing in it is that of a first run that was killed
    before its first row; an empty file never was one, and is left for a person to see."""
    if not journal.exists():
        return None
    try:
        with JournalReader(journal) as reader:
            return reader.finished_run(session)
    except MissingData:
        if journal.stat().st_size == 0:
            raise
        return None
