"""The way in which a terminal shows pictures: asked once before the app, and never again while Textual reads."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from PIL import Image
from textual.app import App, ComposeResult

from tui.settings import pixels
from tui.settings.pixels import ATTRIBUTES, KITTY, Pixels, ask_terminal, image_widget

if sys.platform == "win32":
    pytest.skip("a terminal of Unix is asked", allow_module_level=True)

import pty
import termios


class Terminal:
    """A terminal in the place of this process's own, which answers the questions.

    file: it, as the program has it.
    heard: all that was written to it.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self._own, self.file = pty.openpty()
        self.heard = b""
        self._thread: threading.Thread | None = None

    def answers(self, attributes: bytes, kitty: bytes = b"") -> None:
        """Begin to answer; in the test itself, for pytest sets other files between a fixture and its test."""
        self._monkeypatch.setattr(sys, "stdin", os.fdopen(self.file, "r", closefd=False))
        self._monkeypatch.setattr(sys, "stderr", os.fdopen(self.file, "w", closefd=False))
        self._thread = threading.Thread(target=self._answer, args=(attributes, kitty))
        self._thread.start()

    def _answer(self, attributes: bytes, kitty: bytes) -> None:
        with suppress(OSError):  # the other side is closed
            while True:
                self.heard += os.read(self._own, 1024)
                if self.heard.endswith(ATTRIBUTES):
                    os.write(self._own, (kitty if KITTY in self.heard else b"") + attributes)

    def close(self) -> None:
        """End."""
        os.close(self.file)
        if self._thread is not None:
            self._thread.join()
        os.close(self._own)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    monkeypatch.setattr(pixels, "WITHIN", 10.0)  # it answers, however busy the machine is
    found = Terminal(monkeypatch)
    yield found
    found.close()


OK = b"\x1b_Gi=31;OK\x1b\\"


@pytest.mark.parametrize(
    ("attributes", "kitty", "way"),
    [
        (b"\x1b[?63;1;2;4;6;9;15;22c", b"", Pixels.SIXEL),
        (b"\x1b[?62;c", OK, Pixels.KITTY),
        (b"\x1b[?64;4;6c", OK, Pixels.SIXEL),
        (b"\x1b[?1;2c", b"", Pixels.CELLS),
        (b"\x1b[?64;14;40c", b"\x1b_Gi=31;EINVAL\x1b\\", Pixels.CELLS),
        (b"j\x1b[?6c", b"", Pixels.CELLS),
    ],
)
def test_a_terminal_says_how_it_shows_pictures(
    terminal: Terminal, attributes: bytes, kitty: bytes, way: Pixels
) -> None:
    terminal.answers(attributes, kitty)
    before = termios.tcgetattr(terminal.file)
    assert ask_terminal() is way
    assert termios.tcgetattr(terminal.file) == before


def test_a_terminal_that_does_not_answer_at_once_is_not_asked_what_it_would_answer_with_keys(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pixels, "WITHIN", 0.05)
    terminal.answers(b"", OK)
    before = termios.tcgetattr(terminal.file)
    assert ask_terminal() is Pixels.CELLS
    assert termios.tcgetattr(terminal.file) == before
    assert KITTY not in terminal.heard


def test_without_textual_image_no_terminal_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pixels, "can_show", lambda: False)
    monkeypatch.setattr(sys, "stdin", None)
    assert ask_terminal() is Pixels.CELLS


@pytest.mark.parametrize("way", Pixels)
async def test_a_picture_is_mounted_in_every_way(tmp_path: Path, way: Pixels) -> None:
    file = tmp_path / "chart.png"
    Image.new("RGB", (80, 40), "red").save(file)

    class Shows(App[None]):
        def compose(self) -> ComposeResult:
            yield image_widget(file, way, id="pixels")

    app, before = Shows(), sys.__stdout__
    async with app.run_test(size=(40, 20)) as pilot:
        await pilot.pause()
        assert app.query_one("#pixels").region.width > 0
        assert type(app.query_one("#pixels")).__module__.startswith("textual_image.widget")
    assert sys.__stdout__ is before
