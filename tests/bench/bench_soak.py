"""How much memory the app grows by over 100,000 events, and over ten simulated days of a demo desk.

The real program on a terminal; its resident memory after a first part, when what it needs is loaded, and at the end.
It grows by at most LIMIT of that. Linux only. Run as `python -m tests.bench.bench_soak`.
"""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from tests.bench.app_in_terminal import AppInTerminal, app, configured

EVENTS, DAYS = 100_000, 10
FIRST_EVENTS, FIRST_DAYS = 20_000, 2
"""The first part: what is needed once is loaded by then."""
LIMIT = 0.10
KEYS = "]2]3v4s5s6789"
"""Keys that are pressed in between: every screen is looked at."""


def of_events() -> list[float]:
    """Memory in MB after the first events, and after all of them."""
    found: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "sent"
        with app(Path(folder), ("-m", "tests.bench.busy_desk", str(EVENTS), str(report))) as opened:
            opened.until("AAA-USD 1D")
            looked_at(opened)
            opened.press("1r")
            for wanted in (FIRST_EVENTS, EVENTS):
                opened.rest(600, lambda wanted=wanted: report.exists() and int(report.read_text() or 0) >= wanted)  # type: ignore[misc]
                looked_at(opened)
                found.append(opened.memory())
    return found


def of_days() -> list[float]:
    """Memory in MB after every simulated day."""
    from engine.errors import MissingData
    from engine.journal.reader import JournalReader
    from engine.settings import places

    found: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        home = configured(Path(folder))
        os.environ["PAPERDESK_HOME"] = folder
        journal = places.desk_journal("demo")

        def decided(days: int) -> bool:
            with suppress(MissingData), JournalReader(journal) as reader:  # the first run has not begun it yet
                return sum(run.outcome is not None for run in reader.runs()) >= days
            return False

        with app(home) as opened:
            opened.until("ORVL 1D")
            opened.rest(2)
            for day in range(1, DAYS + 1):
                opened.press("n")
                opened.rest(300, lambda day=day: decided(day))  # type: ignore[misc]
                looked_at(opened)
                found.append(opened.memory())
    return found


def looked_at(opened: AppInTerminal) -> None:
    """Press keys that show every screen, and come back."""
    for key in f"{KEYS}1":
        opened.press(key)
        opened.rest(0.4)
    opened.rest(2)


def main() -> int:
    """Print both; 1 where memory grows by more."""
    print(f"\nMemory of the app (grows by at most {LIMIT:.0%} after the first part)", flush=True)
    after_some, after_all = of_events()
    grown = [after_all / after_some - 1]
    print(f"  {EVENTS:,} events: {after_some:.0f} MB after {FIRST_EVENTS:,}, {after_all:.0f} MB then, {grown[0]:+.1%}")
    days = of_days()
    grown.append(days[-1] / days[FIRST_DAYS - 1] - 1)
    print(f"  {DAYS} days: {', '.join(f'{one:.0f}' for one in days)} MB, {grown[1]:+.1%} after the first {FIRST_DAYS}")
    return 1 if max(grown) > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
