"""Read a journal in any process while the writer writes.

Importing this module loads the standard library and the domain, and nothing heavy.
"""

from __future__ import annotations

from engine.journal.book_reader import BookReader
from engine.journal.decision_reader import DecisionReader
from engine.journal.run_reader import RunReader


class JournalReader(RunReader, DecisionReader, BookReader):
    """Reader of one journal; a context manager that closes. `run` narrows to a run's id, None means every run of the
    file; sessions are ISO dates of the market's calendar, `first` and `last` both included; rows come in the order in
    which they were written.

    Every method raises MalformedData for a file that turns out to be damaged and TryAgainLater for a locked one.
    """
