"""Exceptions of workers, which Textual keeps to itself: shown in a line over the screen, and in the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual.worker import Worker, WorkerState

from engine.errors import PaperdeskError
from tui.text.plain_text import one_line

if TYPE_CHECKING:
    from tui.desk.desk_app import DeskApp


class ShowsFailures:
    """A screen or widget with workers: what one of them fails with, and did not say itself, is shown. Textual sends the
    state of a worker to the screen or widget that began it, and to no other."""

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Show the exception of a worker."""
        error = event.worker.error
        if event.state is WorkerState.ERROR and error is not None:
            known = isinstance(error, PaperdeskError)
            text = one_line(str(error) if known else f"a bug: {type(error).__name__}: {error}")
            app = event.worker.node.app
            app.notify(text, severity="error", markup=False, timeout=8)
            cast("DeskApp", app).bridge.log_failure(text)
