"""The real program in a real terminal: tmux on a private socket, what it shows polled from outside."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

TMUX = shutil.which("tmux")
REPO = Path(__file__).resolve().parents[2]


GREYS = {0, 7, 8, 15, 16, 59, 102, 145, 188, *range(231, 256)}
"""Colours of the palette of 256 that are greys."""


CHANGED = "SETTINGS CHANGED"
"""What the shell says after the app where the terminal's settings (stty) are not those of before."""


class Terminal:
    """One tmux session with the app in it."""

    def __init__(
        self,
        home: Path,
        columns: int,
        rows: int,
        before: str = "",
        variables: str = "",
        suspends: bool = False,
        program: str | None = None,
        folder: Path = REPO,
    ) -> None:
        """With `suspends` the shell waits for a line once the app is suspended, and has it go on. `program` is run in
        `folder` in place of the checkout's."""
        assert TMUX is not None
        self._tmux = [TMUX, "-L", f"paperdesk-{uuid.uuid4().hex[:8]}", "-f", os.devnull]
        program = program or f"{sys.executable} -c 'from tui.cli import main; {before}main()'"
        # A shell may export its size; the app has to follow its window all the same.
        # On a loaded machine the answers of a terminal come in pieces, which are keys where the first ends as Escape.
        settings = f"COLUMNS=80 LINES=24 ESCDELAY=500 TERM=tmux-256color LC_ALL=C.UTF-8 {variables}"
        environment = f"env {settings} PAPERDESK_HOME={home}"
        size = ["-x", str(columns), "-y", str(rows)]
        begun = f"{environment} {program}"
        if suspends:
            begun = f"set -m; {begun}; echo SUSPENDED; read line; fg"
        compared = f'before=$(stty -g); {begun}; code=$?; [ "$before" = "$(stty -g)" ] || echo {CHANGED}; '
        self._run("new-session", "-d", *size, "-c", str(folder), f"{compared}echo ENDED $code; sleep 60")
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

    def has_colour(self) -> bool:
        """True where a cell has a colour that is not a grey: equal parts of red, green and blue."""
        painted = self._run("capture-pane", "-p", "-e")
        of_palette = {int(number) for number in re.findall(r"[34]8;5;(\d+)", painted)}
        mixed = re.findall(r"[34]8;2;(\d+);(\d+);(\d+)", painted)
        of_eight = re.search(r"\x1b\[(?:[34]|9|10)[1-6]m", painted)
        return bool(of_palette - GREYS or of_eight) or any(len(set(parts)) > 1 for parts in mixed)

    def has_true_colour(self) -> bool:
        """True where a cell has a colour of 24 bits, be it a grey."""
        return "8;2;" in self._run("capture-pane", "-p", "-e")

    def modes(self) -> str:
        """Alternate screen, cursor and mouse reporting: `0 1 0` as a shell has them."""
        return self._run("display", "-p", "#{alternate_on} #{cursor_flag} #{mouse_any_flag}").strip()

    def program(self) -> int:
        """The process id of the app."""
        shell = self._run("display", "-p", "#{pane_pid}").strip()
        return int(Path(f"/proc/{shell}/task/{shell}/children").read_text().split()[0])

    def until(self, holds: Callable[[str], bool], seconds: float = 600) -> str:
        """Poll until the screen is as wanted; never with a traceback on it, nor with other settings of the terminal."""
        deadline = time.monotonic() + seconds
        while True:
            text = self.text()
            assert "Traceback" not in text and CHANGED not in text, text
            if holds(text):
                return text
            assert time.monotonic() < deadline, text
            time.sleep(0.05)

    def close(self) -> None:
        """Ends the session with everything in it."""
        subprocess.run([*self._tmux, "kill-server"], capture_output=True, timeout=600, check=False)


def daily(home: Path, command: str = "--daily") -> None:
    """A daily run, or `next`, in a process of its own, as cron runs it."""
    environ = {**os.environ, "PAPERDESK_HOME": str(home)}
    program = [sys.executable, "-c", "from tui.cli import main; main()", command]
    subprocess.run(program, cwd=REPO, env=environ, capture_output=True, check=True)
