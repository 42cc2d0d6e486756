"""A desk's journal for the length of one command, opened once to read and once to write, and the desk's lock.

A lock that one process holds: the one that trades for a desk, the one that plays a run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Self

from engine.errors import MissingData, TryAgainLater
from engine.journal.database import refuse_remains, refuse_unreadable
from engine.journal.reader import JournalReader
from engine.settings import places

if TYPE_CHECKING:
    from engine.journal.writer import JournalWriter


def use_journal(desk: str, journal: DeskJournal | None) -> AbstractContextManager[DeskJournal]:
    """The journal that a command has opened already, left open; else a desk's own until the block ends."""
    return DeskJournal(desk) if journal is None else nullcontext(journal)


class DeskJournal:
    """A context manager that closes what was opened."""

    def __init__(self, desk: str) -> None:
        """Open nothing yet. Raises ConfigError for a name that no desk can have."""
        self.desk = desk
        self.path = places.desk_journal(desk)
        self._reader: JournalReader | None = None
        self._read_file: tuple[int, int] | None = None
        self._writer: JournalWriter | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._reader is not None:
            self._reader.close()
        self._close_writer()

    @contextmanager
    def locked(self, *, brief: bool = False) -> Iterator[None]:
        """Hold the desk's lock until the block ends; who writes in the block needs it. Raises TryAgainLater where
        another process holds the lock, but for one that does so in `brief`, which is waited for; and as
        `refuse_unreadable` does."""
        with desk_lock(self.desk, brief=brief):
            if self._reader is not None and self._read_file != self._file():
                self._reader.close()  # another process has replaced the file since it was opened
                self._reader = None
            if self._reader is None:
                refuse_unreadable(self.path)
            try:
                yield
            finally:
                self._close_writer()

    @property
    def reader(self) -> JournalReader | None:
        """The journal to read; None before there is one. Raises as `refuse_remains` does, and what JournalReader
        raises."""
        if self._reader is None:
            refuse_remains(self.path)
            if not self.path.exists():
                return None
            try:
                self._reader = JournalReader(self.path)
            except MissingData:
                return None
            self._read_file = self._file()
        return self._reader

    @property
    def writer(self) -> JournalWriter:
        """The journal to write, created where there is none. Raises what JournalWriter raises."""
        if self._writer is None:
            from engine.journal.writer import JournalWriter

            self._writer = JournalWriter(self.path)
        return self._writer

    def _close_writer(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _file(self) -> tuple[int, int] | None:
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino


def desk_lock(desk: str, *, brief: bool = False) -> AbstractContextManager[None]:
    """Hold the desk's lock until the block ends. Raises TryAgainLater at once where another process holds it,
    ConfigError where nothing may be written."""
    return one_process(places.lock_file(desk), f"another run of the desk {desk} is in progress", brief=brief)


BRIEFLY = 10.0
"""Seconds for which a brief holder is waited for."""


@contextmanager
def one_process(path: Path, busy: str, *, brief: bool = False) -> Iterator[None]:
    """Hold the lock of a file until the block ends. Raises TryAgainLater at once where another process holds it; `busy`
    says what that one does. A `brief` holder is done in a moment, and waited for. Raises ConfigError where nothing may
    be written."""
    from filelock import FileLock, Timeout

    lock, short = FileLock(path), FileLock(path.with_suffix(".brief.lock"))
    with ExitStack() as held:
        try:
            places.make_folder(path.parent)
            if brief:
                held.enter_context(short.acquire(timeout=0))
            try:
                held.enter_context(lock.acquire(timeout=0))
            except Timeout:
                if brief:
                    raise
                with short.acquire(timeout=BRIEFLY):  # at once where the holder is not brief, or has gone by now
                    held.enter_context(lock.acquire(timeout=0))
        except Timeout:
            raise TryAgainLater(f"{busy} (lock {path}); try again when it is done") from None
        except OSError as error:
            raise places.unusable(path, error) from error
        yield


def run_lock(run: str) -> AbstractContextManager[None]:
    """Hold a run until the block ends: it is played by one process. Raises TryAgainLater where another one holds it."""
    return one_process(places.run_lock(run), f"the run {run} is being played by another process")
