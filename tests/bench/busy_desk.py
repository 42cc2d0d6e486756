"""The app on a desk whose cycle goes on and on: `python -m tests.bench.busy_desk EVENTS FILE`, for a terminal.

`r` begins; FILE says how many events the app was sent so far.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tui"))

PAUSE = 0.005
"""Seconds between two cycles, which have about sixty events each."""


def main(events: int, report: Path) -> None:
    """Run the app until it is quit."""
    from backtest_targets import short
    from fake_desk import FakeDesk

    from engine.app.models.models import Gate
    from engine.journal.writer import JournalWriter
    from engine.messages.events import Event, Publish
    from tui.app.app import PaperdeskApp

    class Busy(FakeDesk):
        """A desk of very many cycles in one."""

        async def run_cycle(self, publish: Publish, gate: Gate, only: str | None = None) -> None:
            sent = 0
            with JournalWriter(self.journal) as writer:

                def counted(event: Event) -> None:
                    nonlocal sent
                    sent += 1
                    if event.durable:
                        writer.event(event)
                    publish(event)

                while sent < events:
                    await super().run_cycle(counted, gate)
                    report.write_text(str(sent))
                    await asyncio.sleep(PAUSE)

    with TemporaryDirectory() as folder:
        PaperdeskApp(lambda: Busy(Path(folder)), short, images=Path(folder)).run()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
