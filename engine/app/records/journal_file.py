"""The file of a journal, checked."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from engine.app.records.desk_journal import desk_lock
from engine.errors import MalformedData, MissingData
from engine.journal.database import refuse_remains
from engine.journal.integrity import quick_check, read_chain
from engine.journal.verification import ChainState
from engine.reports.documents.records import latest_backtests
from engine.settings import places


@dataclass(frozen=True, slots=True)
class JournalFile:
    """A desk's journal, or with `run` a backtest's."""

    desk: str
    run: str | None
    path: Path

    @classmethod
    def of(cls, desk: str, run: str | None) -> JournalFile:
        """The journal of a run, or of the desk where none is named. Raises ConfigError for a name that no run can
        have."""
        return cls(desk, run, places.desk_journal(desk) if run is None else places.run_journal(run))

    def require(self) -> None:
        """Raise MissingData where the file is not there, or what is left of one."""
        refuse_remains(self.path)
        if self.path.is_file():
            return
        if self.run is None:
            raise MissingData(f"the desk {self.desk} has no journal at {self.path}: paperdesk --daily writes one")
        known = ", ".join(latest_backtests(3)) or "(none yet)"
        raise MissingData(
            f"no backtest {self.run}: the latest are {known}; a daily run is in its desk's journal, leave out --run"
        )

    def check(self, head: str | None = None) -> JournalCheck:
        """Look for damage, edits and contradictions; a known `head` has to be in the chain. Raises MissingData,
        TryAgainLater while a run is at work, and as `open_read_only` does for a journal of another version."""
        self.require()
        with self._locked():
            try:
                faults = quick_check(self.path, head=head)
                return JournalCheck(faults, None if faults else read_chain(self.path))
            except MalformedData as error:
                return JournalCheck((str(error),))

    def _locked(self) -> AbstractContextManager[None]:
        """The desk's lock; a backtest has none, its journal is its run's alone."""
        return desk_lock(self.desk) if self.run is None else nullcontext()


@dataclass(frozen=True, slots=True)
class JournalCheck:
    """The faults of a journal, or its chain of hashes where it is sound."""

    faults: tuple[str, ...]
    chain: ChainState | None = None
