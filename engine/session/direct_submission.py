"""The route of a backtest's orders: every order is taken by the simulated market at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Protocol

from engine.domain.market import Symbol
from engine.domain.order import Order, OrderUpdate
from engine.execution.controls import Halted
from engine.execution.submission import SubmissionResult
from engine.session.simulated_venue import SimulatedVenue


class OrderRecorder(Protocol):
    """A record of the states of orders."""

    def ordered(self, update: OrderUpdate) -> None:
        """Keep the state of an order that the broker reported."""
        ...


class DirectSubmission:
    """Places orders and keeps what the market answered."""

    def __init__(self, venue: SimulatedVenue, recorder: OrderRecorder) -> None:
        self._venue = venue
        self._recorder = recorder

    def halt(self) -> Halted | None:
        """None: no person is there to halt a backtest."""
        return None

    async def submit(
        self, orders: Sequence[Order], price: Callable[[Symbol], Decimal], until: datetime | None
    ) -> SubmissionResult:
        """Place every order."""
        for order in orders:
            self._recorder.ordered(await self._venue.place(order))
        return SubmissionResult(tuple(orders))
