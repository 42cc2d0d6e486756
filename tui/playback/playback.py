"""A recorded history to step through and to play: a desk's events, or the steps of a backtest's sessions.

What is shown at a place is read from the journal as of its point, in a thread: no screen waits for it.
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left, bisect_right
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime
from functools import partial
from threading import Condition, Thread
from typing import TYPE_CHECKING

from engine.errors import MissingData, PaperdeskError
from engine.market.trading_hours import completed_at
from engine.messages.events import AgentAnswered, RunFinished, StepStarted
from tui.text.plain_text import one_line
from tui.view.desk_changes import after, idle_state, opening_state
from tui.view.desk_port import Source
from tui.view.market_reading import controls_at, exchange_of, last_to_decide, market_view
from tui.view.market_view import MarketView
from tui.view.snapshot import Place, Snapshot
from tui.view.state import DeskState

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.app.open_desk import OpenDesk
    from engine.domain.market import Symbol
    from engine.market.as_of import Market
    from engine.messages.events import Event
    from engine.ports import Calendar
    from engine.reports.documents.control_state import ControlState
    from engine.reports.documents.opening import Opening
    from engine.reports.documents.records import Records
    from engine.reports.documents.timeline import Point
    from tui.view.desk_port import OpenedDesk


SPEEDS = (1, 2, 5, 10, 30, 60)
"""Multiples of the pace at which a record is read."""


class PlaybackSpeed:
    """Play and stop. `speed` is a multiple of the usual steps a second, 0 while it stands; times are seconds of a
    monotonic clock."""

    def __init__(self) -> None:
        self.speed = 0
        self._since = 0.0

    def start(self, now: float, speed: int) -> None:
        """Play from `now`."""
        self.speed, self._since = speed, now

    def stop(self) -> None:
        """Stand still."""
        self.speed = 0

    def change(self, by: int) -> None:
        """Go over to a faster of the speeds, or a slower one."""
        self.speed = SPEEDS[max(0, min(len(SPEEDS) - 1, SPEEDS.index(self.speed) + by))]

    def due(self, now: float, usual: float = 1.0) -> int:
        """Return the steps that are due since they were last counted, with so many `usual` ones in a second; none while
        it stands."""
        rate = self.speed * usual
        steps = int((now - self._since) * rate)
        if steps:
            self._since += steps / rate
        return steps


READ = 2.5
"""Seconds that a session takes at the speed of reading."""


class Playback:
    """One recorded history, its place in it, and the snapshot of that place."""

    def __init__(self, source: Source, services: OpenDesk, opened: OpenedDesk, market: Market | None) -> None:
        """`opened` is what screens know of the desk in its past, `market` the desk's; a backtest's is loaded."""
        self.source = source
        self._services, self._opened = services, opened
        self._market = market if source.run is None else None
        self._symbols: Sequence[Symbol] = tuple(services.symbols)
        self._points: tuple[Point, ...] = ()
        self._ends: Sequence[int] = ()
        """The places at which sessions end."""
        self._wanted = -1
        self._shown: tuple[str, Snapshot] | None = None
        """The text and the snapshot of the last place that could be read."""
        self._reached: int | None = None
        """The last place that was read, or could not be."""
        self._playback_speed = PlaybackSpeed()
        self._closed = False
        self._changed = Condition()
        self.trouble = ""
        """An error to show: of the wanted place, or of the whole history; empty for none."""
        self._note = ""
        """A few words about the place, until the next move."""
        self._early: list[Callable[[], None]] = []
        """Moves that were asked for before the history was read."""
        self._markets: tuple[tuple[date | None, int, int], MarketView] | None = None
        """The last market view, after the session and the numbers of trades and decisions that it was made from."""
        Thread(target=self._work, name="playback", daemon=True).start()

    def close(self) -> None:
        """End the thread; returns at once."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    # From the app's thread

    def snapshot(self) -> Snapshot | None:
        """The place that was reached, as far as it has been read; None before the first."""
        shown = self._shown
        return None if shown is None else replace(shown[1], place=self.place, trouble=self.trouble)

    @property
    def place(self) -> Place:
        """The place that was read last, of which everything is that is shown; at first the one that is wanted."""
        number = self._wanted if self._reached is None else self._reached
        session = self._points[number].session if self._points else None
        text = self.trouble or self._note or (self._shown[0] if self._shown else "reading the journal")
        if self._playback_speed.speed and self.source.run is None and self._points:  # an event is too short to be read
            text = "the agents decide" if self._points[number].running else "the session is over"
        return Place(
            name=self.source.name,
            number=number + 1,
            count=len(self._points),
            session=session,
            text=text,
            speed=self._playback_speed.speed,
        )

    @property
    def arrived(self) -> bool:
        """True where the wanted place has been read, or cannot be."""
        return self._reached == self._wanted

    @property
    def ended_session(self) -> date | None:
        """The session whose end is shown; None at any other place."""
        ends = self.arrived and bool(self._points) and self._points[self._wanted].ends
        return self._points[self._wanted].session if ends else None

    @property
    def at_end(self) -> bool:
        """True at the last point."""
        return bool(self._points) and self._wanted == len(self._points) - 1

    def _waits(self, move: Callable[[], None]) -> bool:
        """Keep a move for the time when the history has been read; False where it has been."""
        with self._changed:
            if not self._points:
                self._early.append(move)
            return not self._points

    def step(self, by: int) -> None:
        """Go by single points, backward where negative; while it plays, go faster or slower."""
        if self._waits(lambda: self.step(by)):
            return
        if self._playback_speed.speed:
            self._playback_speed.change(by)
        else:
            self._go_to(self._wanted + by)

    def step_session(self, by: int) -> None:
        """Go on by ends of sessions, backward where negative."""
        if self._waits(lambda: self.step_session(by)):
            return
        ends = self._ends
        here = bisect_right(ends, self._wanted) - 1 if by > 0 else bisect_left(ends, self._wanted)
        here += by
        self._go_to(0 if here < 0 else ends[here] if here < len(ends) else len(self._points) - 1)

    def jump(self, part: float) -> None:
        """Go to a part of the whole, between 0 and 1."""
        if not self._waits(lambda: self.jump(part)):
            self._go_to(round(part * (len(self._points) - 1)))

    def jump_to(self, wanted: date) -> None:
        """Go to the end of a session; where there is none, to that of the one before, or of the first, which the place
        says."""
        if self._waits(lambda: self.jump_to(wanted)):
            return
        ends = [(session, place) for place in self._ends if (session := self._points[place].session) is not None]
        if not ends:
            self._go_to(0, "no session of this record is complete yet")
            return
        session, place = max((one for one in ends if one[0] <= wanted), default=ends[0])
        which = "the first one" if session > wanted else "the last one" if place == ends[-1][1] else "the previous one"
        self._go_to(place, "" if session == wanted else f"no session on that date; showing {which}")

    def play(self, speed: int | None = None) -> None:
        """Play from here, from the start at the end; where it plays already, stop. A `speed` is set in any case: a
        multiple of that of reading, a session in READ seconds."""
        if self._waits(lambda: self.play(speed)):
            return
        if self._playback_speed.speed and speed is None:
            self._playback_speed.stop()
            return
        if self.at_end:
            self._go_to(0)
        self._playback_speed.start(time.monotonic(), speed or 1)

    def stop(self) -> None:
        """Stand here."""
        self._playback_speed.stop()

    def play_on(self, shown: Place | None) -> None:
        """Go on while it plays, from a place that is shown: what is on the screen is of one place."""
        if shown is None or not self.arrived or shown.number != self.place.number:
            return
        following = bisect_right(self._ends, self._wanted)
        end = self._ends[following] if following < len(self._ends) else len(self._points) - 1
        steps = 1 if self.source.run is not None else end - (self._ends[following - 1] if following else 0)
        if due := self._playback_speed.due(time.monotonic(), steps / READ):
            if self.source.run is not None:
                self.step_session(due)
            else:  # at the speed of reading no end of a session is passed over
                self._go_to(min(self._wanted + due, end) if self._playback_speed.speed == 1 else self._wanted + due)
        if self._playback_speed.speed and self.at_end:
            self._playback_speed.stop()

    def _go_to(self, number: int, note: str = "") -> None:
        self._note = note
        with self._changed:
            self._wanted = max(0, min(len(self._points) - 1, number))
            self._changed.notify()

    # In the playback's thread

    def _work(self) -> None:
        if not self._tried(self._read_history):
            self._reached = self._wanted
            return
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or not self.arrived)
                if self._closed:
                    return
                number = self._wanted
            self._tried(partial(self._read_place, number))
            self._reached = number

    def _tried(self, read: Callable[[], None]) -> bool:
        """Read something; return False where it failed, which is the trouble until something is read."""
        try:
            read()
        except PaperdeskError as error:
            self.trouble = one_line(str(error))
        except Exception as error:  # it belongs on the error bar and not over the screen
            self.trouble = one_line(f"a bug: {type(error).__name__}: {error}")
        else:
            self.trouble = ""
            return True
        return False

    def _read_history(self) -> None:
        from engine.reports.documents.timeline import timeline

        points = self.source.read(timeline)
        if self.source.run is not None:
            if not points:
                raise MissingData(f"{self.source.name} ended before a session of its test was over: it has no history")
            spec = self.source.read(lambda records: records.required.run(self.source.run or "").spec)
            if spec is not None:
                self._symbols = spec.symbols
                self._market = asyncio.run(self._services.run_market(spec))
        with self._changed:
            self._points, self._wanted = points, len(points) - 1
            self._ends = [number for number, point in enumerate(points) if point.ends]
        for move in self._early if points else ():
            move()

    def _read_place(self, number: int) -> None:
        point = self._points[number] if self._points else None
        source = self.source if point is None else replace(self.source, at=point.at)
        session = None if point is None else point.session
        moment = self._moment(session)
        opening, now, controls = source.read(partial(self._documents, session=session, moment=moment))
        desk = opening_state(opening)
        if self.source.run is not None and point is not None and point.ends:
            desk = idle_state(replace(desk, done=True))
        shown = Snapshot(
            desk=replace(desk, running=point is not None and point.running),
            controls=controls,
            market=self._market_at(session, moment, opening),
            opened=self._opened,
            now=now,
            sources=(source,),
        )
        text = event_text(opening.events[-1]) if opening.events else ""
        self._shown = text if point is not None else "nothing has happened yet", shown

    def _calendar(self) -> Calendar | None:
        return None if self._market is None else exchange_of(tuple(self._market.calendars.values()))

    def _moment(self, session: date | None) -> datetime:
        """The moment from which the books of a session are known: once that of every symbol was over."""
        calendar = self._calendar()
        if session is None or calendar is None:
            return self._services.clock.now()

        return completed_at(calendar, self._symbols, session)

    def _documents(
        self, records: Records, *, session: date | None, moment: datetime
    ) -> tuple[Opening, datetime, ControlState]:
        """The records, the time that is shown, and the controls by then: the time of the last event where the session
        was the last one by it, else the `moment` from which its books are known, as of a run that came too late."""
        from engine.reports.documents.opening import opening_of, opening_of_backtest

        if self.source.run is not None and session is not None:
            opening = opening_of_backtest(records, session, moment)
        else:
            opening = opening_of(records)
        mode, calendar, now = self._services.mode, self._calendar(), moment
        if calendar is not None and opening.events:
            last = opening.events[-1].time
            now = last if last_to_decide(calendar, self._symbols, last) == session else moment
        controls = controls_at(records, mode=mode, calendar=calendar, symbols=self._symbols, now=now)
        return opening, now, controls

    def _market_at(self, session: date | None, now: datetime, opening: Opening) -> MarketView | None:
        made_from = session, len(opening.fills), len(opening.decisions)
        if self._market is not None and (self._markets is None or self._markets[0] != made_from):
            self._markets = made_from, market_view(self._market, self._symbols, now, opening.fills, opening.decisions)
        return None if self._markets is None else self._markets[1]


def event_text(event: Event) -> str:
    """An event in a few words, as the log has it; of a step, the agent and the symbol."""
    if isinstance(event, StepStarted):
        return f"{event.symbol} {event.step} begins"
    if isinstance(event, AgentAnswered) and not event.abstained:
        return f"{event.symbol} {event.step} answered"
    with suppress(IndexError):
        return after(DeskState(), event).lines[-1].text
    if isinstance(event, RunFinished):
        return "your order was accepted"
    return "the session's books are closed"
