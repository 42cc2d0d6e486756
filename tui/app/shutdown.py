"""The end of an app that cannot end by itself: its terminal may be gone while something still waits to write to it."""

from __future__ import annotations

import os
import select
import sys
from contextlib import suppress
from threading import Timer

WITHIN = 6.0
"""Seconds that the app has to end once it was asked to; its own work is ended within two."""
PLAIN = "\x1b[?1003l\x1b[?1000l\x1b[?1006l\x1b[?2004l\x1b[?1049l\x1b[?25h"
"""Mouse reporting and bracketed paste off, the usual screen and cursor back."""
STDIN = 0
"""The file descriptor of the terminal."""
LEFT = 130
"""Exit code of a process that was ended from outside."""


def terminal_is_gone(terminal: int) -> bool:
    """True once the terminal of a file descriptor was closed. Its signal (SIGHUP) reaches only a process whose
    controlling terminal it is."""
    poll = select.poll()
    poll.register(terminal, 0)
    return any(events & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, events in poll.poll(0))


class Watchdog:
    """Ends the process some seconds after the app was asked to end, unless it has ended by then."""

    def __init__(self, seconds: float = WITHIN) -> None:
        self._timer = Timer(seconds, _end)
        self._timer.daemon = True
        self._on_terminal = os.isatty(STDIN)

    def start(self) -> None:
        """Begin to count; a second call changes nothing."""
        with suppress(RuntimeError):
            self._timer.start()

    def stop(self) -> None:
        """The app has ended. Without its terminal the thread that reads keys may stay, and the process with it: it goes
        on counting then."""
        if self._on_terminal and terminal_is_gone(STDIN):
            self.start()
        else:
            self._timer.cancel()


def _end() -> None:
    with suppress(OSError):
        os.write(sys.stderr.fileno(), PLAIN.encode())
    os._exit(LEFT)
