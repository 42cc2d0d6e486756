"""A key on its way from the terminal to its answer: whatever else would be painted waits for it, for a while."""

from __future__ import annotations

import select
import time
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from textual import events

if TYPE_CHECKING:
    from textual.driver import Driver
    from textual.message import Message

FIRST = 0.05
"""Seconds that others wait for a key at most."""


class _Stage(Enum):
    NONE = "no key"
    READ = "read from the terminal, but its action has not begun"
    BEGUN = "its action has begun, but nothing was painted since"


class KeyFirst:
    """The way of the newest key. Read by the thread that reads the terminal, all else is the screen's."""

    def __init__(self) -> None:
        self.terminal: int | None = None
        """The file descriptor of the terminal; None where there is none to look at."""
        self._stage = _Stage.NONE
        self._read_at = 0.0
        self._since: float | None = None
        """Since when a painting waits."""

    def read(self) -> None:
        """Note a key that was read from the terminal."""
        self._read_at, self._stage = time.monotonic(), _Stage.READ

    def begun(self) -> None:
        """Note that what is painted from now on may be its answer."""
        if self._stage is _Stage.READ:
            self._stage = _Stage.BEGUN

    def painted(self) -> None:
        """Note a painting: the answer of a key whose action has begun."""
        self._since = None
        if self._stage is _Stage.BEGUN:
            self._stage = _Stage.NONE

    @property
    def waits(self) -> bool:
        """True while a key is about to be answered."""
        return self.comes or (self._stage is _Stage.BEGUN and time.monotonic() - self._read_at < FIRST)

    @property
    def comes(self) -> bool:
        """True while a key has come whose action has not begun: nothing that would be painted is its answer. False
        where a painting has waited long enough."""
        now = time.monotonic()
        if not (self._stage is _Stage.READ and now - self._read_at < FIRST) and not self._unread():
            return False
        if self._since is None:
            self._since = now
        return now - self._since < FIRST

    def _unread(self) -> bool:
        return self.terminal is not None and bool(select.select([self.terminal], (), (), 0)[0])


class _ReadsKeys(Protocol):
    """An app that wants to know of a key as soon as it is read."""

    key_first: KeyFirst


def noting_keys(driver: type[Driver]) -> type[Driver]:
    """A driver that tells the app of each key as soon as its thread has read it: the loop hears of it several turns
    later, and may paint for 10 ms before."""

    class NotingKeys(driver):  # type: ignore[valid-type, misc]
        _app: _ReadsKeys

        def process_message(self, message: Message) -> None:
            if isinstance(message, events.Key | events.MouseDown):
                self._app.key_first.read()
            super().process_message(message)

    return NotingKeys
