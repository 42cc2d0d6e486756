"""How long a person waits: `--help`, a look at the desk, a finished daily run, the app's first paint, an arena in it.

Each is a fresh process, the median of several. First paint is the time from the start of the process to the first
frame on a terminal of 120 x 40 that shows the watchlist's frame; an arena's is from the key to its last day. Beside it
stands, measured in turns, that of a Textual app of one word: what Python and Textual take on this machine now. No heavy
library is imported before the first paint: the app that says so notes when it imports what.
Run as `python -m tests.bench.bench_startup`.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import perf_counter

from tests.bench.app_in_terminal import configured

REPO = Path(__file__).resolve().parent.parent.parent
ENTRY = [sys.executable, "-c", "from tui.cli import main; main()"]
REPEATS = 7
HEAVY = ("lancedb", "pyarrow", "pandas", "matplotlib", "openai", "anthropic", "optuna", "numpy", "plotext", "pydantic")
NOTING = """
import sys, time
noted = open(sys.argv.pop(1), "w", buffering=1)
sys.addaudithook(lambda event, values: event == "import" and noted.write(f"{time.perf_counter()} {values[0]}\\n"))
from tui.cli import main
main()
"""
"""The entry that notes imports, by the clock that all processes share."""
SMALLEST = """
import tui
from textual.app import App
from textual.widgets import Static

class Smallest(App):
    def compose(self):
        yield Static("Watchlist")

Smallest().run()
"""
"""The peer: the least that paints, at the same number of frames a second."""


def process(home: str, *arguments: str) -> float:
    """Seconds of a whole process."""
    began = perf_counter()
    subprocess.run([*ENTRY, *arguments], cwd=REPO, env=_environment(home), check=True, capture_output=True)
    return perf_counter() - began


def first_paint(home: str, sign: bytes = b"Watchlist") -> float:
    """Seconds until the app has drawn its first frame."""
    return paints(home, (b"", sign))[0]


def changed(home: str) -> str:
    """The home, with a configuration that was not checked yet."""
    file = Path(home) / "config.toml"
    file.write_text(f'[desk]\ncash = "{100_000 + file.stat().st_mtime_ns % 1000}"\n')
    return home


def beside_smallest(home: str) -> tuple[float, float]:
    """Median seconds of the peer's first paint, and the median of how many times as long the app takes, in turns."""
    peers, times = [], []
    for _ in range(REPEATS):
        peers.append(paints(home, (b"", b"Watchlist"), entry=[sys.executable, "-c", SMALLEST])[0])
        times.append(first_paint(home) / peers[-1])
    return median(peers), median(times)


def loaded_by_then(home: str) -> list[str]:
    """Heavy libraries that are imported before the first paint."""
    noted = Path(home) / "imports"
    before = perf_counter()
    painted = before + paints(home, (b"", b"Watchlist"), entry=[sys.executable, "-c", NOTING, str(noted)])[0]
    rows = (line.split() for line in noted.read_text().splitlines() if line.count(" ") == 1)
    early = {name.partition(".")[0] for at, name in rows if float(at) < painted}
    return sorted(early & set(HEAVY))


def paints(home: str, *steps: tuple[bytes, bytes], entry: Sequence[str] = ENTRY) -> list[float]:
    """Seconds that each step of the app takes from its key (none for the start) until its sign is drawn."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    begun = perf_counter()
    app = subprocess.Popen(
        entry, cwd=REPO, env=_environment(home), stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    )
    os.close(slave)
    taken = []
    try:
        for key, sign in steps:
            if key:
                begun = perf_counter()
                os.write(master, key)
            _wait_for(master, sign)
            taken.append(perf_counter() - begun)
    finally:
        app.kill()
        app.wait()
        os.close(master)
    return taken


def _wait_for(terminal: int, sign: bytes) -> None:
    seen, deadline = b"", perf_counter() + 20
    while sign not in seen:
        if perf_counter() > deadline:
            raise SystemExit(f"the app did not draw {sign.decode()} within 20 s")
        if select.select([terminal], [], [], 0.5)[0]:
            seen += os.read(terminal, 65536)


def _environment(home: str) -> dict[str, str]:
    """As of a user's shell. Modules are compiled once, as at an installation."""
    own = {"PAPERDESK_HOME": home, "TERM": "xterm-256color", "COLORTERM": "truecolor", "PYTHONDONTWRITEBYTECODE": ""}
    return os.environ | own


def main() -> int:
    """Prints medians; 1 where a heavy library is imported before the first paint."""
    print("\nWaiting (median of fresh processes)")
    with tempfile.TemporaryDirectory() as home:
        configured(Path(home))
        process(home, "--daily")
        process(home, "arena", "--agents", "controls", "--days", "250")
        arena = (b"", b"Watchlist"), (b"8", b"day 250 of 250")
        rows = (
            ("paperdesk --help", lambda: process(home, "--help")),
            ("paperdesk status", lambda: process(home, "status")),
            ("paperdesk --daily, finished", lambda: process(home, "--daily")),
            ("first paint of the app", lambda: first_paint(home)),
            ("  after a change of its settings", lambda: first_paint(changed(home))),
            ("paperdesk arena --help", lambda: process(home, "arena", "--help")),
            ("an arena of 250 days in it", lambda: paints(home, *arena)[1]),
        )
        for name, measure in rows:
            times = [measure() for _ in range(REPEATS)]
            print(f"  {name:30}{median(times):7.3f} s   (best {min(times):.3f})")
        peer, times = beside_smallest(home)
        print(f"  first paint beside that of a Textual app of one word: {times:.2f} times its {peer:.3f} s")
        loaded = sorted({*loaded_by_then(home), *loaded_by_then(changed(home))})
        print(f"  heavy libraries before the first paint: {', '.join(loaded) or 'none'} (of {', '.join(HEAVY)})")
    return 1 if loaded else 0


if __name__ == "__main__":
    sys.exit(main())
