"""The one connection that writes a journal, and the part of a run that each row belongs to."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Self

from engine.journal.database import WAIT
from engine.journal.schema import LIVE
from engine.journal.store import RowStore


class RowWriter:
    """Writes rows of one journal; a context manager that commits and closes."""

    def __init__(self, path: Path, *, batched: bool = False, wait: float = WAIT) -> None:
        """Open or create a journal and bring it to this program's version; `batched` is for backtests. Raises
        MalformedData for a file that is damaged or no journal, ConfigError for a journal of a newer program."""
        self.path = path
        self._batched = batched
        self._store = RowStore(path, batched=batched, wait=wait)
        self._parts: dict[str, str] = {}
        self._owners: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Commit what is waiting and close."""
        self._store.close()

    def together(self) -> AbstractContextManager[None]:
        """A block whose writes are committed at its end as one, or not at all; they are not seen before."""
        return self._store.together()

    def flush(self) -> None:
        """Commit all that is waiting."""
        self._store.flush()

    def _part(self, run: str) -> str:
        return self._parts.get(run, LIVE)
