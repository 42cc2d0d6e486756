"""Bounded event queues: a slow subscriber never blocks the desk, and counts the events that it missed."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime

from hypothesis import given
from hypothesis import strategies as st

from engine.messages.bus import Bus, Subscription
from engine.messages.events import AgentSaid, Event, Noticed

NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)


def note(n: int) -> Noticed:
    return Noticed("r", NOON, "info", str(n))


def delta(n: int) -> AgentSaid:
    return AgentSaid(run="r", time=NOON, session=date(2024, 3, 1), symbol="AAA", owner="desk", step="news", text=str(n))


async def drained(subscription: Subscription) -> list[Event]:
    """Everything that waits: reading it takes no await, so one turn of the loop suffices."""
    events: list[Event] = []

    async def read() -> None:
        async for event in subscription:
            events.append(event)

    reader = asyncio.create_task(read())
    await asyncio.sleep(0)
    reader.cancel()
    await asyncio.gather(reader, return_exceptions=True)
    return events


async def test_each_watcher_hears_everything_in_order_from_when_it_came() -> None:
    bus = Bus()
    bus.publish(note(0))
    first = bus.subscribe()
    bus.publish(note(1))
    second = bus.subscribe()
    bus.publish(delta(2))

    assert await drained(first) == [note(1), delta(2)]
    assert await drained(second) == [delta(2)]
    assert (first.missed, second.missed) == (0, 0)


async def test_a_subscriber_waits_for_the_next_event() -> None:
    bus = Bus()
    stream = aiter(bus.subscribe())
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    assert not waiting.done()

    bus.publish(note(0))
    bus.publish(note(1))

    async with asyncio.timeout(60):
        assert [await waiting, await anext(stream)] == [note(0), note(1)]


async def test_a_slow_watcher_loses_deltas_first_and_then_the_oldest() -> None:
    bus = Bus()
    slow, quick = bus.subscribe(limit=4), bus.subscribe()
    for event in (note(0), delta(1), note(2), delta(3)):
        bus.publish(event)
    bus.publish(note(4))
    bus.publish(note(5))
    bus.publish(note(6))

    assert slow.missed == 3
    assert await drained(slow) == [note(2), note(4), note(5), note(6)]
    assert len(await drained(quick)) == 7


async def test_a_delta_never_takes_the_place_of_what_may_not_be_lost() -> None:
    subscription = Subscription(2)
    for event in (note(0), note(1), delta(2)):
        subscription.put(event)

    assert subscription.missed == 1
    assert await drained(subscription) == [note(0), note(1)]


@given(st.integers(1, 8), st.lists(st.booleans(), max_size=60))
def test_what_is_missed_is_counted_and_the_rest_is_in_order(limit: int, lossy: list[bool]) -> None:
    subscription = Subscription(limit)
    events: list[Event] = [delta(n) if lost else note(n) for n, lost in enumerate(lossy)]
    for event in events:
        subscription.put(event)

    left = asyncio.run(drained(subscription))

    assert len(left) + subscription.missed == len(events)
    assert len(left) <= limit
    assert left == [event for event in events if event in left]
    durable = [event for event in events if event.durable]
    # What may not be lost goes only where such events alone fill the line.
    assert [event for event in left if event.durable] == durable[-limit:]
