"""A run's document in its journal: stored when the run ends, read whenever a report is requested."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

from engine.domain.run import RunOutcome
from engine.errors import MalformedData, MissingData
from engine.journal.reader import JournalReader
from engine.journal.results import result
from engine.journal.writer import JournalWriter
from engine.reports.documents.backtest import Document, document, document_text, in_rows, light_document, returns_of
from engine.reports.documents.luck import trials_on, with_trials
from engine.reports.documents.records import LIGHT, PROBED, check_whole, latest_backtests
from engine.reports.documents.trail import with_cards
from engine.reports.performance import Report
from engine.settings import places

KIND, SENSITIVITY = "result", "sensitivity"
NO_DOCUMENT = "this run ended before its result was written; rebuilt from its journal, without baselines"


def stored_document(run: str | None, *, light: bool = False) -> Document:
    """The document of a backtest, the latest whole one where none is named. Raises MissingData that names the latest
    ones, and for a light run unless its own document is asked for."""
    journal = journal_of(_latest_whole() if run is None else run)
    with JournalReader(journal) as reader:
        if not light:
            check_whole(reader.run(journal.stem))
        return document_of(reader, journal.stem)


def _latest_whole() -> str:
    latest = latest_backtests(PROBED)
    if not latest:
        raise MissingData("no backtest to report yet: run `paperdesk backtest`")
    for run in latest:
        with JournalReader(places.run_journal(run)) as reader:
            entry = reader.find_run(run)
            if entry is None or not (entry.extra.get(LIGHT) or entry.outcome is RunOutcome.FAILED):
                return run
    return latest[0]


def journal_of(run: str) -> Path:
    """The journal of a backtest. Raises MissingData, which names the latest ones, where there is none."""
    journal = places.run_journal(run)
    if not journal.is_file():
        known = ", ".join(latest_backtests(3)) or "(none: paperdesk backtest makes one)"
        raise MissingData(f"no run {run}; the latest are {known}")
    return journal


def stored_cards(document: Mapping[str, Any]) -> Document:
    """The document of a backtest with the cards of its decisions, for a page."""
    with JournalReader(journal_of(document["run"])) as reader:
        return with_cards(reader, document)


def store_document(journal: JournalWriter, report: Report, *, light: bool = False) -> None:
    """Write the document of a run that came to a result into its journal."""
    text = in_rows(light_document(report)) if light else document_text(report)
    journal.document(report.result.spec.run, KIND, text)


def document_of(reader: JournalReader, run: str) -> Document:
    """The document of a run: as it was stored, or, where the run never got so far (it was killed, or failed), made of
    the sessions that the journal has. Raises MissingData where the journal has no such run, or no result of it."""
    found = _stored(reader, run)
    if found is not None:
        told = reader.document(run, SENSITIVITY)
        return _with_trials(found) | ({} if told is None else {SENSITIVITY: [json.loads(told)]})
    so_far = result(reader, run)
    noted = replace(so_far, notes=(*so_far.notes, NO_DOCUMENT), interrupted=True)
    return _with_trials(document(Report(noted, label=reader.run(run).label)))


def _with_trials(found: Document) -> Document:
    """A document with the looks at its window by now; one of before they were shown stays as it is."""
    if "luck" not in found:
        return found
    settings = found["settings"]
    first, last = (date.fromisoformat(settings[name]) for name in ("from", "to"))
    trials = trials_on(found["symbols"], first, last)
    periods, risk_free = settings["periods_per_year"], settings.get("risk_free", 0.0)
    return {**found, "luck": with_trials(found["luck"], returns_of(found), trials, periods, risk_free)}


def stored_figures(reader: JournalReader, run: str) -> Mapping[str, Any]:
    """The figures of a run by the names of StoredRun: sessions, metrics, trades and the value at the end; nothing of
    one that never came to its document."""
    found = _stored(reader, run)
    if found is None:
        return {}
    counted = {"sessions": found["sessions"], "metrics": found["metrics"], "trades": len(found["trades"])}
    return {**counted, "final": None if found["final_value"] is None else Decimal(found["final_value"])}


def stored_growth(reader: JournalReader, run: str, baseline: str) -> Mapping[date, float]:
    """The growth of a finished run's baseline by session, 1 being the cash that it began with; nothing for a run
    without a document, or without the baseline in it."""
    with suppress(MissingData):
        return _growth(reader.path, run).get(baseline, {})
    return {}


@lru_cache(maxsize=8)
def _growth(path: Path, run: str) -> Mapping[str, Mapping[date, float]]:
    """The growth of the baselines in a document, which has megabytes and is written once. Raises MissingData."""
    with JournalReader(path) as reader:
        found = _stored(reader, run)
    if found is None or "light" in found:
        raise MissingData(NO_DOCUMENT)
    sessions = [date.fromisoformat(row["session"]) for row in found["equity"]]
    return {
        name: {
            session: float(value) / float(one["initial_value"])
            for session, value in zip(sessions, one["equity"], strict=False)
        }
        for name, one in found["baselines"].items()
    }


def _stored(reader: JournalReader, run: str) -> Document | None:
    text = reader.document(run, KIND)
    if text is None:
        return None
    try:
        found: Document = json.loads(text)
    except ValueError as error:
        raise MalformedData(
            f"the journal {reader.path} is damaged in the result of the run {run} ({error}); restore a backup "
            "(paperdesk restore FILE)"
        ) from None
    return found
