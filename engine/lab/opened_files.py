"""Observation of a folder: the files of it that Python code opens, which an audited run has no reason to do.

All of a run's data is loaded before; code that reads the data folder meanwhile sees what no cut removes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

_CODE = (".py", ".pyc")
"""Code may lie in the folder and is imported when it is first needed."""

_observed: list[tuple[str, set[str]]] = []
"""Folders under observation, with the files opened so far. An audit hook stays for the life of the process."""


@contextmanager
def opened_files(folder: str | None) -> Iterator[set[str]]:
    """The files opened in a folder within the context; none of no folder."""
    opened: set[str] = set()
    if folder is None:
        yield opened
        return
    _install_hook()
    observed = (f"{Path(folder).expanduser().resolve()}{os.sep}", opened)
    _observed.append(observed)
    try:
        yield opened
    finally:
        _observed.remove(observed)


@cache
def _install_hook() -> None:
    sys.addaudithook(_on_event)


def _on_event(event: str, arguments: tuple[Any, ...]) -> None:
    if not _observed or event not in ("open", "sqlite3.connect") or not isinstance(arguments[0], str | bytes | Path):
        return
    file = os.path.realpath(os.fsdecode(arguments[0]))
    for folder, opened in _observed:
        if file.startswith(folder) and not file.endswith(_CODE):
            opened.add(file)
