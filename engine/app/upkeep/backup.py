"""A backup of a desk as one file: its journal and its memory, which belong together, and the configuration to look at.

A zip archive: `journal.db`, the files of `memory/`, `configuration.json` and `backup.json`, which says of what and when
it was made. No keys, no market data, no recorded answers of models: those are files of their own.

The file of a journal, checked.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

from engine.app.memory import StoredMemory, check_memory, finish_replacing, memory_of_desk
from engine.app.records.desk_journal import desk_lock
from engine.errors import DataError, MalformedData, MissingData, UsageError
from engine.journal import copies
from engine.journal.database import refuse_remains
from engine.journal.integrity import quick_check, read_chain
from engine.journal.reader import JournalReader
from engine.journal.verification import ChainState
from engine.reports.documents.records import latest_backtests
from engine.reports.documents.row_json import Row
from engine.services import Services
from engine.settings import places

JOURNAL, MEMORY, CONFIGURATION, ABOUT = "journal.db", "memory/", "configuration.json", "backup.json"
SCHEMA = 1


def back_up(services: Services, to: Path, now: datetime) -> Row:
    """Write a backup of the configured desk, and the document of it. Raises MissingData for a desk without a journal,
    DataError for a file that is there or cannot be written, or a memory that is not the journal's, TryAgainLater while
    a run of the desk is at work."""
    desk, journal = services.desk, places.desk_journal(services.desk)
    JournalFile.of(desk, None).require()
    if to.exists():
        raise DataError(f"{to} already exists: name another file")
    about = {"schema": SCHEMA, "desk": desk, "made": now.isoformat(timespec="seconds")}
    stored, part = memory_of_desk(services), places.part_of(to)
    with desk_lock(desk), _folder_beside(to) as folder:
        copies.backup(journal, folder / JOURNAL)
        finish_replacing(stored.place)
        _check(stored, folder / JOURNAL, desk)
        try:
            with ZipFile(part, "x", ZIP_DEFLATED) as archive:
                archive.writestr(ABOUT, json.dumps(about))
                archive.writestr(CONFIGURATION, json.dumps(services.config.shown(), indent=1))
                archive.write(folder / JOURNAL, JOURNAL)
                for file in sorted(stored.place.rglob("*")) if stored.exists else ():
                    if file.is_file() and file.suffix != ".lock":
                        archive.write(file, MEMORY + file.relative_to(stored.place).as_posix())
            part.rename(to)
        except OSError as error:
            raise DataError(f"{to} cannot be written ({error.strerror}): name another file") from error
        finally:
            part.unlink(missing_ok=True)
    return {**about, "run": None, "backup": str(to), "bytes": to.stat().st_size, "memory": stored.exists}


def restore(services: Services, backup: Path, now: datetime) -> Row:
    """Put a backup in the place of the desk's journal and memory, once both are checked, and the document of it; what
    was there is kept beside them. Raises MissingData where there is no backup, UsageError for the desk's own journal,
    DataError for one that is not sound, or of another desk, TryAgainLater while a run of the desk is at work; then
    nothing was replaced."""
    desk, journal = services.desk, places.desk_journal(services.desk)
    if not backup.is_file():
        raise MissingData(f"no backup {backup}: name a file written by paperdesk backup")
    if journal.exists() and backup.samefile(journal):
        raise UsageError(f"{backup} is the journal itself: name a backup of it")
    stored = memory_of_desk(services)
    with desk_lock(desk), _folder_beside(journal) as folder:
        _unpack(backup, folder, desk)
        coming = StoredMemory(folder / MEMORY, stored.preset, stored.constants, stored.calendar)
        copies.check(folder / JOURNAL, backup)
        _check(coming, folder / JOURNAL, desk)
        finish_replacing(stored.place)
        # A kill between the two leaves a memory that the journal does not know: it is refused, and restored again.
        aside = _set_aside(stored.place, now)
        if coming.exists:
            coming.place.rename(stored.place)
        kept = copies.replace(folder / JOURNAL, journal, now)
    return {
        "schema": SCHEMA,
        "desk": desk,
        "run": None,
        "journal": str(journal),
        "backup": str(backup),
        "kept": kept and str(kept),
        "memory_kept": aside and str(aside),
        "memory": stored.exists,
    }


def _check(memory: StoredMemory, journal: Path, desk: str) -> None:
    """Raise as `check_memory` and `memory_errors` do."""
    with JournalReader(journal) as reader:
        if not memory.exists:
            check_memory(None, reader, desk)
            return
        with memory.opened() as opened:
            check_memory(opened, reader, desk)


def _unpack(backup: Path, folder: Path, desk: str) -> None:
    try:
        with ZipFile(backup) as archive:
            names = [name for name in archive.namelist() if name == JOURNAL or name.startswith(MEMORY)]
            about = json.loads(archive.read(ABOUT))
            if about["schema"] != SCHEMA:
                raise DataError(f"the backup {backup} was written by a newer Paperdesk: upgrade this one")
            if about["desk"] != desk:
                raise DataError(f"the backup {backup} belongs to the desk {about['desk']}: give --desk {about['desk']}")
            archive.extractall(folder, names)
    except (BadZipFile, zlib.error, KeyError, ValueError, EOFError) as error:
        raise MalformedData(f"the backup {backup} is damaged, or not a backup ({error}): use an older one") from error
    except OSError as error:
        raise DataError(f"the backup {backup} cannot be unpacked ({error.strerror}): check the free space") from error
    if JOURNAL not in names:
        raise MalformedData(f"the backup {backup} is damaged, or not a backup (no {JOURNAL}): use an older one")


def _set_aside(place: Path, now: datetime) -> Path | None:
    """Move a folder away, beside it under the time `now`; None where there is none."""
    if not place.exists():
        return None
    kept = place.with_name(f"{place.name}.replaced-{now:%Y%m%d-%H%M%S-%f}")
    place.rename(kept)
    return kept


@contextmanager
def _folder_beside(file: Path) -> Iterator[Path]:
    """A folder for the length of a block, on the same disk as a file, so that what is made in it can be moved there."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f".{file.name}.", dir=file.parent))
    except OSError as error:
        raise places.unusable(file, error) from error
    try:
        yield folder
    finally:
        with suppress(OSError):
            shutil.rmtree(folder)


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
