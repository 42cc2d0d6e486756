"""The events of a screen, one in each turn of the app's loop."""

from __future__ import annotations

import asyncio

from textual import events
from textual.message_pump import MessagePump


class EventsInTurn(MessagePump):
    """A screen between whose events others have their turn. Textual processes all that have come in one callback of the
    loop: as a screen opens, its resumption and its resize, which lay out and paint all of it, and a key would wait."""

    async def on_event(self, event: events.Event) -> None:
        """Process an event after what waits for the loop."""
        await asyncio.sleep(0)
        await super().on_event(event)
