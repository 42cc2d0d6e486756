"""How long the open app takes to show what a daily run of another process has done.

The real program in tmux, open on a fresh home while `paperdesk --daily --session` of the day before and then `--daily`
run beside it. Each thing that such a run writes is awaited in the journal and on the screen; from the one to the other
are at most LIMIT seconds. Run as `python -m tests.bench.bench_follow`.
"""

from __future__ import annotations

import os
import re
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

from tests.tui.real_terminal import TMUX, Terminal, daily

LIMIT = 2.0
POLL = 0.02

Sign = tuple[str, Callable[[str], bool]]
"""A question to the journal that has a row once a thing is written, and whether a screen shows it."""


def signs(first: str, second: str) -> tuple[Mapping[str, Sign], Mapping[str, Sign]]:
    """Those of the first run and of the second."""
    orvl, ended = f"WHERE session = '{first}' AND symbol = 'ORVL'", f"run LIKE '%-{first.replace('-', '')}'"
    answered = re.compile("Agents ORVL .*\N{CHECK MARK}")
    of_first: dict[str, Sign] = {
        "an agent's answer": (f"SELECT 1 FROM answers {orvl}", lambda text: answered.search(text) is not None),
        "a decision, in the list": (f"SELECT 1 FROM decisions {orvl}", lambda text: _decided(text, "ORVL")),
        "an order": ("SELECT 1 FROM order_states WHERE state = 'acknowledged'", lambda text: "acknowledged" in text),
        "the books, in the top line": ("SELECT 1 FROM equity", lambda text: "Equity 100,000.00" in text),
        "the end of the run": (
            f"SELECT 1 FROM run_states WHERE {ended} AND outcome = 'done'",
            lambda text: "run done" in text,
        ),
    }
    of_second: dict[str, Sign] = {
        "a fill, as a position": ("SELECT 1 FROM fills", lambda text: f"close of {second}" in text),
        "the next equity": (
            f"SELECT 1 FROM equity WHERE session = '{second}'",
            lambda text: "Equity 100,000.00" not in text,
        ),
    }
    return of_first, of_second


def _decided(text: str, symbol: str) -> bool:
    """True where the list says what was decided about a symbol."""
    row = next((line[:44] for line in text.splitlines() if f" {symbol} " in line[:44] or f"›{symbol} " in line), "")
    return any(action in row for action in ("BUY", "SELL", "HOLD"))


def followed(
    terminal: Terminal, journal: Path, wanted: Mapping[str, Sign], work: Callable[[], None]
) -> dict[str, float]:
    """Seconds from the journal to the screen for everything that is wanted of some work in another process."""
    written, shown = dict[str, float](), dict[str, float]()
    other = threading.Thread(target=work)
    other.start()
    deadline = time.monotonic() + 120
    while len(shown) < len(wanted) and time.monotonic() < deadline:
        for name, (question, _) in wanted.items():
            if name not in written and _answered(journal, question):
                written[name] = time.monotonic()
        text, now = terminal.text(), time.monotonic()
        for name in written:
            if name not in shown and wanted[name][1](text):
                shown[name] = now
        time.sleep(POLL)
    other.join()
    if missing := wanted.keys() - shown.keys():
        raise SystemExit(f"never shown: {', '.join(missing)}\n{terminal.text()}")
    return {name: shown[name] - written[name] for name in wanted}


def _answered(journal: Path, question: str) -> bool:
    if not journal.exists():
        return False
    with closing(sqlite3.connect(f"file:{journal}?mode=ro", uri=True)) as reader:
        return reader.execute(question).fetchone() is not None


def main() -> int:
    """Print all of them; 1 where one is beyond the limit."""
    if TMUX is None:
        print("no tmux: nothing is measured")
        return 1
    print(f"\nFrom the journal to the screen, of another process (at most {LIMIT:.0f} s)")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        os.environ["PAPERDESK_HOME"] = folder
        from engine.settings import places

        first, second = "2026-09-25", "2026-09-28"
        terminal = Terminal(home, 120, 40)
        try:
            terminal.until(lambda text: "ORVL 1D" in text)
            terminal.keys("\\")  # in place of the history that a demo plays
            terminal.until(lambda text: "no cycle yet" in text)
            of_first, of_second = signs(first, second)
            journal = places.desk_journal("demo")
            taken = followed(terminal, journal, of_first, lambda: daily(home))
            taken |= followed(terminal, journal, of_second, lambda: daily(home, "next"))
        finally:
            terminal.close()
    for name, seconds in taken.items():
        print(f"  {name:28}{seconds:6.2f} s")
    return 1 if max(taken.values()) > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
