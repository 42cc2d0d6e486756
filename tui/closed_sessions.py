"""The last completed sessions that the desk was read for: with a later one it is read anew."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.ports import Calendar


class ClosedSessions:
    """The last completed session of each calendar that a symbol of the desk trades by."""

    def __init__(self) -> None:
        self._calendars: tuple[Calendar, ...] = ()
        self._sessions: tuple[date, ...] = ()

    def were_read(self, calendars: Iterable[Calendar], now: datetime) -> None:
        """Note those that are completed at `now` (UTC)."""
        self._calendars = tuple(calendars)
        self._sessions = self._completed(now)

    def have_changed(self, now: datetime) -> bool:
        """True, once, where others are completed at `now` (UTC): once, also where their data cannot be read."""
        before, self._sessions = self._sessions, self._completed(now)
        return before != self._sessions

    def are_before(self, session: date | None) -> bool:
        """True for a session that is later than all of them."""
        return session is not None and session > max(self._sessions, default=session)

    def _completed(self, now: datetime) -> tuple[date, ...]:
        return tuple(calendar.last_closed(now) for calendar in self._calendars)
