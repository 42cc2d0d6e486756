"""Progress on standard error, where that is a terminal: a line that the next one replaces, and bars."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar

    from engine.messages.events import Event, Publish

WIPE = "\r\x1b[K"
"""The sequence that wipes the line at work from a terminal."""

Show = Callable[[str, int, int], None]
"""Draws what is at work, how much of it is done, and of how much."""


@contextmanager
def work_line() -> Iterator[Callable[[str], None]]:
    """Yield what says the work at hand, on one line, which is wiped at the end."""
    watched = sys.stderr.isatty()

    def report(text: str) -> None:
        if watched:
            click.echo(f"{WIPE}{text} ...", nl=False, err=True)

    try:
        yield report
    finally:
        if watched:
            click.echo(WIPE, nl=False, err=True)


@contextmanager
def progress_bar() -> Iterator[Show]:
    """Yield what draws a bar; a full one ends its line, and the next begins another."""
    bar: ProgressBar[Any] | None = None

    def show(what: str, done: int, total: int) -> None:
        nonlocal bar
        if not total or not sys.stderr.isatty():
            return
        if bar is None:
            bar = click.progressbar(length=total, file=sys.stderr, show_pos=True, item_show_func=str)
            bar.render_progress()
        bar.update(done - bar.pos, what)
        if done >= total:
            finish()

    def finish() -> None:
        nonlocal bar
        if bar is not None:
            bar.render_finish()
        bar = None

    try:
        yield show
    finally:
        finish()


@contextmanager
def session_progress(
    bar: Callable[[], AbstractContextManager[Show]] = progress_bar,
) -> Iterator[Publish]:
    """Yield what draws the sessions of a run from its events."""
    from engine.messages.events import SessionOpened, SessionSettled

    what, done, total = "", 0, 0
    with bar() as show:

        def draw(event: Event) -> None:
            nonlocal what, done, total
            if isinstance(event, SessionOpened):
                what, total = f"{event.part} {event.session}", event.total
            elif isinstance(event, SessionSettled):
                done += 1
            else:
                return
            show(what, done, total)

        yield draw
