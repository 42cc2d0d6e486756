"""Pictures in a terminal: the way it shows them is asked before the app begins, for afterwards Textual reads whatever
the terminal answers, and waiting for it would hold up every key."""

from __future__ import annotations

import io
import os
import re
import select
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.widget import Widget

ATTRIBUTES = b"\x1b[c"
"""The question about attributes, which every terminal answers: an answer that comes late means nothing to Textual."""
KITTY = b"\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\"
"""The question about kitty's graphics: asked of a terminal that answers at once, for a late answer would be keys."""
SIXEL_ATTRIBUTE = b"4"
WITHIN = 0.05
"""Seconds in which a terminal has to answer: nothing is painted before. One on this machine takes a few thousandths."""
_ATTRIBUTES = re.compile(rb"\x1b\[\?([0-9;]*)c")
_KITTY = b"\x1b_Gi=31;OK"


class Pixels(StrEnum):
    """The way in which a terminal shows a picture; `CELLS`, two colours to a cell, works in every one."""

    SIXEL = "sixel"
    KITTY = "kitty"
    CELLS = "cells"


def can_show() -> bool:
    """True where textual-image is installed."""
    return find_spec("textual_image") is not None


def ask_terminal() -> Pixels:
    """Ask the terminal, which no app has yet; `CELLS` without textual-image, and where no answer comes in time."""
    if sys.platform == "win32" or not can_show():
        return Pixels.CELLS
    import termios
    import tty

    try:
        keys, screen = sys.stdin.fileno(), sys.stderr.fileno()
        before = termios.tcgetattr(keys)
    except (OSError, termios.error):  # no terminal
        return Pixels.CELLS
    try:
        tty.setcbreak(keys, termios.TCSANOW)  # no echo of the answer
        os.write(screen, ATTRIBUTES)
        known = _ATTRIBUTES.search(_answer(keys))
        if known is None:
            return Pixels.CELLS
        if SIXEL_ATTRIBUTE in known[1].split(b";"):
            return Pixels.SIXEL  # also where both are known: not every terminal that says so draws all of kitty's
        os.write(screen, KITTY + ATTRIBUTES)  # the second ends the wait
        return Pixels.KITTY if _KITTY in _answer(keys) else Pixels.CELLS
    finally:
        termios.tcsetattr(keys, termios.TCSANOW, before)


def _answer(keys: int) -> bytes:
    """The bytes that the terminal sends up to its attributes, or has sent where these do not come in time."""
    said, until = b"", time.monotonic() + WITHIN
    while not _ATTRIBUTES.search(said) and (left := until - time.monotonic()) > 0:
        if select.select([keys], [], [], left)[0]:
            said += os.read(keys, 1024)
    return said


def image_widget(path: Path, way: Pixels, *, id: str) -> Widget:
    """A widget that shows an image file as large as there is room. Raises ImportError without textual-image."""
    with _asking_nothing():
        from textual_image import widget
    kinds = {Pixels.SIXEL: widget.SixelImage, Pixels.KITTY: widget.TGPImage, Pixels.CELLS: widget.HalfcellImage}
    shown: Widget = kinds[way](str(path), id=id)
    return shown


@contextmanager
def _asking_nothing() -> Iterator[None]:
    """Import textual-image without the questions that it asks a terminal; it takes the size of a cell from the
    environment then."""
    if size := _cell():
        os.environ["TEXTUAL_CELL_WIDTH"], os.environ["TEXTUAL_CELL_HEIGHT"] = map(str, size)
    before = sys.__stdout__
    sys.__stdout__ = io.StringIO()  # type: ignore[assignment, misc]
    try:
        yield
    finally:
        sys.__stdout__ = before  # type: ignore[misc]


def _cell() -> tuple[int, int] | None:
    """Width and height of a cell in pixels; None where the terminal does not say."""
    if sys.platform == "win32":
        return None
    import fcntl
    import termios

    try:
        size = fcntl.ioctl(sys.stdin.fileno(), termios.TIOCGWINSZ, b"\0" * 8)
    except (OSError, ValueError):  # no terminal
        return None
    rows, columns, width, height = struct.unpack("HHHH", size)
    return (width // columns, height // rows) if rows and columns and width and height else None
