"""The way in which a terminal shows pictures: asked once before the app, and never again while Textual reads."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from PIL import Image
from textual.app import App, ComposeResult

from tui import pixels
from tui.pixels import QUESTIONS, Pixels, ask_terminal, image_widget

if sys.platform == "win32":
    pytest.skip("a terminal of Unix is asked", allow_module_level=True)

import pty
import termios

Answers = Callable[[bytes], int]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Answers]:
    """A terminal in the place of this process's own, which answers the questions; gives its file."""
    master, slave = pty.openpty()
    threads: list[threading.Thread] = []

    def answers(text: bytes) -> int:
        # Here, for pytest sets its own between a fixture and its test.
        monkeypatch.setattr(sys, "stdin", os.fdopen(slave, "r", closefd=False))
        monkeypatch.setattr(sys, "stderr", os.fdopen(slave, "w", closefd=False))

        def answer() -> None:
            heard = b""
            with suppress(OSError):  # the other side is closed
                while not heard.endswith(QUESTIONS):
                    heard += os.read(master, 1024)
                os.write(master, text)

        threads.append(threading.Thread(target=answer))
        threads[-1].start()
        return slave

    yield answers
    os.close(slave)
    for thread in threads:
        thread.join()
    os.close(master)


@pytest.mark.parametrize(
    ("said", "way"),
    [
        (b"\x1b[?63;1;2;4;6;9;15;22c", Pixels.SIXEL),
        (b"\x1b_Gi=31;OK\x1b\\\x1b[?62;c", Pixels.KITTY),
        (b"\x1b_Gi=31;OK\x1b\\\x1b[?64;4;6c", Pixels.SIXEL),
        (b"\x1b[?1;2c", Pixels.CELLS),
        (b"\x1b[?64;14;40c", Pixels.CELLS),
        (b"j\x1b[?6c", Pixels.CELLS),
    ],
)
def test_a_terminal_says_how_it_shows_pictures(terminal: Answers, said: bytes, way: Pixels) -> None:
    file = terminal(said)
    before = termios.tcgetattr(file)
    assert ask_terminal() is way
    assert termios.tcgetattr(file) == before


def test_a_terminal_that_does_not_answer_shows_cells(terminal: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pixels, "WITHIN", 0.05)
    file = terminal(b"")
    before = termios.tcgetattr(file)
    assert ask_terminal() is Pixels.CELLS
    assert termios.tcgetattr(file) == before


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
