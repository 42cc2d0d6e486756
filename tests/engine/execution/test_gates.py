"""The reasons against sending an order, each by itself, at a venue that takes whatever is sent."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pytest

from engine.clock import BacktestClock
from engine.domain.order import Order, OrderState, OrderUpdate, Portfolio, Side
from engine.domain.run import TradingMode
from engine.errors import NetworkError, TryAgainLater
from engine.execution import controls
from engine.execution.submission import Submission
from engine.execution.venue import BuyingPower, Venue
from engine.journal.entries import OrderEntry
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.market.trading_hours import decision_time
from tests.engine.desks import WEEKDAYS

MONDAY = date(2024, 3, 4)
NOW = decision_time(WEEKDAYS, MONDAY)
ACKNOWLEDGED, CANCELED, EXPIRED = OrderState.ACKNOWLEDGED, OrderState.CANCELED, OrderState.EXPIRED


class Broker:
    """Takes every order but those of some symbols, of which it says nothing, and has 10,000 in cash."""

    real_time = True
    portfolio = Portfolio(Decimal(10_000))

    def __init__(self, silent: str = "") -> None:
        self.silent, self.reserved = silent, Decimal(0)

    async def refresh(self) -> BuyingPower:
        return BuyingPower(self.portfolio.cash, self.reserved)

    async def restriction(self, symbol: str) -> str:
        return ""

    async def terms(self, symbols: object) -> dict[str, Any]:
        return {}

    async def lookup(self, order_id: str) -> OrderUpdate | None:
        return None

    async def place(self, order: Order) -> OrderUpdate:
        if order.symbol == self.silent:
            raise NetworkError("no answer")
        self.reserved += order.notional or 0
        return OrderUpdate(order.id, ACKNOWLEDGED)


async def no_time(seconds: float) -> None:
    """Wait for nothing."""


def submitted(path: Path, broker: Broker, *, until: timedelta | None = None, **changes: Any) -> list[OrderState]:
    """The states of a purchase of 6,000 of AAA and one of 4,000 of BBB, each at 100, after they were submitted."""
    orders = [
        Order(id=symbol, symbol=symbol, side=Side.BUY, session=MONDAY, notional=Decimal(notional))
        for symbol, notional in (("AAA", 6000), ("BBB", 4000))
    ]
    with JournalWriter(path) as journal, JournalReader(path) as reader:
        for order in orders:
            journal.order_intended(OrderEntry(order=order, run="r", desk="d", cycle=1, time=NOW, owner="desk"))
        fields: dict[str, Any] = {
            "session": MONDAY,
            "mode": TradingMode.AUTO,
            "cash_floor": Decimal(0),
            "allow_short": False,
            "calendar": WEEKDAYS,
            "clock": BacktestClock(NOW),
            "wait": no_time,
            "publish": lambda event: None,
        }
        route = Submission(
            run="r",
            symbols=("AAA", "BBB"),
            venue=cast(Venue, broker),
            journal=journal,
            reader=reader,
            **fields | changes,
        )
        with suppress(TryAgainLater, NetworkError):
            ended = None if until is None else NOW + until
            asyncio.run(route.submit(orders, lambda symbol: Decimal(100), ended))
        return [entry.order.state for entry in reader.orders()]


@pytest.mark.parametrize(
    ("changes", "states"),
    [
        ({}, [ACKNOWLEDGED, ACKNOWLEDGED]),
        ({"frozen": frozenset({"AAA"})}, [CANCELED, ACKNOWLEDGED]),
        ({"cash_floor": Decimal("0.05")}, [ACKNOWLEDGED, CANCELED]),
        ({"mode": TradingMode.OBSERVE}, [CANCELED, CANCELED]),
        ({"until": timedelta(0)}, [EXPIRED, EXPIRED]),
        ({"until": timedelta(seconds=1)}, [ACKNOWLEDGED, ACKNOWLEDGED]),
        ({"session": MONDAY - timedelta(days=3)}, [EXPIRED, EXPIRED]),
    ],
)
def test_each_reason_ends_an_order_by_itself(tmp_path: Path, changes: dict[str, Any], states: list[OrderState]) -> None:
    assert submitted(tmp_path / "desk.db", Broker(), **changes) == states


def test_a_halt_keeps_orders_back_but_for_those_that_reduce_positions(tmp_path: Path) -> None:
    for while_halted, state in ((False, OrderState.INTENDED), (True, ACKNOWLEDGED)):
        path = tmp_path / f"{while_halted}.db"
        controls.halt(path, NOW)
        assert submitted(path, Broker(), while_halted=while_halted) == [state, state]


def test_an_order_that_may_yet_arrive_keeps_its_cash(tmp_path: Path) -> None:
    floor = Decimal("0.01")
    assert submitted(tmp_path / "desk.db", Broker(silent="AAA"), cash_floor=floor) == [OrderState.UNKNOWN, CANCELED]
