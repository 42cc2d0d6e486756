"""The recorded history of the demo desk: sixty sessions that were decided before anybody opens it.

The archive beside this module holds the desk's own journal and memory; `python -m tests.demo_history` records it anew,
and has the rule by which its window was chosen. A demo desk that was never opened begins with a copy of both.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from engine.program_files import broken_installation
from engine.settings import places

if TYPE_CHECKING:
    from engine.services import Services

SYMBOLS = ("ORVL", "BXWD", "HLXM", "WRNN-USD")
FIRST, LAST, DUE = date(2026, 7, 1), date(2026, 9, 24), date(2026, 9, 25)
"""The first and the last session that are decided, and the one after them, which is due."""
ARCHIVE = Path(__file__).with_name("demo_history.zip")
JOURNAL, MEMORY, TABLE = "journal.db", "memory", "sessions.json"
"""Names in the archive, whose last file is the journal. With it comes the table of the exchange's sessions, which takes
a second to make."""


def is_demo(services: Services) -> bool:
    """True for a desk on the simulated market with the demo market's data."""
    return services.broker is None and services.data.folder is None


def begin(services: Services) -> None:
    """Give a demo desk that was never opened its history, where its settings are those that it was recorded with.
    Raises as `copy_history` does."""
    if not places.desk_journal(services.desk).exists() and is_demo(services) and not other_settings(services):
        copy_history(services.desk)


def copy_history(desk: str) -> None:
    """Give a desk that has neither journal nor memory the recorded ones. Raises ConfigError or DataError where nothing
    can be written, InvariantBroken where the archive is missing."""
    journal, memory, table = places.desk_journal(desk), places.desk_memory(desk), places.session_table()
    if journal.exists() or journal.with_name(f"{journal.name}-wal").exists():
        return
    import shutil
    from zipfile import ZipFile

    from filelock import FileLock

    if not ARCHIVE.is_file():
        raise broken_installation([str(ARCHIVE)])
    part = journal.with_name(f"{journal.name}.history")
    try:
        places.make_folder(journal.parent)
        with FileLock(part.with_suffix(".lock")), ZipFile(ARCHIVE) as archive:
            if journal.exists():  # another process was quicker
                return
            # The journal comes last: a process that was killed between the two renamings has left it there alone.
            if not (part / JOURNAL).exists() or (part / MEMORY).exists():
                if memory.exists():  # of a desk whose journal was removed
                    return
                shutil.rmtree(part, ignore_errors=True)
                archive.extractall(part)
                places.make_folder(table.parent)
                if not table.exists():
                    (part / TABLE).replace(table)
                (part / MEMORY).rename(memory)
            (part / JOURNAL).rename(journal)
            shutil.rmtree(part)
    except OSError as error:
        raise places.unusable(journal, error) from error


def other_settings(services: Services) -> str:
    """The settings, with commas, in which a demo desk is not the one that was recorded; empty for none."""
    from engine.settings.config import Config

    config, recorded = services.config, Config()
    differ = {
        "desk.symbols": services.symbols != SYMBOLS,
        "desk.preset": config.desk.preset != recorded.desk.preset,
        "desk.cash": config.desk.cash != recorded.desk.cash,
        "data.demo_seed": config.data.demo_seed != recorded.data.demo_seed,
        "memory.embedder": config.memory.embedder != recorded.memory.embedder,
    }
    return ", ".join(name for name, differs in differ.items() if differs)


def empty_beginning(services: Services) -> str:
    """The reason why a demo desk that never ran begins without the history; empty where it has it, and for others."""
    other = other_settings(services) if is_demo(services) else ""
    return (
        f"the demo's recorded history is of other settings ({other}): this desk begins empty, on {DUE}" if other else ""
    )
