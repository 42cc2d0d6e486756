"""The bus of the desk's own runs, which tells their events, and this program's commands, apart from those that other
processes have written."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence

from engine.messages.bus import Bus
from engine.messages.events import Event, Noticed
from tui.desk.journal_tail import Given, Growth, Published

NOTICES = 100
"""Notices of this program that are compared with the commands in the journal."""


class OwnEvents(Bus):
    """The bus of this desk's own runs. Most of their events are in the journal too, written before they are published,
    and shown once, when published."""

    def __init__(self) -> None:
        super().__init__()
        self._published: Counter[Event] = Counter()
        """Events that were not looked for in the journal yet."""
        self._expected: Counter[Event] = Counter()
        """Those of them that the look at work will find, if they are written at all."""
        self._notices: deque[str] = deque(maxlen=NOTICES)
        self._given: Sequence[Given] = ()

    def publish(self, event: Event) -> None:
        """Pass an event to all subscriptions; never waits."""
        if isinstance(event, Noticed) and not event.run:
            self._notices.append(event.text)
        if event.durable and event.run:
            self._published[event] += 1
        super().publish(event)

    def expected(self) -> Published:
        """The events that the next look at the journal will find, counted by run and kind."""
        self._expected = Counter(self._published)
        found = Published()
        for event, times in self._expected.items():
            found[event.run, type(event).__name__] += times
        return found

    def foreign(self, growth: Growth) -> Sequence[Event]:
        """The new events of a journal that other processes have written."""
        found = []
        for event in growth.events:
            if self._published[event] > 0:
                self._published[event] -= 1
                self._expected[event] -= 1
            else:
                found.append(event)
        if growth.looked:
            self._published -= +self._expected
            self._expected.clear()
        return found

    def given_elsewhere(self, commands: Sequence[Given]) -> Sequence[Given]:
        """The commands of the last look that other programs have given; `commands` are those of this one. What this
        program carries out is published only after it is written, and so by the next look."""
        found = []
        for one in self._given:
            own = next((text for text in self._notices if text.partition(";")[0] == one.description), None)
            if own is None:
                found.append(one)
            else:
                self._notices.remove(own)
        self._given = commands
        return found
