"""An operator's pause within a session: a cycle begins only without one, and ends at one without a result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from engine.cycle.turn import CycleResult
from engine.execution.controls import CyclePaused, Paused
from engine.execution.submission import OrderRoute
from engine.session.context import RunState


async def unless_paused(
    orders: OrderRoute, decide: Callable[[RunState], Awaitable[tuple[CycleResult, RunState]]], state: RunState
) -> tuple[CycleResult | None, RunState, Paused | None]:
    """Decide on a state, and return what came of it; at a pause None, the state as it was and the pause. Raises what
    `decide` raises."""
    pause = orders.pause()
    if pause is None:
        try:
            result, after = await decide(state)
        except CyclePaused as stopped:
            pause = stopped.pause
        else:
            return result, after, None
    return None, state, pause
