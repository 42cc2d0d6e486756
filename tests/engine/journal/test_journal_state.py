"""The state of a desk is a fold over its journal's records, read in one transaction."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

from engine.domain.decision import Decision
from engine.domain.order import OrderState
from engine.domain.portfolio import Portfolio
from engine.domain.run import EquityPoint, RunOutcome
from engine.journal.entries import OrderEntry, RunEntry
from engine.journal.fold import JournalState, fold, state_of
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter

RUN = "demo-20240304"


def books(day: int, cash: str) -> EquityPoint:
    return EquityPoint(date(2024, 3, day), Decimal(cash), Portfolio(Decimal(cash)), {"AAA": Decimal(1)})


def test_a_desk_without_a_journal_has_an_empty_state(path: Path) -> None:
    assert state_of(path) == JournalState()
    assert state_of(path).books is None
    assert not path.exists()


def test_the_state_is_what_the_records_come_to(
    path: Path,
    now: datetime,
    a_run: Callable[..., RunEntry],
    a_decision: Callable[..., Decision],
    an_order: Callable[..., OrderEntry],
) -> None:
    with JournalWriter(path) as journal:
        journal.run_started(a_run())
        journal.decision(a_decision())
        for symbol in ("AAA", "BBB"):
            journal.order_intended(an_order(symbol))
        sent = an_order("AAA").order.moved(OrderState.SUBMITTING)
        journal.order_moved(sent, now)
        journal.order_moved(sent.moved(OrderState.FILLED), now, filled=Decimal(3))
        journal.session_settled(RUN, books(4, "100.00"))
        journal.session_settled(RUN, books(5, "90.00"))
        journal.run_finished(RUN, RunOutcome.DONE, now)
    state = state_of(path)
    assert state.books == books(5, "90.00")
    assert [entry.order.state for entry in state.orders] == [OrderState.FILLED, OrderState.INTENDED]
    assert [entry.order.symbol for entry in state.open_orders] == ["BBB"]
    assert state.sent == {sent.id}
    assert state.decisions_of(RUN) == (a_decision(),) and state.decisions_of("other") == ()
    assert len(state.orders_of(RUN)) == 2
    assert [run.outcome for run in state.runs] == ["done"]


def test_what_is_written_meanwhile_is_not_half_seen(
    path: Path, now: datetime, a_run: Callable[..., RunEntry], an_order: Callable[..., OrderEntry]
) -> None:
    with JournalWriter(path) as journal, JournalReader(path) as reader:
        journal.run_started(a_run())
        with reader.snapshot():
            assert reader.orders() == ()
            journal.order_intended(an_order())
            journal.order_moved(an_order().order.moved(OrderState.SUBMITTING), now)
            assert (reader.orders(), reader.orders_sent()) == ((), frozenset())
        assert fold(reader).sent == {an_order().order.id}
