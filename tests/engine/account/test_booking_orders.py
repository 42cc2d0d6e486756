"""The states of orders at a broker as they are written in the journal, without an account."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from engine.account.booking import Booking
from engine.clock import BacktestClock
from engine.domain.brokerage import BrokerOrder
from engine.domain.order import Order, OrderState, Side
from engine.journal.entries import OrderEntry
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from tests.engine.desks import WEEKDAYS

DAY, NOON = date(2024, 3, 4), datetime(2024, 3, 5, 17, tzinfo=UTC)
STATES = OrderState


def theirs(filled: int, state: OrderState = STATES.PARTIALLY_FILLED) -> BrokerOrder:
    return BrokerOrder(
        order_id="o",
        broker_id="b",
        symbol="AAA",
        side=Side.BUY,
        state=state,
        quantity=Decimal(9),
        notional=None,
        filled_quantity=Decimal(filled),
        filled_average_price=Decimal(20),
        submitted_at=NOON,
    )


def test_every_further_part_of_a_fill_is_written_once(tmp_path: Path) -> None:
    order = Order(id="o", symbol="AAA", side=Side.BUY, session=DAY, quantity=Decimal(9))
    path = tmp_path / "desk.db"
    with JournalWriter(path) as journal, JournalReader(path) as reader:
        journal.order_intended(OrderEntry(order=order, run="r", desk="d", cycle=1, time=NOON, owner="desk"))
        for state in (STATES.SUBMITTING, STATES.ACKNOWLEDGED):
            order = order.moved(state)
            journal.order_moved(order, NOON)
        booking = Booking(
            journal,
            reader,
            run="r",
            kind="alpaca",
            market=cast(Any, None),
            calendar=WEEKDAYS,
            clock=BacktestClock(NOON),
        )
        for there in (theirs(3), theirs(3), theirs(5), theirs(9, STATES.FILLED)):
            (entry,) = reader.orders()
            booking.orders(cast(Any, SimpleNamespace(order_states=[(entry.order, there)])), DAY)
        moves = [(move.state, move.filled_quantity) for move in reader.order_moves("o")][3:]
    part = STATES.PARTIALLY_FILLED
    assert moves == [(part, 3), (part, 5), (STATES.FILLED, 9)]
