"""The real program on a terminal of its own for the benches: keys in, what it writes out, each piece with its time."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

REPO = Path(__file__).resolve().parent.parent.parent
ENTRY = ("-c", "from tui.cli import main; main()")
CONTROL = re.compile(rb"\x1b(\[[0-9;?<>=]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-Z\\-_])")
"""Sequences that move the cursor or set a colour: between the characters of one word there may be some."""
WITHIN = 60.0
"""Seconds after which something that was to be drawn never will be."""


class AppInTerminal:
    """The program on a terminal of `columns` x `rows`, started at once.

    written: number of bytes that it has written so far.
    """

    def __init__(
        self,
        home: Path,
        program: Sequence[str] = ENTRY,
        *,
        columns: int = 120,
        rows: int = 40,
        environment: dict[str, str] | None = None,
    ) -> None:
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        around = os.environ | {"PAPERDESK_HOME": str(home), "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        self.began = perf_counter()
        self._process = subprocess.Popen(
            [sys.executable, *program],
            cwd=REPO,
            env=around | (environment or {}),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self._terminal = master
        self.written = 0

    @property
    def pid(self) -> int:
        """The process id of the program."""
        return self._process.pid

    def press(self, keys: str) -> float:
        """Press keys; return the time."""
        at = perf_counter()
        os.write(self._terminal, keys.encode())
        return at

    def until(self, sign: str, within: float = WITHIN) -> float:
        """Read until a sign is drawn; return the time. Raises SystemExit where it never is."""
        seen, deadline = b"", perf_counter() + within
        while True:
            seen += self._read(0.25)
            if sign.encode() in CONTROL.sub(b"", seen):
                return perf_counter()
            if perf_counter() > deadline:
                raise SystemExit(f"the app did not draw {sign!r} within {within:.0f} s")

    def rest(self, seconds: float, ended: Callable[[], bool] = lambda: False) -> int:
        """Read for some seconds, or until something has ended; return the bytes that were written meanwhile."""
        before, deadline = self.written, perf_counter() + seconds
        while (left := deadline - perf_counter()) > 0 and not ended():
            self._read(min(left, 0.25))
        return self.written - before

    def settled(self, seconds: float = 0.15) -> None:
        """Read until nothing is drawn for some time, one second at most."""
        deadline = perf_counter() + 1
        while self._read(seconds) and perf_counter() < deadline:
            pass

    def memory(self) -> float:
        """Resident memory in MB. Linux only."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise SystemExit("the process does not say how much memory it has")

    def processor(self) -> tuple[float, float]:
        """Seconds that the main thread has had a core, and has waited for one. Linux only."""
        worked, waited, _ = Path(f"/proc/{self.pid}/task/{self.pid}/schedstat").read_text().split()
        return int(worked) / 1e9, int(waited) / 1e9

    def ended(self, within: float = WITHIN) -> tuple[float, int]:
        """Wait for the end of the program; return the time and its exit code."""
        deadline = perf_counter() + within
        while (code := self._process.poll()) is None:
            self._read(0.01)
            if perf_counter() > deadline:
                raise SystemExit(f"the app did not end within {within:.0f} s")
        return perf_counter(), code

    def end(self) -> float:
        """Have the program end as the system does it, whatever page is open, and wait for it; return the time."""
        at = perf_counter()
        os.kill(self.pid, signal.SIGTERM)
        self.ended()
        return at

    def close(self) -> None:
        """End the program, whatever it does, with the processes that it started."""
        if self._process.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._terminal)

    def _read(self, seconds: float) -> bytes:
        if not select.select([self._terminal], [], [], seconds)[0]:
            return b""
        try:
            piece = os.read(self._terminal, 1 << 16)
        except OSError:  # Linux says so when the other side is closed
            return b""
        self.written += len(piece)
        return piece


@contextmanager
def app(home: Path, program: Sequence[str] = ENTRY, **how: object) -> Iterator[AppInTerminal]:
    """The program, ended at the end of the block."""
    opened = AppInTerminal(home, program, **how)  # type: ignore[arg-type]
    try:
        yield opened
    finally:
        opened.close()


def configured(home: Path, text: str = "") -> Path:
    """A home whose desk is configured, by default by nothing: the demo's own opening computes and plays for a while."""
    (home / "config.toml").write_text(text)
    return home
