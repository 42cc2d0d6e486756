"""Events of sessions that were settled: the trades that nobody has heard of yet, and the books at each close."""

from __future__ import annotations

from collections.abc import Iterable

from engine.execution.venue import SettledSession
from engine.messages.events import OrderFilled, Publish, SessionSettled
from engine.ports import Clock
from engine.session.outcomes import deposits_in
from engine.session.recorder import Recorder


def publish_settled(
    run: str, recorder: Recorder, clock: Clock, publish: Publish, sessions: Iterable[SettledSession]
) -> None:
    """Publish the trades and the books of sessions that a run has settled."""
    for one in sessions:
        now = clock.now()
        for fill in recorder.new_fills(one):
            publish(OrderFilled(run, now, fill))
        publish(SessionSettled(run, now, one.after, deposits_in(one)))
