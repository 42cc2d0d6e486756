"""The bus of the desk's own runs, which tells their events, and this program's commands, apart from those that other
processes have written."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence

from engine.messages.bus import Bus
from engine.messages.events import Event, Noticed
from tui.journal_tail import Given

NOTICES = 100
"""Notices of this program that are compared with the commands in the journal."""


class OwnEvents(Bus):
    """The bus of this desk's own runs. Each of their events is read from the journal too, before it is published or
    after that: a run in a process of its own writes it before it is heard here. It is shown once, when published."""

    def __init__(self) -> None:
        super().__init__()
        self._unread: Counter[Event] = Counter()
        self._held: list[Event] = []
        self._notices: deque[str] = deque(maxlen=NOTICES)
        self._given: Sequence[Given] = ()

    def publish(self, event: Event) -> None:
        """Pass an event to all subscriptions; never waits."""
        if isinstance(event, Noticed) and not event.run:
            self._notices.append(event.text)
        if event in self._held:
            self._held.remove(event)
        elif event.durable and event.run:
            self._unread[event] += 1
        super().publish(event)

    def foreign(self, events: Iterable[Event], *, at_work: bool) -> Sequence[Event]:
        """The events of a journal that other processes have written. What is not published yet is held for as long as
        a run of this desk is `at_work`: no other process runs the desk meanwhile."""
        for event in events:
            if self._unread[event] > 0:
                self._unread[event] -= 1
            else:
                self._held.append(event)
        self._unread = +self._unread
        if at_work:
            return ()
        found, self._held = self._held, []
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
