"""A journal that version 0.1 left: its last states become rows, its decisions opinions, and its desk goes on."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from engine.domain.decision import Action, DecisionKey, SizingRule
from engine.domain.order import OrderState
from engine.domain.portfolio import Portfolio, Position
from engine.domain.run import RunKind, RunOutcome
from engine.errors import DataError, InvariantBroken
from engine.execution.controls import paused
from engine.journal.entries import RunEntry
from engine.journal.integrity import quick_check
from engine.journal.migrations import VERSION
from engine.journal.reader import JournalReader
from engine.journal.results import result, trail
from engine.journal.store import bring_up_to_date
from engine.journal.writer import JournalWriter
from engine.messages.commands import Approve, Halt, Resume
from tests.engine.old_journals import version_of

DUMP = Path(__file__).with_name("version_7.sql")
ONE, TWO = date(2024, 3, 4), date(2024, 3, 5)
FIRST, SECOND = "daily-desk-20240304", "daily-desk-20240305"
BOUGHT, WAITS = "desk-20240304-1-AAA-B-1", "desk-20240305-1-BBB-S-1"


@pytest.fixture
def old(path: Path) -> Path:
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(DUMP.read_text(encoding="utf-8"))
    assert version_of(path) == 7
    return path


@pytest.fixture
def migrated(old: Path) -> Path:
    assert bring_up_to_date(old) == 7
    assert version_of(old) == VERSION
    return old


def test_a_reader_leaves_it_alone_and_says_what_to_do(old: Path) -> None:
    before = old.read_bytes()
    with pytest.raises(DataError, match=r"has version 7 .* paperdesk journal check"):
        JournalReader(old)
    assert old.read_bytes() == before


def test_the_migrated_journal_is_sound(migrated: Path) -> None:
    assert quick_check(migrated) == ()


def test_runs_have_the_states_that_they_had(migrated: Path) -> None:
    with JournalReader(migrated) as reader:
        runs = {run.id: run for run in reader.runs()}
        assert reader.finished_run(ONE) == FIRST
        assert reader.finished_run(TWO) is None
    assert list(runs) == [FIRST, "session-desk-20240304-2", SECOND, "bt"]
    assert [run.outcome for run in runs.values()] == [RunOutcome.DONE, RunOutcome.WAITING, None, RunOutcome.DONE]
    assert [run.kind for run in runs.values()] == [
        RunKind.DAILY,
        RunKind.INTRADAY,
        RunKind.DAILY,
        RunKind.BACKTEST,
    ]
    assert runs[FIRST].ended == datetime(2024, 3, 4, 23, 0, 1, tzinfo=UTC)
    assert (runs[FIRST].value, runs[FIRST].extra) == (Decimal("100000.00"), {"broker": "simulated", "mode": "auto"})
    going_on = runs[SECOND]
    assert (going_on.ended, going_on.detail) == (None, "")
    assert going_on.extra == {"broker": "simulated", "mode": "ask"}
    assert going_on.model is not None and going_on.model.cost == Decimal("0.02")


def test_orders_and_fills_have_their_states_and_their_owner(migrated: Path) -> None:
    with JournalReader(migrated) as reader:
        orders = {entry.order.id: entry for entry in reader.orders()}
        assert [entry.order.id for entry in reader.orders(open_only=True)] == [WAITS]
        assert [move.state for move in reader.order_moves(BOUGHT)] == [
            OrderState.INTENDED,
            OrderState.SUBMITTING,
            OrderState.ACKNOWLEDGED,
            OrderState.FILLED,
        ]
        assert reader.orders_sent() == {BOUGHT}
        assert [(fill.quantity, fill.book) for fill in reader.fills()] == [(Decimal("44.55"), "")]
    assert orders[BOUGHT].order.state is OrderState.FILLED
    assert (orders[BOUGHT].owner, orders[BOUGHT].order.book) == ("default", "")
    with closing(sqlite3.connect(migrated)) as rows:
        assert rows.execute("SELECT owner, book FROM fills").fetchall() == [("default", "")]


def test_commands_that_were_carried_out_stay_so(migrated: Path) -> None:
    with JournalReader(migrated) as reader:
        last = reader.last_command(Halt, Resume)
        assert [command for _, command in reader.order_commands()] == [Approve(WAITS)]
        assert paused(reader) is None, "a pause of one app, which older programs wrote, is none of the desk's"
    assert last is not None and last[1] == Resume()
    with closing(sqlite3.connect(migrated)) as rows:
        done = "SELECT command FROM command_states WHERE state = 'done'"
        waiting = rows.execute(f"SELECT type FROM commands WHERE seq NOT IN ({done}) ORDER BY seq").fetchall()
    assert waiting == [("Approve",), ("PauseCycle",)]


def test_a_decision_was_the_opinion_of_its_owner(migrated: Path) -> None:
    with JournalReader(migrated) as reader:
        decisions, opinions = reader.decisions(FIRST), reader.opinions(FIRST)
        assert opinions == tuple(decision.opinion for decision in decisions)
        found = trail(reader, DecisionKey(FIRST, ONE, 1, "AAA", "default"))
    assert [opinion.action for opinion in opinions] == [Action.BUY, Action.ABSTAIN]
    assert opinions[0].rule is SizingRule.DIP_IN_UPTREND
    assert (opinions[0].size, opinions[0].confidence) == (8, None)
    assert found.opinions == opinions[:1]
    assert found.decision.cut == "8 to 4.5 %: cash"
    assert [answer.answer for answer in found.answers] == [{"action": "BUY"}]
    assert [recalled.cited for recalled in found.recalled] == [True]
    assert found.outcome is not None and found.outcome.reward == Decimal("0.0005")
    assert (found.outcome.cycle, found.outcome.horizon) == (None, None)


def test_the_books_are_those_of_the_desk(migrated: Path) -> None:
    with JournalReader(migrated) as reader:
        held = {"AAA": Position(Decimal("44.55"), Decimal("101.01"))}
        assert reader.equity()[-1].portfolio == Portfolio(Decimal("95510.50"), held)
        assert [flow.description for flow in reader.cash_flows()] == ["a dividend of AAA"]
        assert reader.account() is not None and reader.broker_orders() == {"b-1": BOUGHT}
        assert [decision.action for decision in result(reader, "bt").test.decisions] == [Action.HOLD]


def test_its_desk_goes_on(migrated: Path, now: datetime) -> None:
    with JournalWriter(migrated) as journal, JournalReader(migrated) as reader:
        sale = next(entry.order for entry in reader.orders(open_only=True))
        journal.order_moved(sale.moved(OrderState.SUBMITTING), now)
        with pytest.raises(InvariantBroken, match="cannot become"):
            journal.order_moved(sale.moved(OrderState.SUBMITTING), now)
        again = RunEntry(id=SECOND, kind=RunKind.DAILY, name="finvision", started=now, session=TWO)
        assert not journal.run_started(again)
        journal.run_finished(SECOND, RunOutcome.DONE, now, value=Decimal(1))
        assert reader.finished_run(TWO) == SECOND
        with pytest.raises(InvariantBroken, match="is done"):
            journal.run_started(again)
    assert quick_check(migrated) == ()
