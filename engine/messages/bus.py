"""Bounded event queues between a desk and its subscribers: a slow screen loses old events, never stops trading."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from engine.messages.events import Event


class Subscription:
    """A subscriber's queue, at most `limit` events long; belongs to one event loop.

    When it is full, the oldest event that may be lost goes first (the new one where it alone may be), then the oldest;
    `missed` counts them.
    """

    def __init__(self, limit: int) -> None:
        self.missed = 0
        self._limit = limit
        self._waiting: deque[Event] = deque()
        self._arrived = asyncio.Event()

    def put(self, event: Event) -> None:
        """Add an event without ever waiting."""
        if len(self._waiting) >= self._limit:
            self.missed += 1
            lossy = next((e for e in self._waiting if not e.durable), None)
            if lossy is not None:
                self._waiting.remove(lossy)
            elif event.durable:
                self._waiting.popleft()
            else:
                return
        self._waiting.append(event)
        self._arrived.set()

    async def __aiter__(self) -> AsyncIterator[Event]:
        while True:
            while self._waiting:
                yield self._waiting.popleft()
            self._arrived.clear()
            await self._arrived.wait()


class Bus:
    """Publishes each event to every subscription."""

    def __init__(self) -> None:
        self._subscriptions: list[Subscription] = []

    def subscribe(self, limit: int = 2000) -> Subscription:
        """A new subscription, for events published from now on."""
        subscription = Subscription(limit)
        self._subscriptions.append(subscription)
        return subscription

    def publish(self, event: Event) -> None:
        """Pass an event to all subscriptions; never waits."""
        for subscription in self._subscriptions:
            subscription.put(event)
