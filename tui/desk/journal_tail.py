"""A desk's journal followed while any process writes it: the events since the last look."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from engine.errors import PaperdeskError
from engine.messages.bus import Bus
from engine.messages.events import Event, Noticed
from tui.text.plain_text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from engine.journal.reader import JournalReader

Published = Counter[tuple[str, str]]
"""The number of events that this program has published, by run and kind."""
Stamp = tuple[tuple[int, int, int], ...]
"""Inode, size and time of change of a journal's files."""


class Given(NamedTuple):
    """An operator's command that was carried out: its description; `stops` for a halt or a pause, with its `reason`."""

    description: str
    stops: bool
    reason: str = ""

    @property
    def text(self) -> str:
        """The description with the reason, on one line."""
        return one_line(f"{self.description}: {self.reason}" if self.reason else self.description)


class Growth(NamedTuple):
    """The changes of a journal since the last look.

    events: the new ones, unless this program has published all of them.
    kinds: of all new events, in order.
    looked: True where new events were looked for.
    changed: True where anything was written.
    another: True where the file was replaced or has lost events, so that it has to be read whole.
    commands: those that were carried out.
    """

    events: tuple[Event, ...] = ()
    kinds: tuple[str, ...] = ()
    looked: bool = False
    changed: bool = False
    another: bool = False
    commands: tuple[Given, ...] = ()

    @property
    def booked(self) -> bool:
        """True where something was written that the end of a run does not show: orders since the last end, or what has
        no events, as a booking of another program."""
        ends = [at for at, kind in enumerate(self.kinds, 1) if kind == "RunFinished"]
        since = self.kinds[ends[-1] if ends else 0 :]
        return self.changed and (not self.kinds or "OrderFilled" in since or "OrderMoved" in since)


class JournalTail:
    """The place up to which a journal was read: `last_event` is the number of the last event that it had."""

    def __init__(self, journal: Path) -> None:
        self.last_event = 0
        self._read = 0
        """The number of the last event that was read, or is known from elsewhere."""
        self._left = False
        """True where events were left to be read once no run is at work."""
        self._journal = journal
        self._stamp = self._now()
        self._again = False
        self._last_command: int | None = None
        """The number of the last command that was read; None for a journal that could not be."""
        self._read_number()

    def is_read_to(self, event: int) -> None:
        """Note that the journal was read up to an event."""
        self.last_event = self._read = event
        self._left = False

    def growth(self, published: Published | None = None, at_work: Callable[[], bool] = lambda: False) -> Growth:
        """The changes since the last look. Events of this desk's own runs are `published`, and not read once more;
        while such a run is `at_work` none is read, for no other process runs the desk then. A journal whose files
        stayed as they were is not opened. Raises what JournalReader raises."""
        stamp, before, busy = self._now(), self._stamp, at_work()
        if stamp == before and not self._again and (busy or not self._left):
            return Growth()
        # Once more after a change: two writes may fall into one tick of the file system's clock.
        self._again, self._stamp = stamp != before, stamp
        if not self._journal.is_file():
            return Growth()
        from engine.journal.reader import JournalReader
        from engine.reports.documents.opening import events_of

        with JournalReader(self._journal) as reader:
            last = reader.last_event()
            if (before and stamp and before[0][0] != stamp[0][0]) or last < self.last_event:
                self._last_command = reader.last_command_number()
                return Growth(another=True)
            commands = tuple(self._commands(reader))
            index = reader.event_index(self._read)
            own = Counter((run, kind) for _, run, kind in index) == published
            found = () if busy or own else tuple(events_of(reader, last=self._read))
        self.last_event = (found or index)[-1][0] if index else last
        if busy or at_work():  # also a run that began meanwhile: what it wrote will be published
            self._left = True
            return Growth(commands=commands)
        changed = stamp != before or self._left
        self.is_read_to(self.last_event)
        kinds = tuple(kind for _, _, kind in index)
        return Growth(tuple(event for _, event in found), kinds, looked=True, changed=changed, commands=commands)

    def _commands(self, reader: JournalReader) -> Iterator[Given]:
        from engine.execution.controls import command_words
        from engine.messages.commands import Halt, Pause

        number, self._last_command = self._last_command, reader.last_command_number()
        given = [] if number is None else [command for _, _, command in reader.controls(after=number)]
        for place, words in command_words(reader, given):
            command = given[place]
            yield Given(words, True, command.reason) if isinstance(command, Halt | Pause) else Given(words, False)

    def _read_number(self) -> None:
        if not self._journal.is_file():
            self._last_command = 0
            return
        from engine.journal.reader import JournalReader

        with suppress(PaperdeskError), JournalReader(self._journal) as reader:
            self._last_command = reader.last_command_number()

    def _now(self) -> Stamp:
        files = (self._journal, self._journal.with_name(f"{self._journal.name}-wal"))
        found = []
        for path in files:
            with suppress(FileNotFoundError):  # the log goes with the last that has the journal open
                file = path.stat()
                found.append((file.st_ino, file.st_size, file.st_mtime_ns))
        return tuple(found)


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
