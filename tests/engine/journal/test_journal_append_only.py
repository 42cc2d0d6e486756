"""What happened stays, in the order in which it happened, whatever is written and read in between."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.order import Fill, Portfolio, Side
from engine.domain.run import EquityPoint, RunOutcome
from engine.journal.reader import JournalReader
from engine.journal.schema import APPEND_ONLY
from engine.journal.writer import JournalWriter
from engine.messages.commands import Shutdown
from engine.messages.events import Event, Noticed, OrderFilled, RunFinished, SessionSettled
from tests.engine.command_reader import waiting_commands
from tests.engine.journal.full_journal import DAY, NOW

runs = st.sampled_from(["a", "b"])
times = st.integers(0, 10**9).map(lambda s: NOW + timedelta(microseconds=s))
decimals = st.decimals(allow_nan=False, allow_infinity=False)
events: st.SearchStrategy[Event] = st.one_of(
    st.builds(Noticed, runs, times, st.just("info"), st.text(max_size=20)),
    st.builds(RunFinished, runs, times, st.sampled_from(RunOutcome), st.none() | decimals, st.text(max_size=5)),
    st.builds(
        SessionSettled,
        runs,
        times,
        st.builds(lambda value, cash: EquityPoint(DAY, value, Portfolio(cash), {"AAA": value}), decimals, decimals),
    ),
    st.builds(
        OrderFilled,
        runs,
        times,
        st.builds(
            Fill,
            order_id=st.just("o"),
            symbol=st.just("AAA"),
            side=st.sampled_from(Side),
            session=st.just(DAY),
            quantity=decimals,
            price=decimals,
            fee=decimals,
        ),
    ),
)
steps = st.lists(st.sampled_from(["reopen", "flush"]) | st.lists(events, min_size=1, max_size=4), max_size=8)


@given(steps, st.booleans(), st.integers(1, 3))
def test_events_read_back_are_a_prefix_and_in_the_end_all(
    given_steps: list[str | list[Event]], batched: bool, limit: int
) -> None:
    happened: list[Event] = []
    seen: list[tuple[int, Event]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "r.db"
        journal = JournalWriter(path, batched=batched)
        reader = JournalReader(path)

        def read_on() -> None:
            while more := reader.events_after(seen[-1][0] if seen else 0, limit=limit):
                assert len(more) <= limit
                seen.extend(more)

        for step in given_steps:
            if step == "reopen":
                journal.close()
                journal = JournalWriter(path, batched=batched)
            elif step == "flush":
                journal.flush()
            else:
                for event in step:
                    assert isinstance(event, Event)
                    journal.event(event)
                    happened.append(event)
            read_on()
            assert [event for _, event in seen] == happened[: len(seen)]
            if not batched:
                assert len(seen) == len(happened)
        journal.close()
        read_on()
        assert [event for _, event in seen] == happened
        assert [seq for seq, _ in seen] == sorted({seq for seq, _ in seen})
        for run in ("a", "b"):
            of_run = [event for _, event in reader.events_after(run=run)]
            assert of_run == [event for event in happened if event.run == run]
        reader.close()


def test_no_table_is_left_out(full: Path) -> None:
    with closing(sqlite3.connect(full)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    assert sorted(name for (name,) in tables) == sorted(APPEND_ONLY)


@pytest.mark.parametrize("table", APPEND_ONLY)
def test_the_database_itself_refuses_to_rewrite(table: str, full: Path) -> None:
    with closing(sqlite3.connect(full)) as connection:
        column = connection.execute(f"SELECT name FROM pragma_table_info('{table}') LIMIT 1").fetchone()[0]
        assert connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] >= 1
        for deed in (f"UPDATE {table} SET {column} = {column}", f"DELETE FROM {table}"):
            with pytest.raises(sqlite3.IntegrityError, match=table):
                connection.execute(deed)


def test_a_command_is_carried_out_once(path: Path) -> None:
    with JournalWriter(path) as journal:
        seq = journal.command(Shutdown(), NOW)
        assert [waiting[0] for waiting in waiting_commands(path)] == [seq]
        assert journal.command_done(seq, NOW)
        assert not journal.command_done(seq, NOW)
        assert not journal.command_done(seq + 1, NOW)
        assert waiting_commands(path) == ()
