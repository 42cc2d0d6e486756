"""The app on a desk of fifty symbols whose feed ticks: `python -m tests.bench.ticking_desk TICKS`, for a terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench.bench_live import SYMBOLS, Ticker


def main(per_second: int) -> None:
    """Run the app until it is quit; every symbol has so many ticks a second."""
    from backtest_targets import short
    from fake_desk import FakeDesk

    from tui.app.app import PaperdeskApp

    with TemporaryDirectory() as folder:
        desk = FakeDesk(Path(folder), symbols=SYMBOLS)
        desk.feed = Ticker(per_second)
        PaperdeskApp(lambda: desk, short, images=Path(folder)).run()


if __name__ == "__main__":
    main(int(sys.argv[1]))
