"""Output of the screen's own thread to a real terminal: at once, in order, and without waiting for one that is full."""

from __future__ import annotations

import os
import pty
import sys
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from textual._ansi_sequences import SYNC_END, SYNC_START
from textual.drivers._writer_thread import WriterThread
from textual.drivers.headless_driver import HeadlessDriver
from textual.drivers.linux_driver import LinuxDriver

from tui.direct_output import writing_at_once

END = "the end"


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """The two ends of a terminal: a reader's and a program's."""
    reader, program = pty.openpty()
    tty.setraw(program)
    os.set_blocking(reader, False)
    yield reader, program
    os.close(reader)
    os.close(program)


@contextmanager
def driver_of(program: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A driver that is at work on a terminal; its thread has not begun."""
    with os.fdopen(os.dup(program), "w", encoding="utf-8") as file:
        monkeypatch.setattr(sys, "__stderr__", file)
        monkeypatch.setattr(sys, "__stdin__", file)
        driver: Any = writing_at_once(LinuxDriver)(None)  # type: ignore[arg-type]
        driver._writer_thread = WriterThread(driver._file)
        yield driver
        if driver._writer_thread is not None and not driver._writer_thread.is_alive():
            driver._writer_thread = None
        driver.close()


def read_now(reader: int) -> str:
    """What the terminal holds."""
    try:
        return os.read(reader, 1_000_000).decode()
    except BlockingIOError:
        return ""


async def test_a_text_is_on_the_terminal_once_it_was_written(
    terminal: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, program = terminal
    with driver_of(program, monkeypatch) as driver:
        driver.write("rose \u25b2")
        assert read_now(reader) == "rose \u25b2"
        driver.write(SYNC_START)
        driver.write("one ")
        driver.write("two")
        assert read_now(reader) == ""
        driver.write(SYNC_END)
        assert read_now(reader) == f"{SYNC_START}one two{SYNC_END}"


async def test_a_full_terminal_is_not_waited_for_and_gets_all_of_it_in_order(
    terminal: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, program = terminal
    with driver_of(program, monkeypatch) as driver:
        driver._writer_thread.start()
        texts = [f"{number} {chr(0x25B2) * 8000}" for number in range(20)]
        for text in texts:  # half a megabyte, and nobody reads
            driver.write(text)
        driver.write(END)
        os.set_blocking(reader, True)
        got = b""
        while not got.endswith(END.encode()):
            got += os.read(reader, 65536)
        assert got.decode() == "".join(texts) + END
        driver._writer_thread.stop()
        os.set_blocking(reader, False)
        driver._writer_thread = None
        driver.write("after")
        assert read_now(reader) == "after", "the thread has written all, and the screen's own writes again"


async def test_where_there_is_no_terminal_the_thread_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, program = os.pipe()
    with driver_of(program, monkeypatch) as driver:
        driver._writer_thread.start()
        driver.write(END)
        assert os.read(reader, 100).decode() == END
    os.close(reader)
    os.close(program)
    assert writing_at_once(HeadlessDriver) is HeadlessDriver
