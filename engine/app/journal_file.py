"""The file of a journal: checked and brought up to date."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from engine import places
from engine.app.desk_journal import desk_lock
from engine.errors import MalformedData, MissingData
from engine.journal.database import refuse_remains
from engine.journal.integrity import quick_check, read_chain
from engine.journal.reader import JournalReader
from engine.journal.store import bring_up_to_date
from engine.journal.verification import ChainState
from engine.reports.documents.records import latest_backtests


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
        """Bring the journal up to date and look for damage, edits and contradictions; a known `head` has to be in its
        chain. Raises MissingData, TryAgainLater while a run is at work."""
        self.require()
        before = None
        with self._locked():
            try:
                before = bring_up_to_date(self.path)
                faults = quick_check(self.path, head=head)
                if faults:
                    return JournalCheck(faults, before)
                with JournalReader(self.path) as reader:
                    return JournalCheck(faults, before, read_chain(self.path), reader.undated_fills())
            except MalformedData as error:
                return JournalCheck((str(error),), before)

    def _locked(self) -> AbstractContextManager[None]:
        """The desk's lock; a backtest has none, its journal is its run's alone."""
        return desk_lock(self.desk) if self.run is None else nullcontext()


@dataclass(frozen=True, slots=True)
class JournalCheck:
    """The faults of a journal, none where it is sound, the version that it had where it was brought up to date, its
    chain of hashes where it is sound, and the number of trades without a time, which an older program wrote."""

    faults: tuple[str, ...]
    updated_from: int | None
    chain: ChainState | None = None
    undated_fills: int = 0
