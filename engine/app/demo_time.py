"""The time of a demo desk: it begins some sessions before the last completed one, and goes on by one session at a time.

The session that it begins after is kept in a file beside its journal, written once, when the app opens a demo desk that
never ran. From then on no session is left out: the app decides the next one when it is asked to, and a headless run
decides every one up to the last completed. A demo desk without the file goes by this machine's clock alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta

from engine import places
from engine.app.desk_journal import DeskJournal
from engine.clock import SyncedClock
from engine.domain.market import Symbol
from engine.domain.run import RunKind, RunOutcome
from engine.errors import DataError, MalformedData
from engine.journal.reader import JournalReader
from engine.market.trading_hours import completed_at, previous_session, session_after, session_to_decide
from engine.messages.commands import CONTROLS
from engine.ports import Calendar, Clock
from engine.services import Services

BEFORE = 10
"""Sessions between the one that a demo desk begins after and the last completed one, that included."""
DECIDED = (RunOutcome.DONE, RunOutcome.WAITING)


def begin(services: Services) -> None:
    """Have a demo desk that never ran begin BEFORE sessions ago. Raises ConfigError or DataError where nothing can be
    written."""
    path = places.desk_beginning(services.desk)
    if not is_demo(services) or path.exists() or places.desk_journal(services.desk).exists():
        return
    calendar = services.desk_calendar(services.symbols)
    last = session_to_decide(calendar, services.symbols, None, services.clock.now())
    after = calendar.sessions(last - timedelta(days=3 * BEFORE), last)[-BEFORE - 1]
    places.write_whole(path, f"{after}\n")


def is_demo(services: Services) -> bool:
    """True for a desk on the simulated market with the demo market's data."""
    return services.broker is None and services.data.folder is None


def begins_after(services: Services) -> date | None:
    """The session that a demo desk begins after; None for every other desk, and for one that never was opened. Raises
    DataError for a file that cannot be read, MalformedData for one that holds no date."""
    path = places.desk_beginning(services.desk)
    if not is_demo(services) or not path.exists():
        return None
    try:
        return date.fromisoformat(path.read_text(encoding="utf-8").strip())
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}): make it readable, or remove it") from error
    except ValueError:
        # To go by the clock in its place would leave sessions out.
        raise MalformedData(
            f"{path} does not say which session the desk {services.desk} begins after: write one, such as 2026-11-20, "
            "or remove it, and the desk goes by this machine's clock"
        ) from None


def last_decided(services: Services, reader: JournalReader | None) -> date | None:
    """The session that the time of a demo desk has come to: the last one that it decided, else the one that it begins
    after. None where `begins_after` is."""
    after = begins_after(services)
    if after is None or reader is None:
        return after
    return max(after, reader.last_session([RunKind.DAILY], DECIDED) or after)


def sessions_ahead(services: Services, reader: JournalReader | None) -> Sequence[date]:
    """The sessions that a demo desk has to decide, up to the last completed one by the clock of the services, in order;
    none for every other desk."""
    decided = last_decided(services, reader)
    if decided is None:
        return ()
    calendar = services.desk_calendar(services.symbols)
    last = session_to_decide(calendar, services.symbols, None, services.clock.now())
    return [session for session in calendar.sessions(decided, max(decided, last)) if session > decided]


def session_clock(services: Services, session: date, reader: JournalReader | None) -> Clock | None:
    """A clock that ticks on from the end of a session, or from the last that was recorded since then; None for a desk
    that has no time of its own. Raises as `begins_after` does, and what JournalReader raises."""
    if begins_after(services) is None:
        return None
    clock = SyncedClock(services.clock)
    clock.sync(_last_recorded(services.desk_calendar(services.symbols), services.symbols, session, reader))
    return clock


def _last_recorded(
    calendar: Calendar, symbols: Sequence[Symbol], session: date, reader: JournalReader | None
) -> datetime:
    """The end of a session, or the last time between it and that of the next one which a run or a command has: an order
    is sent after its approval, and approved after it was given, whichever programs do it."""
    end, until = (completed_at(calendar, symbols, one) for one in (session, session_after(calendar, session)))
    if reader is None:
        return end
    command, runs = reader.last_command(*CONTROLS), (reader.latest_run(), reader.latest_run(RunKind.ORDER))
    times = [run.ended or run.started for run in runs if run is not None]
    times += [] if command is None else [command[0]]
    return max([end, *(time for time in times if end < time < until)])


def next_session(services: Services) -> date | None:
    """The next session that a demo desk has to decide; None where none is over yet, and for every other desk."""
    with DeskJournal(services.desk) as journal:
        return next(iter(sessions_ahead(services, journal.reader)), None)


def desk_time(services: Services) -> datetime:
    """The time of a desk without a broker's clock, UTC: that of a demo desk which has one, else this machine's. Raises
    as `begins_after` does, and what JournalReader raises."""
    return by_desk_time(services).clock.now()


def by_desk_time(services: Services) -> Services:
    """The services by the time of a desk without a broker's clock: a demo desk that has one of its own stands at the
    last session that it decided. Raises as `desk_time` does."""
    return services if begins_after(services) is None else replace(services, clock=DemoTime(services).clock)


class DemoTime:
    """The clock of a demo desk in an open app: it stands at the last session that a run has begun to decide, and ticks
    on from there; once that is the last completed one it is this machine's.

    clock: the desk's.
    """

    def __init__(self, services: Services) -> None:
        """`services` are by this machine's clock."""
        self._services = services
        self._calendar = services.desk_calendar(services.symbols)
        self.clock = SyncedClock(services.clock)
        with DeskJournal(services.desk) as journal:
            self.clock.sync(self._reached(journal.reader))

    def follow(self, reader: JournalReader | None) -> None:
        """Go to the last session that a run has begun to decide, whoever's it is."""
        self._forward(self._reached(reader))

    def go_on(self, reader: JournalReader | None) -> str:
        """Go to the end of the session after the last one that was decided; return the reason why that cannot be, or an
        empty text."""
        ahead = sessions_ahead(self._services, reader)
        if ahead:
            self._forward(self._over(ahead[0]))
        return self._end_of(ahead)

    def at_end(self, reader: JournalReader | None) -> str:
        """The reason why there is no next session yet; an empty text where there is one."""
        return self._end_of(sessions_ahead(self._services, reader))

    def _end_of(self, ahead: Sequence[date]) -> str:
        if ahead:
            return ""
        symbols, now = self._services.symbols, self._services.clock.now()
        following = session_after(self._calendar, session_to_decide(self._calendar, symbols, None, now))
        over = f"{self._over(following):%Y-%m-%d %H:%M} UTC"
        return f"every session so far is decided; the next, {following}, is over at {over}"

    def _reached(self, reader: JournalReader | None) -> datetime:
        ahead = sessions_ahead(self._services, reader)
        if not ahead:
            return self._services.clock.now()
        decided = previous_session(self._calendar, ahead[0])
        # One that was left midway, or decided for some symbols, has its books and events in the journal: the desk was
        # there.
        begun = None if reader is None else reader.last_session([RunKind.DAILY, RunKind.SYMBOL], until=ahead[-1])
        last = begun if begun is not None and begun in ahead else decided
        return _last_recorded(self._calendar, self._services.symbols, last, reader)

    def _over(self, session: date) -> datetime:
        return completed_at(self._calendar, self._services.symbols, session)

    def _forward(self, moment: datetime) -> None:
        if moment > self.clock.now():
            self.clock.sync(moment)
