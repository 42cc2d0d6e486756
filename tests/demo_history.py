"""Records the demo desk's history anew: `python -m tests.demo_history`, half a minute. To be done, and committed, after
every change of what the desk decides, asks, remembers or writes into its journal; tests/engine/app/test_demo_history.py
says when it is due.

With `--windows` it prints the candidates instead, three minutes, and which of them the rule chooses. The rule: of the
windows of sixty sessions that begin with a month, July 2025 to July 2026, the one that is the most ordinary, measured
by its places in the orders of excess over buy and hold and of the largest drawdown: the sum of its distances from both
medians is the smallest (the earliest of equals). So the desk that a newcomer meets was chosen neither for its gain nor
for its loss. engine.app.desk.demo_history holds the window that was chosen.
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import warnings
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import pytest

from connectors.wiring.services import services
from engine.app.desk import demo_history
from engine.app.desk.run import run_daily
from engine.app.research.backtest import run_backtest
from engine.app.research.run_spec import default_spec
from engine.clock import BacktestClock
from engine.journal.copies import backup
from engine.market.trading_hours import decision_time
from engine.reports.documents.backtest import document
from engine.services import Services
from engine.settings import places
from engine.settings.config import load_config
from memory.lancedb_store import LanceStore

SESSIONS = 60
MONTHS = [date(2025 + month // 12, month % 12 + 1, 1) for month in range(6, 19)]


def demo_services() -> Services:
    """The services of a desk without a configuration, whose clock stands: times in its journal depend on no machine."""
    found = services(load_config(None, environ={}).config)
    calendar = found.desk_calendar(found.symbols)
    return services(found.config, clock=BacktestClock(decision_time(calendar, demo_history.LAST)))


def window(found: Services, first: date) -> list[date]:
    """The sessions of the window that begins on a day, or after it."""
    return list(found.desk_calendar(found.symbols).sessions(first, first + timedelta(days=2 * SESSIONS)))[:SESSIONS]


def decide(found: Services, sessions: list[date]) -> None:
    """Have the desk of this home decide sessions, one after another."""
    for session in sessions:
        asyncio.run(run_daily(found, session))


def pack(found: Services, archive: Path) -> None:
    """Write the journal and the memory of this home into an archive, the journal last."""
    memory = places.desk_memory(found.desk)
    with (
        warnings.catch_warnings(action="ignore"),  # nobody else reads it
        found.open_embedder(None, lambda use: None) as embedder,
        closing(LanceStore(memory, embedder, writing=True)) as store,
    ):
        store.optimize(timedelta())
    journal = memory.with_name("packed.db")
    backup(places.desk_journal(found.desk), journal)
    with closing(sqlite3.connect(journal)) as rows:
        rows.execute("VACUUM")  # alike rows lie side by side
    files = [(f"{demo_history.MEMORY}/{one.relative_to(memory).as_posix()}", one) for one in sorted(memory.rglob("*"))]
    with ZipFile(archive, "w", ZIP_DEFLATED, compresslevel=9) as packed:
        for name, file in [*files, (demo_history.TABLE, places.session_table()), (demo_history.JOURNAL, journal)]:
            if file.is_file() and file.suffix != ".lock":
                packed.writestr(ZipInfo(name), file.read_bytes(), ZIP_DEFLATED)


def candidates(found: Services) -> list[tuple[date, float, float]]:
    """First session, excess over buy and hold and largest drawdown of every window, which are printed."""
    rows = []
    for month in MONTHS:
        first, second, *_, last = window(found, month)
        spec = default_spec(found)
        spec = type(spec)(
            **{name: getattr(spec, name) for name in ("symbols", "preset", "data", "convention", "seed")},
            first=second,
            last=last,
            run=f"window-{first}",
        )
        metrics = document(run_backtest(found, spec))["metrics"]
        rows.append((first, metrics["excess_return"], metrics["max_drawdown"]))
        print(
            f"{first} to {last}: return {metrics['total_return']:+.1%}, over buy and hold {rows[-1][1]:+.1%}, "
            f"largest drawdown {rows[-1][2]:.1%}"
        )
    return rows


def most_ordinary(rows: list[tuple[date, float, float]]) -> date:
    """The window nearest to the medians of both measures, by places."""
    middle = len(rows) // 2

    def distance(row: tuple[date, float, float]) -> int:
        return sum(abs(sorted(one[measure] for one in rows).index(row[measure]) - middle) for measure in (1, 2))

    return min(rows, key=lambda row: (distance(row), row[0]))[0]


def main() -> None:
    """Record the history, or print the candidates."""
    with TemporaryDirectory() as home, pytest.MonkeyPatch.context() as patch:
        patch.setenv(places.HOME, home)
        # The archive compresses texts of alike rows together, and comes to half the size.
        patch.setattr("engine.journal.rows.LEAST_PACKED", sys.maxsize)
        found = demo_services()
        if "--windows" in sys.argv:
            print(f"the rule chooses the window from {most_ordinary(candidates(found))}")
            return
        decide(found, window(found, demo_history.FIRST))
        pack(found, demo_history.ARCHIVE)
        print(f"{demo_history.ARCHIVE}: {demo_history.ARCHIVE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
