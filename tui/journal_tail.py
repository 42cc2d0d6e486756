"""A desk's journal followed while any process writes it: the events since the last look."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from engine.errors import PaperdeskError
from tui.plain_text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.journal.reader import JournalReader
    from engine.messages.events import Event

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
    """The changes of a journal since the last look: its new events and commands, `changed` where anything was written,
    and `another` where the file was replaced or has lost events, so that it has to be read whole."""

    events: tuple[Event, ...] = ()
    changed: bool = False
    another: bool = False
    commands: tuple[Given, ...] = ()


class JournalTail:
    """The place up to which a journal was read: `last_event` is the number of the last event."""

    def __init__(self, journal: Path) -> None:
        self.last_event = 0
        self._journal = journal
        self._stamp = self._now()
        self._again = False
        self._last_command: int | None = None
        """The number of the last command that was read; None for a journal that could not be."""
        self._read_number()

    def growth(self) -> Growth:
        """The changes since the last look. A journal whose files stayed as they were is not opened. Raises what
        JournalReader raises."""
        stamp, before = self._now(), self._stamp
        if stamp == before and not self._again:
            return Growth()
        # Once more after a change: two writes may fall into one tick of the file system's clock.
        self._again, self._stamp = stamp != before, stamp
        if not self._journal.is_file():
            return Growth()
        from engine.journal.reader import JournalReader
        from engine.reports.documents.opening import events_of

        with JournalReader(self._journal) as reader:
            if (before and stamp and before[0][0] != stamp[0][0]) or reader.last_event() < self.last_event:
                self._last_command = reader.last_command_number()
                return Growth(another=True)
            found = tuple(events_of(reader, last=self.last_event))
            commands = tuple(self._commands(reader))
        if found:
            self.last_event = found[-1][0]
        return Growth(tuple(event for _, event in found), stamp != before, commands=commands)

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
        found = (path.stat() for path in files if path.is_file())
        return tuple((file.st_ino, file.st_size, file.st_mtime_ns) for file in found)
