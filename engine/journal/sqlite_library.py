"""Load sqlite-utils for the journal's writer without the data libraries that it imports where they are installed."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlite_utils import Database

_UNUSED = ("pandas", "numpy")
"""Libraries whose types sqlite-utils can store. A journal has none, and pandas is much of what a command would load."""


class _NotHere(MetaPathFinder):
    """Finder to which the unused libraries are not installed, for imports of the thread that made it."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        """Raise ModuleNotFoundError for an unused library; find nothing otherwise, so that others are asked."""
        if fullname in _UNUSED and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(f"{fullname} is not loaded for a journal", name=fullname)
        return None


@cache
def database_class() -> type[Database]:
    """Return the class Database of sqlite-utils."""
    finder = _NotHere()
    sys.meta_path.insert(0, finder)
    try:
        from sqlite_utils import Database
    finally:
        sys.meta_path.remove(finder)
    return Database
