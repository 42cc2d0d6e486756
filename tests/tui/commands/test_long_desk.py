"""A desk of four symbols over half a year of daily runs: its journal grows by as much in the end as in the beginning,
and its memory puts its files together."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from engine.market.trading_hours import exchange_calendar
from memory import lancedb_store
from tests.tui.commands.conftest import Run
from tests.tui.commands.test_journal import SESSION_BYTES, used_bytes

FIRST = date(2025, 3, 11)
SESSIONS, EACH = 125, 25
MOST_FILES = 120
"""Files of a desk's memory at any time; there were 3,246 after 125 sessions before they were put together."""


@pytest.mark.slow
def test_half_a_year_stays_small(run: Run, fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A session of this test takes less time than versions are kept for, which is nothing beside a day.
    monkeypatch.setattr(lancedb_store, "RETAINED", timedelta(milliseconds=1))
    desks = fresh / "data" / "desks"
    calendar = exchange_calendar("XNYS", fresh / "cache" / "sessions-XNYS.json")
    days = calendar.sessions(FIRST, FIRST + timedelta(days=2 * SESSIONS))[:SESSIONS]
    sizes, files = [], []
    for number, day in enumerate(days, 1):
        assert run("--daily", "--session", day.isoformat()).code == 0
        files.append(sum(path.is_file() for path in (desks / "demo.memory").rglob("*")))
        if number % EACH == 0:
            sizes.append(used_bytes(desks / "demo.db"))
    growth = [(after - before) / EACH for before, after in pairwise(sizes)]
    assert max(growth) <= SESSION_BYTES, growth
    assert max(files) <= MOST_FILES, files
    assert run("journal", "check").code == 0
