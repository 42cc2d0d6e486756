"""An order is written down before it is sent, lives by the table of moves, and is never written twice."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from engine.domain.decision import Decision
from engine.domain.order import OrderState, Portfolio, Side
from engine.domain.run import EquityPoint
from engine.errors import InvariantBroken
from engine.journal.entries import OrderEntry
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from tests.engine.desks import fill

LIFE = (OrderState.SUBMITTING, OrderState.UNKNOWN, OrderState.ACKNOWLEDGED, OrderState.FILLED)
Orders = Callable[..., OrderEntry]


def test_an_intent_is_committed_before_the_method_returns(path: Path, an_order: Orders) -> None:
    with JournalWriter(path) as journal, JournalReader(path) as reader:
        assert journal.order_intended(an_order())
        assert reader.orders() == (an_order(),)


@pytest.mark.parametrize("batched", [False, True])
def test_the_life_of_an_order_is_kept_move_by_move(path: Path, an_order: Orders, now: datetime, batched: bool) -> None:
    order = an_order().order
    with JournalWriter(path, batched=batched) as journal:
        journal.order_intended(an_order())
        for state in LIFE:
            order = order.moved(state)
            journal.order_moved(order, now, filled=Decimal(3), detail="said the broker")
        journal.order_intended(an_order("BBB"))
    with JournalReader(path) as reader:
        assert [entry.order.state for entry in reader.orders()] == [OrderState.FILLED, OrderState.INTENDED]
        assert [entry.order.symbol for entry in reader.orders(open_only=True)] == ["BBB"]
        assert [move.state for move in reader.order_moves(order.id)] == [OrderState.INTENDED, *LIFE]
        assert reader.order_moves(order.id)[-1].filled_quantity == 3


def test_a_move_that_the_journal_does_not_allow_leaves_no_trace(path: Path, an_order: Orders, now: datetime) -> None:
    order = an_order().order
    with JournalWriter(path) as journal, JournalReader(path) as reader:
        journal.order_intended(an_order())
        skipped = order.moved(OrderState.SUBMITTING).moved(OrderState.ACKNOWLEDGED)
        with pytest.raises(InvariantBroken, match="acknowledged"):
            journal.order_moved(skipped, now)
        with pytest.raises(InvariantBroken, match="ZZZ"):
            journal.order_moved(an_order("ZZZ").order.moved(OrderState.SUBMITTING), now)
        assert reader.orders() == (an_order(),)
        assert len(reader.order_moves(order.id)) == 1
        journal.order_moved(order.moved(OrderState.SUBMITTING), now)
        assert reader.orders()[0].order.state is OrderState.SUBMITTING


def test_the_same_intention_after_a_restart_is_found_not_repeated(path: Path, an_order: Orders, now: datetime) -> None:
    with JournalWriter(path) as journal:
        journal.order_intended(an_order())
        journal.order_moved(an_order().order.moved(OrderState.SUBMITTING), now)
    with JournalWriter(path) as journal, JournalReader(path) as reader:
        assert not journal.order_intended(an_order())
        assert reader.orders()[0].order.state is OrderState.SUBMITTING
        assert len(reader.orders()) == 1
        with pytest.raises(InvariantBroken, match="notional"):
            journal.order_intended(an_order(notional="200.00"))
        assert journal.order_intended(an_order(notional="200.00", attempt=2))


def test_an_execution_told_of_twice_is_booked_once(path: Path, an_order: Orders) -> None:
    bought = fill("AAA", Side.BUY, date(2024, 3, 5), "1", "10.5", order_id=an_order().order.id)
    with JournalWriter(path) as journal, JournalReader(path) as reader:
        assert journal.fill("r", bought, "e1")
        assert not journal.fill("later", bought, "e1")
        assert journal.fill("r", bought, "e2")
        assert reader.fills() == (bought, bought)
        assert reader.fills(order_id="other") == ()


def test_a_decision_stands(path: Path, a_decision: Callable[..., Decision]) -> None:
    with JournalWriter(path) as journal, JournalReader(path) as reader:
        assert journal.decision(a_decision())
        assert not journal.decision(a_decision())
        with pytest.raises(InvariantBroken, match=r"size .*'5'.*'7'"):
            journal.decision(a_decision(size=7))
        assert reader.decisions() == (a_decision(),)


def test_a_batch_with_a_contradiction_is_refused_whole(
    path: Path, a_decision: Callable[..., Decision], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.journal.store.BATCH_SECONDS", 3600.0)
    journal = JournalWriter(path, batched=True)
    journal.decision(a_decision())
    journal.decision(a_decision("BBB"))
    journal.decision(a_decision(size=7))
    with pytest.raises(InvariantBroken):
        journal.flush()
    journal.close()
    with JournalReader(path) as reader:
        assert reader.decisions() == ()


def test_books_that_are_closed_cannot_be_closed_otherwise(path: Path) -> None:
    def books(cash: str) -> EquityPoint:
        return EquityPoint(date(2024, 3, 5), Decimal(cash), Portfolio(Decimal(cash)), {"AAA": Decimal(1)})

    with JournalWriter(path) as journal, JournalReader(path) as reader:
        assert journal.session_settled("r", books("10.00"))
        assert not journal.session_settled("r", books("10.00"))
        with pytest.raises(InvariantBroken, match=r"value .*'10\.00'"):
            journal.session_settled("r", books("9.00"))
        assert reader.equity("r") == (books("10.00"),)
