"""Readings of a screen, one at a time: what a record has at a place is read while the screen goes on to other places.

A worker of Textual that is exclusive is cancelled by the next one: while a history is played, each would be cancelled
before its end, and nothing be shown until the history stands.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from textual.app import App
from textual.dom import DOMNode
from textual.worker import Worker

READING = "reading"
"""The beginning of the groups of workers that read what a screen shows of a place."""

Node = TypeVar("Node", bound=DOMNode)
Place = ParamSpec("Place")


def newest_reading(
    method: Callable[Concatenate[Node, Place], Awaitable[None]],
) -> Callable[Concatenate[Node, Place], None]:
    """Have a method run in a worker. Of the calls that come while it is at work, the newest follows, and the others are
    left out. What it raises is the worker's error."""
    waiting = f"_waiting_{method.__name__}"

    @wraps(method)
    def begin(node: Node, /, *args: Place.args, **more: Place.kwargs) -> None:
        def call() -> Awaitable[None]:
            return method(node, *args, **more)

        if hasattr(node, waiting):
            setattr(node, waiting, call)
        else:
            setattr(node, waiting, None)
            group = f"{READING} {method.__name__}"
            _: Worker[None] = node.run_worker(partial(go_on, node, call), group=group, exit_on_error=False)

    async def go_on(node: Node, call: Callable[[], Awaitable[None]] | None) -> None:
        try:
            while call is not None:
                await call()
                call = getattr(node, waiting)
                setattr(node, waiting, None)
        finally:
            delattr(node, waiting)

    return begin


def is_reading(app: App[Any]) -> bool:
    """True while a screen reads what it shows of a place."""
    return any(worker.group.startswith(READING) and not worker.is_finished for worker in app.workers)
