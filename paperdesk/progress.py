"""Progress of the work at hand: a bar on a terminal, a line under a notebook's cell, nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from tui.shell.progress import Show, progress_bar


def progress() -> AbstractContextManager[Show]:
    """The drawing of progress, where somebody sees it."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return progress_bar() if getattr(shell, "kernel", None) is None else _notebook_line()


@contextmanager
def _notebook_line() -> Iterator[Show]:
    display: Any = sys.modules["IPython"].display.display
    line = display({"text/plain": ""}, raw=True, display_id=True)
    try:
        yield lambda what, done, total: line.update({"text/plain": f"{what}: {done} of {total}"}, raw=True)
    finally:
        line.update({"text/plain": ""}, raw=True)
