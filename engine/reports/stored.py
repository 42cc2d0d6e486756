"""A run's document in its journal: kept when the run ends, read whenever a report is asked for."""

from __future__ import annotations

import json
from dataclasses import replace

from engine.journal.reader import JournalReader
from engine.journal.results import result
from engine.journal.writer import JournalWriter
from engine.reports.documents.backtest import Document, as_text, document
from engine.reports.report import Report

KIND = "result"
NO_DOCUMENT = "this run ended before its result was written; it is put together from its journal, without baselines"


def keep(journal: JournalWriter, report: Report) -> Document:
    """Writes the document of a run that came to a result into its journal, and returns it."""
    made = document(report)
    journal.document(report.result.spec.run, KIND, as_text(made))
    return made


def kept(reader: JournalReader, run: str) -> Document:
    """The document of a run: as it was kept, or, where the run never got so far (it was killed, or failed), made of
    the sessions that the journal has. Raises MissingData where the journal has no such run, or no result of it."""
    text = reader.document(run, KIND)
    if text is not None:
        found: Document = json.loads(text)
        return found
    so_far = result(reader, run)
    told = replace(so_far, notes=(*so_far.notes, NO_DOCUMENT), interrupted=True)
    return document(Report(told, label=reader.run(run).label))
