"""The files of a data folder that a run opens itself: code that does so sees what no cut of the loaded data removes.

An audit hook hears of every way in which Python opens files, and of commands that name the folder. What native code
opens it does not hear of; a process in which the folder is hidden shows that (engine.app.audit.hidden_folder).
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from engine.settings import places
from engine.settings.user_code import COMMANDS, OPENING, file_named, is_installed, line_at_work

_CODE = (".py", ".pyc")
"""Code may lie in the folder and is imported when it is first needed."""


@dataclass(frozen=True, slots=True)
class _Observed:
    """A folder under observation, with a separator at its end, but for the program's own folders in it (`ours`).
    `opened` has its files, each with the line of the user's code that opened it first; where `refused` it could not."""

    folder: str
    ours: tuple[str, ...]
    refused: bool
    opened: dict[str, str] = field(default_factory=dict)


_observed: list[_Observed] = []
_outside: list[dict[str, str]] = []
"""An audit hook stays for the life of the process."""


@contextmanager
def files_outside() -> Iterator[dict[str, str]]:
    """The files that code of the user's opens within the context and that belong neither to the program nor to Python
    and its packages, each with the line that opened it first; files of a folder under observation are told there."""
    _install_hook()
    found: dict[str, str] = {}
    _outside.append(found)
    try:
        yield found
    finally:
        _outside.remove(found)


@contextmanager
def opened_files(folder: str | None, *, refuse: bool = False) -> Iterator[dict[str, str]]:
    """The files opened in a folder within the context, each with the line of the user's code that did it (empty where
    none was at work); none of no folder. With `refuse` opening raises PermissionError."""
    if folder is None:
        yield {}
        return
    _install_hook()
    path = Path(folder).expanduser().resolve()
    observed = _Observed(f"{path}{os.sep}", tuple(f"{own}{os.sep}" for own in own_folders(path)), refuse)
    _observed.append(observed)
    try:
        yield observed.opened
    finally:
        _observed.remove(observed)


def own_folders(folder: Path) -> list[Path]:
    """The program's own folders that lie in a data folder: journals, recorded answers, tables of sessions."""
    ours = (places.data_dir(), places.cache_dir(), places.logs_dir())
    return [own for own in (one.resolve() for one in ours) if own.is_relative_to(folder)]


@cache
def _install_hook() -> None:
    sys.addaudithook(_on_event)


def _on_event(event: str, arguments: tuple[Any, ...]) -> None:
    if not (_observed or _outside):
        return
    if event in OPENING:
        _on_file(file_named(event, arguments[0]))
    elif event in COMMANDS:
        words = repr(arguments)
        for observed in _observed:
            if observed.folder.rstrip(os.sep) in words:
                _note(observed, f"{observed.folder} (by a command)")
        _note_outside(f"a command: {words[:200]}")


def _on_file(file: str) -> None:
    if not file:
        return
    if not any(file.startswith(observed.folder) for observed in _observed) and not _is_ours(file):
        _note_outside(file)
    for observed in _observed:
        if file.startswith(observed.folder) and not file.endswith(_CODE) and not file.startswith(observed.ours):
            _note(observed, file)


def _is_ours(file: str) -> bool:
    """True for a file of the program or of Python, and for a table of sessions, which is read when first needed."""
    tables = os.path.realpath(places.cache_dir())
    return file == os.devnull or file.startswith(f"{tables}{os.sep}sessions-") or is_installed(Path(file))


def _note_outside(file: str) -> None:
    line = line_at_work() if _outside else ""
    for found in _outside if line else ():
        found.setdefault(file, line)


def _note(observed: _Observed, file: str) -> None:
    observed.opened.setdefault(file, line_at_work())
    if observed.refused:
        raise PermissionError(errno.EACCES, "the audit hides the data folder from the run", file)
