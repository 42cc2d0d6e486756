"""The first start on the demo desk: the end of its history stands for a moment, then its last sessions play once.

The film stops at a purchase and at a loss, and hands over the same desk; then the tour offers itself. Whoever presses a
key takes over at once.
"""

from __future__ import annotations

import time
from enum import Enum, auto
from threading import Thread
from typing import TYPE_CHECKING

from engine.errors import PaperdeskError
from tui.desk.last_seen import is_first_start
from tui.settings.keys import KEYS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.reports.documents.opening import Stop
    from engine.reports.documents.records import Records
    from tui.desk.bridge import Bridge
    from tui.view.desk_port import Source

STANDS, READS = 3.0, 7.0
"""Seconds before the film begins, and at each of its stops."""
PLAYED = 20
"""Sessions that are played, the last ones."""

_PAST = frozenset(key for one in KEYS if one.group == "Past" for key in one.keys.split(","))
"""Keys of a playback: who presses one goes on alone."""


class _Stage(Enum):
    OPENING = auto()
    AT_END = auto()
    PLAYING = auto()
    READING = auto()
    OVER = auto()


class DemoOpening:
    """The state of the opening; `refresh` is called a few times a second, from the app's thread."""

    def __init__(
        self, bridge: Bridge, show: Callable[[Stop], None], offer: Callable[[bool], None], *, plays: bool
    ) -> None:
        """`show` shows a stop; `offer` offers the tour, with True where nobody has pressed a key. `plays` is False
        where nothing is to move by itself."""
        self._bridge = bridge
        self._show, self._offer = show, offer
        self._plays, self._untouched = plays, True
        self._stage, self._until = _Stage.OPENING, 0.0
        self._stops: list[Stop] | None = None

    def refresh(self) -> None:
        """Go on to the next stage where that is due."""
        now = time.monotonic()
        if self._stage is _Stage.OPENING:
            self._open(now)
        elif self._stage is _Stage.AT_END and not self._untouched:
            self._end()
        elif self._stage is _Stage.AT_END and now >= self._until and self._stops is not None:
            self._begin()
        elif self._stage is _Stage.PLAYING:
            self._watch(now)
        elif self._stage is _Stage.READING and now >= self._until:
            self._play()

    def pressed(self, key: str) -> None:
        """Note that somebody is there: nothing begins by itself any more, and what plays is theirs."""
        self._untouched = False
        if self._stage in (_Stage.PLAYING, _Stage.READING):
            if key not in _PAST:
                self._bridge.to_present()
            self._end()

    def leave(self) -> None:
        """Show nothing by itself any more: somebody looks at something else."""
        self._untouched, self._stage = False, _Stage.OVER

    def _open(self, now: float) -> None:
        opened = self._bridge.present().opened
        if opened is None:
            return
        self._stage = _Stage.OVER
        if not (self._plays and opened.is_demo and is_first_start()):
            return
        self._stage, self._until = _Stage.AT_END, now + STANDS
        Thread(target=self._find_stops, args=(self._bridge.present().sources[0],), daemon=True).start()

    def _find_stops(self, source: Source) -> None:
        """The stops of the film; without a history to play none, and no film."""
        from engine.reports.documents.opening import film_stops

        def found(records: Records) -> Sequence[Stop]:
            closed = () if records.reader is None else records.reader.equity(book=None)
            return film_stops(records.required, closed[-PLAYED].session) if len(closed) >= PLAYED else ()

        try:
            self._stops = list(source.read(found))
        except PaperdeskError:  # what is wrong with the journal is shown where it is read whole
            self._stops = []

    def _begin(self) -> None:
        view = self._bridge.present()
        if not self._stops or view.busy or view.desk.running or self._bridge.playback or self._bridge.to_past():
            self._end()
            return
        assert self._bridge.playback is not None
        self._bridge.playback.step_session(-PLAYED)
        self._play()

    def _play(self) -> None:
        self._stage = _Stage.PLAYING
        if self._bridge.playback is not None:
            self._bridge.playback.play(1)

    def _watch(self, now: float) -> None:
        playback, stops = self._bridge.playback, self._stops or []
        if playback is None:
            self._end()
        elif stops and playback.ended_session == stops[0].session:
            playback.stop()
            self._show(stops.pop(0))
            self._stage, self._until = _Stage.READING, now + READS
        elif playback.arrived and playback.at_end and not playback.place.speed:
            self._bridge.to_present()
            self._end()

    def _end(self) -> None:
        self._stage = _Stage.OVER
        self._offer(self._untouched)
