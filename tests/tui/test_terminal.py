"""The real program in a real terminal: tmux on a private socket, what it shows polled from outside."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

TMUX = shutil.which("tmux")
pytestmark = pytest.mark.skipif(TMUX is None, reason="tmux is not installed")
REPO = Path(__file__).resolve().parents[2]


class Terminal:
    """One tmux session with the app in it."""

    def __init__(self, home: Path, columns: int, rows: int, before: str = "") -> None:
        assert TMUX is not None
        self._tmux = [TMUX, "-L", f"paperdesk-{uuid.uuid4().hex[:8]}", "-f", os.devnull]
        program = f"{sys.executable} -c 'from tui.cli import main; {before}main()'"
        # A shell may export its size; the app has to follow its window all the same.
        environment = f"env COLUMNS=80 LINES=24 TERM=tmux-256color LC_ALL=C.UTF-8 PAPERDESK_HOME={home}"
        size = ["-x", str(columns), "-y", str(rows)]
        self._run("new-session", "-d", *size, "-c", str(REPO), f"{environment} {program}; echo ENDED $?; sleep 60")
        self._run("set", "-g", "status", "off")
        self._run("set", "-g", "window-size", "manual")

    def _run(self, *arguments: str) -> str:
        done = subprocess.run([*self._tmux, *arguments], capture_output=True, text=True, timeout=600, check=True)
        return done.stdout

    def text(self) -> str:
        """What the screen shows."""
        return self._run("capture-pane", "-p")

    def keys(self, *keys: str) -> None:
        """Press keys, by tmux's names."""
        self._run("send-keys", *keys)

    def resize(self, columns: int, rows: int) -> None:
        """Another size."""
        self._run("resize-window", "-x", str(columns), "-y", str(rows))

    def modes(self) -> str:
        """Alternate screen, cursor and mouse reporting: `0 1 0` as a shell has them."""
        return self._run("display", "-p", "#{alternate_on} #{cursor_flag} #{mouse_any_flag}").strip()

    def program(self) -> int:
        """The process id of the app."""
        shell = self._run("display", "-p", "#{pane_pid}").strip()
        return int(Path(f"/proc/{shell}/task/{shell}/children").read_text().split()[0])

    def until(self, holds: Callable[[str], bool], seconds: float = 600) -> str:
        """Polls until the screen is as wanted; never with a traceback on it."""
        deadline = time.monotonic() + seconds
        while True:
            text = self.text()
            assert "Traceback" not in text, text
            if holds(text):
                return text
            assert time.monotonic() < deadline, text
            time.sleep(0.05)

    def close(self) -> None:
        """Ends the session with everything in it."""
        subprocess.run([*self._tmux, "kill-server"], capture_output=True, timeout=600, check=False)


@pytest.fixture
def opened(paperdesk_home: Path) -> Iterator[Callable[..., Terminal]]:
    """Opens the app at a size; closes what was opened."""
    terminals: list[Terminal] = []
    # A desk that is configured, if by nothing: the demo's own opening computes for a while.
    (paperdesk_home / "config.toml").touch()

    def at(columns: int, rows: int, before: str = "") -> Terminal:
        terminals.append(Terminal(paperdesk_home, columns, rows, before))
        return terminals[-1]

    yield at
    for terminal in terminals:
        terminal.close()


@pytest.mark.parametrize(("columns", "rows"), [pytest.param(120, 40, marks=pytest.mark.slow), (80, 24)])
def test_it_opens_and_survives_every_size_down_to_30_by_8(
    opened: Callable[..., Terminal], columns: int, rows: int
) -> None:
    terminal = opened(columns, rows)
    terminal.until(lambda text: "ORVL 1D" in text and "PAPER" in text)
    for size in ((60, 15), (30, 8), (100, 20), (30, 8)):
        terminal.resize(*size)
        terminal.until(lambda text: "PAPER" in text)
        time.sleep(0.2)
    terminal.resize(columns, rows)
    terminal.until(lambda text: "ORVL 1D" in text and "run cycle" in text)


def test_a_cycle_and_a_backtest_run_while_keys_are_answered(opened: Callable[..., Terminal]) -> None:
    terminal = opened(120, 40)
    terminal.until(lambda text: "ORVL 1D" in text)
    terminal.keys("r")
    terminal.until(lambda text: "run done" in text and "100,000.00" in text)
    terminal.keys("7")
    terminal.until(lambda text: "2025-01-02" in text)
    terminal.keys("C-r")
    terminal.until(lambda text: "left" in text)
    terminal.keys("1")
    terminal.until(lambda text: "Watchlist" in text)
    terminal.keys("]")
    terminal.until(lambda text: "BXWD 1D" in text)
    terminal.resize(30, 8)
    terminal.until(lambda text: "PAPER" in text)
    terminal.resize(120, 40)
    terminal.keys("7")
    terminal.until(lambda text: "left" in text)
    terminal.keys("x")
    terminal.until(lambda text: "stopped" in text)
    terminal.keys("5")
    terminal.until(lambda text: "4 decisions" in text)
    terminal.keys("q")
    terminal.until(lambda text: "ENDED 0" in text)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="the process is found in /proc")
@pytest.mark.parametrize(
    "ending", [signal.SIGTERM, *(pytest.param(one, marks=pytest.mark.slow) for one in (signal.SIGHUP, signal.SIGINT))]
)
def test_a_signal_ends_it_and_leaves_the_terminal_as_it_was(
    opened: Callable[..., Terminal], ending: signal.Signals
) -> None:
    terminal = opened(120, 40)
    terminal.until(lambda text: "ORVL 1D" in text)
    assert terminal.modes() == "1 0 1"
    os.kill(terminal.program(), ending)
    terminal.until(lambda text: "ENDED 0" in text)
    assert terminal.modes() == "0 1 0"


def test_a_bug_is_one_line_under_a_terminal_as_it_was(opened: Callable[..., Terminal]) -> None:
    broken = "from tui.screens.frame import FramedScreen; FramedScreen.action_log = lambda self: 1 / 0; "
    terminal = opened(120, 40, broken)
    terminal.until(lambda text: "ORVL 1D" in text)
    terminal.keys("`")
    text = terminal.until(lambda text: "ENDED" in text)
    assert "ENDED 70" in text and "paperdesk: a bug: ZeroDivisionError: division by zero" in text
    assert terminal.modes() == "0 1 0"


def test_an_app_that_cannot_end_is_ended(opened: Callable[..., Terminal]) -> None:
    stuck = (
        "import threading; from textual.drivers._writer_thread import WriterThread; "
        "WriterThread.stop = lambda self: threading.Event().wait(); "
        "from tui.leaving import Watchdog; Watchdog.__init__.__defaults__ = (1.0,); "
    )
    terminal = opened(120, 40, stuck)
    terminal.until(lambda text: "ORVL 1D" in text)
    os.kill(terminal.program(), signal.SIGHUP)
    terminal.until(lambda text: "ENDED 130" in text)
    assert terminal.modes() == "0 1 0"


def daily(home: Path) -> None:
    """`paperdesk --daily` in a process of its own, as cron runs it."""
    command = [sys.executable, "-c", "from tui.cli import main; main()", "--daily"]
    environ = {**os.environ, "PAPERDESK_HOME": str(home)}
    subprocess.run(command, cwd=REPO, env=environ, capture_output=True, check=True)


@pytest.mark.slow
def test_an_open_app_follows_the_daily_run_of_another_process(
    opened: Callable[..., Terminal], paperdesk_home: Path
) -> None:
    terminal = opened(120, 40)
    before = terminal.until(lambda text: "ORVL 1D" in text)
    assert "no cycle yet" in before and "nothing has happened yet" in before
    daily(paperdesk_home)
    terminal.until(lambda text: "run done" in text and "Equity 100,000.00" in text)
    terminal.until(lambda text: "no cycle yet" not in text and "press r" not in text)
    terminal.keys("5")
    terminal.until(lambda text: "4 decisions" in text)
