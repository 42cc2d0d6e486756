"""The kill switch and the word on orders: the last one counts, whoever said it, in whatever process."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from threading import Timer

import pytest

from engine.domain.order import Order, OrderState, Side
from engine.domain.run import RunKind
from engine.execution import controls
from engine.journal.entries import OrderEntry, RunEntry
from engine.journal.integrity import quick_check
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.market.trading_hours import AroundTheClock, exchange_calendar, session_to_decide
from engine.messages.commands import Approve, Veto
from tests.engine.command_reader import waiting_commands

REPO = Path(__file__).parents[3]
NOW = datetime(2025, 3, 11, 22, 0, tzinfo=UTC)
SESSION = date(2025, 3, 11)

HALTS = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from engine.execution import controls
controls.halt(Path(sys.argv[1]), datetime(2025, 3, 11, 22, 1, tzinfo=UTC), "from elsewhere")
"""


def minutes(n: int) -> datetime:
    return NOW + timedelta(minutes=n)


def order(name: str, state: OrderState = OrderState.INTENDED) -> OrderEntry:
    bought = Order(id=name, symbol="AAA", side=Side.BUY, session=SESSION, notional=Decimal(5), state=state)
    return OrderEntry(order=bought, run="r", desk="demo", cycle=1, time=NOW)


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    path = tmp_path / "desk.db"
    JournalWriter(path).close()
    return path


def test_a_desk_that_nobody_halted_is_not(journal: Path) -> None:
    with JournalReader(journal) as reader:
        assert controls.halted(reader) is None
        assert controls.approvals(reader) == {}
    assert controls.resume(journal, NOW) is None


def test_a_halt_holds_until_it_is_resumed_and_may_come_again(journal: Path) -> None:
    with JournalReader(journal) as reader:
        for n, reason in ((0, "news"), (10, "")):
            assert controls.halt(journal, minutes(n), reason) == (controls.Halted(minutes(n), reason), True)
            assert controls.halted(reader) == controls.Halted(minutes(n), reason)
            assert controls.resume(journal, minutes(n + 5)) == controls.Halted(minutes(n), reason)
            assert controls.halted(reader) is None


def test_a_second_halt_keeps_the_first_ones_time_and_reason(journal: Path) -> None:
    controls.halt(journal, minutes(0), "first")
    assert controls.halt(journal, minutes(3), "second") == (controls.Halted(minutes(0), "first"), False)
    with JournalReader(journal) as reader:
        assert controls.halted(reader) == controls.Halted(minutes(0), "first")


def test_a_halt_before_the_first_run_makes_a_journal_that_is_sound_and_without_a_run(tmp_path: Path) -> None:
    path = tmp_path / "desks" / "new.db"
    assert controls.resume(path, NOW) is None
    assert not path.exists(), "there is nothing to resume, and nothing to write"
    controls.halt(path, NOW, "not yet")
    with JournalReader(path) as reader:
        assert controls.halted(reader) == controls.Halted(NOW, "not yet")
        assert reader.runs() == () and reader.equity() == ()
    assert quick_check(path) == ()


def test_an_open_reader_sees_another_processs_halt_while_a_writer_is_open(journal: Path) -> None:
    with JournalWriter(journal) as writer, JournalReader(journal) as reader:
        assert controls.halted(reader) is None
        subprocess.run([sys.executable, "-c", HALTS, str(journal)], cwd=REPO, check=True, timeout=600)
        assert controls.halted(reader) == controls.Halted(minutes(1), "from elsewhere")
        writer.run_started(RunEntry(id="r", kind=RunKind.DAILY, name="demo", started=NOW))
        assert controls.halted(reader) == controls.Halted(minutes(1), "from elsewhere")


def test_an_approval_waits_for_the_write_lock_and_is_then_written(journal: Path) -> None:
    with closing(sqlite3.connect(journal, check_same_thread=False, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        released = []

        def commit() -> None:
            released.append(1)  # before: the halt may be written before the statement returns
            other.execute("COMMIT")

        release = Timer(0.3, commit)
        release.start()
        controls.halt(journal, NOW)
        assert released, "the lock was still held when the halt was written"
        release.join()
    with JournalReader(journal) as reader:
        assert controls.halted(reader) == controls.Halted(NOW)


def test_the_last_answer_on_an_order_counts(journal: Path) -> None:
    controls.give(journal, map(Approve, ["o1", "o2"]), minutes(1))
    controls.give(journal, [Veto("o2", "too much"), Veto("o3", "too much")], minutes(2))
    controls.give(journal, map(Approve, ["o3"]), minutes(3))
    with JournalReader(journal) as reader:
        assert controls.approvals(reader) == {
            "o1": controls.Approval(True, minutes(1)),
            "o2": controls.Approval(False, minutes(2), "too much"),
            "o3": controls.Approval(True, minutes(3)),
        }
        assert controls.approvals(reader, ["o2", "o4"]) == {"o2": controls.Approval(False, minutes(2), "too much")}
        assert controls.approvals(reader, []) == {}
        assert controls.halted(reader) is None
    assert waiting_commands(journal) == (), "a word is never left for somebody to carry out"


def test_only_orders_that_were_never_handed_over_wait(journal: Path) -> None:
    with JournalWriter(journal) as writer:
        for entry in (order("o1"), order("o2"), order("o3")):
            writer.order_intended(entry)
        writer.order_moved(order("o2").order.moved(OrderState.SUBMITTING), NOW)
        writer.order_moved(order("o3").order.moved(OrderState.CANCELED), NOW)
    with JournalReader(journal) as reader:
        assert [entry.order.id for entry in controls.not_sent(reader)] == ["o1"]
        assert [entry.order.id for entry in reader.orders(open_only=True)] == ["o1", "o2"]


def test_an_answer_on_an_order_that_was_sent_is_not_taken(journal: Path) -> None:
    with JournalWriter(journal) as writer:
        writer.order_intended(order("o1"))
        assert "BUY AAA" in controls.carry_out(journal, Approve("o1"), NOW)
        writer.order_moved(order("o1").order.moved(OrderState.SUBMITTING), NOW)
    for command in (Veto("o1", "late"), Approve("o1")):
        assert "submitting" in controls.carry_out(journal, command, NOW)
    with JournalReader(journal) as reader:
        assert controls.approvals(reader) == {"o1": controls.Approval(True, NOW)}


@pytest.mark.parametrize("symbols", [("AAPL",), ("AAPL", "BTC-USD"), ("BTC-USD",)])
@pytest.mark.parametrize("session", [date(2025, 3, 11), date(2025, 3, 14), date(2025, 7, 2), date(2024, 12, 24)])
def test_an_order_stays_as_long_as_its_session_is_the_one_to_decide(symbols: tuple[str, ...], session: date) -> None:
    calendar = AroundTheClock() if symbols == ("BTC-USD",) else exchange_calendar("XNYS")
    until = controls.OrderTimes(calendar, symbols, real_time=False).stays_until(session)
    assert session_to_decide(calendar, symbols, None, until - timedelta(seconds=1)) == session
    assert session_to_decide(calendar, symbols, None, until + timedelta(seconds=2)) > session
