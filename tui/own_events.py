"""The bus of the desk's own runs, which tells their events, and this program's commands, apart from those that other
processes have written."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence

from engine.messages.bus import Bus
from engine.messages.events import Event, Noticed
from tui.journal_tail import Given, Growth, Published

NOTICES = 100
"""Notices of this program that are compared with the commands in the journal."""


class OwnEvents(Bus):
    """The bus of this desk's own runs. Each of their events is in the journal too once its run is over, and shown once,
    when published."""

    def __init__(self) -> None:
        super().__init__()
        self._published: Counter[Event] = Counter()
        self._notices: deque[str] = deque(maxlen=NOTICES)
        self._given: Sequence[Given] = ()

    def publish(self, event: Event) -> None:
        """Pass an event to all subscriptions; never waits."""
        if isinstance(event, Noticed) and not event.run:
            self._notices.append(event.text)
        if event.durable and event.run:
            self._published[event] += 1
        super().publish(event)

    @property
    def published(self) -> Published:
        """The events that have not been looked for in the journal, counted by run and kind."""
        found = Published()
        for event, times in self._published.items():
            found[event.run, type(event).__name__] += times
        return found

    def foreign(self, growth: Growth) -> Sequence[Event]:
        """The new events of a journal that other processes have written."""
        found = []
        for event in growth.events:
            if self._published[event] > 0:
                self._published[event] -= 1
            else:
                found.append(event)
        left = {event: n for event, n in self._published.items() if (event.run, type(event).__name__) not in growth.own}
        self._published = +Counter(left)
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
