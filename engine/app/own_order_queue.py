"""The operator's own orders in an open app: each waits while it can be taken back, then for the cycle at work."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from engine.errors import PaperdeskError
from engine.messages.commands import PlaceOrder
from engine.reports.documents.own_order import Ticket

Place = Callable[[PlaceOrder], Awaitable[Ticket]]
Notice = Callable[[str, str], None]
"""A listener for a level and a line."""


class OwnOrderQueue:
    """Orders that are not on their way yet. One that is dropped leaves no trace; what is placed is in the journal."""

    def __init__(self, place: Place, undo_seconds: float, notice: Notice) -> None:
        """`place` places an order; `notice` hears what comes of each."""
        self._place, self._undo_seconds, self._notice = place, undo_seconds, notice
        self._waiting: dict[asyncio.Task[None], PlaceOrder] = {}
        self._placing = asyncio.Lock()

    @property
    def waiting(self) -> tuple[PlaceOrder, ...]:
        """The orders that can still be taken back, in the order in which they were given."""
        return tuple(self._waiting.values())

    async def send(self, wanted: PlaceOrder, idle: Callable[[], Awaitable[None]]) -> None:
        """Place an order once it cannot be taken back any more and no cycle is at work (`idle`); an error becomes a
        line that names it."""
        task = asyncio.current_task()
        assert task is not None
        self._waiting[task] = wanted
        try:
            await asyncio.sleep(self._undo_seconds)
            await idle()
        finally:
            del self._waiting[task]
        async with self._placing:
            try:
                ticket = await self._place(wanted)
            except PaperdeskError as error:  # it may have arrived all the same
                self._notice("error", f"{wanted.description} failed: {error}")
                return
        if ticket.refused:
            self._notice("error", f"{wanted.description} is not taken: {ticket.refused}")
        else:
            detail = f" ({ticket.detail})" if ticket.detail else ""
            self._notice("info", f"your order {wanted.description}: {ticket.order.state}{detail}")

    def take_back(self) -> None:
        """Drop the order that was given last."""
        if not self._waiting:
            self._notice("info", "no order of yours can be taken back: what was given is on its way")
            return
        task, wanted = list(self._waiting.items())[-1]
        task.cancel()
        self._notice("info", f"taken back: {wanted.description}")

    def drop_all(self) -> None:
        """Drop every order that is not on its way."""
        for task in self._waiting:
            task.cancel()
