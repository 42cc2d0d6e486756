"""A driver that writes to the terminal from the screen's own thread, as far as the terminal takes it.

Textual gives what is painted to a thread that writes it. Beside a cycle that thread waits for the interpreter behind
others, 2 to 8 ms in which the answer to a key is painted but not seen.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TextIO

from textual._ansi_sequences import SYNC_END, SYNC_START

if TYPE_CHECKING:
    from textual.driver import Driver


class Output:
    """A terminal that is written to by the screen's thread and, where it is full, by Textual's, which has this in place
    of the file. As long as a text of that thread is not written, all others follow it."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._own = _unblocked(file.fileno())
        self._gathered: list[str] | None = None
        """The texts of a painting whose end has not come."""
        self._given = 0
        """The number of texts that were left to the thread, which has written `_written` and sees to `_done`."""
        self._written = self._done = 0

    # In the screen's thread

    def left_of(self, text: str) -> str | bytes:
        """Write what the terminal takes now, and return what is left. The texts between the marks of a painting are
        written with its end, for with each call another thread may go on first."""
        if text == SYNC_START:
            self._gathered = []
        if self._gathered is not None:
            self._gathered.append(text)
            if text != SYNC_END:
                return ""
            text, self._gathered = "".join(self._gathered), None
        left = self._left_now(text)
        self._given += bool(left)
        return left

    def _left_now(self, text: str) -> str | bytes:
        if self._own is None or self._given != self._done:
            return text
        encoded = text.encode(self._file.encoding, self._file.errors or "strict")
        with suppress(OSError):  # it is full, or gone
            return encoded[os.write(self._own, encoded) :]
        return encoded

    def close(self) -> None:
        """Write nothing more from the screen's thread."""
        if self._own is not None:
            os.close(self._own)
            self._own = None

    # In Textual's thread

    def write(self, data: str | bytes) -> None:
        """Write a text, or the bytes that are left of one."""
        if isinstance(data, bytes):
            self._file.flush()
            self._file.buffer.write(data)
        else:
            self._file.write(data)
        self._written += 1

    def flush(self) -> None:
        """See that all of it is written."""
        self._file.flush()
        self._done = self._written

    def fileno(self) -> int:
        """The file descriptor of the terminal."""
        return self._file.fileno()


def _unblocked(terminal: int) -> int | None:
    """A descriptor of the same terminal that takes what it can and never waits; None where there is none. One of its
    own, for the flag of the inherited one is shared with the shell."""
    with suppress(OSError):
        own = os.open(os.ttyname(terminal), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
        if os.fstat(own).st_rdev == os.fstat(terminal).st_rdev:
            return own
        os.close(own)
    return None


def writing_at_once(driver: type[Driver]) -> type[Driver]:
    """A driver that writes at once; `driver` itself where it writes to no terminal of this system's."""
    if not hasattr(os, "ttyname"):
        return driver
    from textual.drivers.linux_driver import LinuxDriver

    if not issubclass(driver, LinuxDriver):
        return driver

    class WritingAtOnce(driver):  # type: ignore[valid-type, misc]
        _file: Any

        def __init__(self, *args: object, **more: object) -> None:
            super().__init__(*args, **more)
            self._file = Output(self._file)

        def write(self, data: str) -> None:
            if left := self._file.left_of(data):
                super().write(left)

        def close(self) -> None:
            super().close()
            self._file.close()

    return WritingAtOnce
