"""A line of progress on standard error, where that is a terminal: sessions done, time left."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from engine.messages.events import Event, Publish, SessionOpened, SessionSettled

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar


@contextmanager
def session_progress() -> Iterator[Publish]:
    """Yield what draws a run's events; it draws nothing where standard error is no terminal."""
    bar: ProgressBar[Any] | None = None

    def draw(event: Event) -> None:
        nonlocal bar
        if isinstance(event, SessionOpened):
            if bar is None:
                bar = click.progressbar(length=event.total, file=sys.stderr, show_pos=True, item_show_func=str)
                bar.render_progress()
            bar.update(0, f"{event.part} {event.session}")
        elif isinstance(event, SessionSettled) and bar is not None:
            bar.update(1)

    try:
        yield draw if sys.stderr.isatty() else lambda event: None
    finally:
        if bar is not None:
            bar.render_finish()
