"""The journal of a desk that an operator controls, brought up to date."""

from __future__ import annotations

from pathlib import Path

from engine import places
from engine.errors import UsageError
from tui.invocation import Invocation


def controlled_journal(invocation: Invocation) -> Path:
    """The journal of the desk of a call, which need not be there. One of an older program is brought up to date, for
    which no run may be at work; else nobody waits for a lock. Raises UsageError for a run that was named,
    TryAgainLater, ConfigError."""
    from engine.journal.database import bring_up_to_date, older_version

    if invocation.run is not None:
        raise UsageError("--run names one run, and this concerns the whole desk: leave it out")
    desk = invocation.desk_name
    journal = places.desk_journal(desk)
    if older_version(journal) is not None:
        from engine.app.desk_journal import desk_lock

        with desk_lock(desk):
            bring_up_to_date(journal)
    return journal
